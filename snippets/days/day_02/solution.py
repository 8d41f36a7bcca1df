"""One solution of build.py."""


# --8<-- [start:solution]
def blocks_per_sm(threads, registers, shared_bytes=0):
    warps = -(-threads // 32)  # a part of a warp takes a whole one
    return min(
        2048 // (32 * warps),
        32,
        65_536 // (32 * warps * registers),
        228 * 1024 // (shared_bytes + 1024),
    )


# --8<-- [end:solution]
