"""From an experiment to its file and back: `declare` makes a function an experiment, `signatures`
reads it without torch, `recorder` runs it in a process of its own (`isolation`, `worker`), and
`recording` is the file. `provenance` says whether that can be trusted and is current, and `showing`
which recordings a page sees."""
