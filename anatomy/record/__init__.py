"""From an experiment to its file and back.

`declare` makes a function an experiment and `signatures` reads it without torch. `recorder` runs it
in a process of its own (`isolation`, `worker`), and saves what it returned (`recording`).
`provenance` says whether the file can be trusted and is current, `reading` gives its rows, judged,
and `showing` which recordings a page sees.
"""
