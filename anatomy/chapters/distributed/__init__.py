"""Several GPUs: what collectives take, and what DataParallel, DDP and FSDP make of a step."""
