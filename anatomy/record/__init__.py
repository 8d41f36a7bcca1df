"""From an experiment to its file and back: `declare` makes a function one, `signatures` reads it
without torch, `recorder` runs it in a process of its own (`isolation`, `worker`), `recording` is
the file, `provenance` says whether that is current, `showing` what pages see."""
