"""Sectors: the pieces of memory that a warp's request touches, and what must move for it."""

SECTOR_BYTES, LINE_BYTES = 32, 128  # what moves between memory and the caches; four make a line
WARP, ITEM_BYTES = 32, 4  # threads, and a float32 for each


def sectors(stride: int, offset_bytes: int = 0) -> dict[int, int]:
    """The sectors that the threads of a warp touch, rising, each with the bytes that they ask of
    it. Thread t reads the 4 bytes from `offset_bytes` + 4 `stride` t on, after a line begins."""
    touched: dict[int, int] = {}
    for thread in range(WARP):
        first = offset_bytes + ITEM_BYTES * stride * thread
        for byte in range(first, first + ITEM_BYTES):
            touched[byte // SECTOR_BYTES] = touched.get(byte // SECTOR_BYTES, 0) + 1
    return touched


def useful_share(stride: int, offset_bytes: int = 0) -> float:
    """Bytes that the warp asks for over the bytes of all sectors that it touches."""
    return WARP * ITEM_BYTES / (SECTOR_BYTES * len(sectors(stride, offset_bytes)))
