"""From an experiment to its file and back: `declare` makes a function an experiment, `signatures`
reads it without torch, `recorder` runs it in a process of its own (`isolation`, `worker`),
`recording` is the file, `provenance` says whether that is current, and `showing` is what pages
see."""
