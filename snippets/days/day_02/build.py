"""How many blocks does an SM hold at once? Fill in the function, and run check.py."""


def blocks_per_sm(threads, registers, shared_bytes=0):
    """Blocks of so many threads that an H100's SM holds at once.

    `registers` are those of each thread, `shared_bytes` the shared memory of each block. The SM has
    room for 2,048 threads, 32 blocks, 65,536 registers and 228 KiB of shared memory. Two details:
    threads come in warps of 32, and 1 KiB of shared memory is kept back for every block.
    """
    raise NotImplementedError
