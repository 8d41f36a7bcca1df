"""Sectors: the pieces of memory that a warp's request touches, and what must move for it."""

SECTOR_BYTES, LINE_BYTES = 32, 128  # four sectors make a line of a cache
WARP, ITEM_BYTES = 32, 4  # threads, and a float32 for each


# --8<-- [start:count]
def sectors(stride: int, offset_bytes: int = 0) -> dict[int, int]:
    """The sectors that the threads of a warp touch, rising, each with the
    bytes that they ask of it. Thread t reads the 4 bytes that begin
    `offset_bytes` + 4 `stride` t after a line does."""
    touched: dict[int, int] = {}
    for thread in range(WARP):
        first = offset_bytes + ITEM_BYTES * stride * thread
        for byte in range(first, first + ITEM_BYTES):
            sector = byte // SECTOR_BYTES
            touched[sector] = touched.get(sector, 0) + 1
    return touched


def useful_share(stride: int, offset_bytes: int = 0) -> float:
    """Bytes that the warp asks for, over those of all sectors it touches."""
    moved = SECTOR_BYTES * len(sectors(stride, offset_bytes))
    return WARP * ITEM_BYTES / moved


# --8<-- [end:count]
