"""Day 5: count the sectors of any request of a warp. Run check.py when you are done."""


def sectors(addresses: list[int], size: int) -> int:
    """How many sectors of 32 bytes a warp touches whose threads each read `size` bytes, the first
    of them at that thread's address. Two threads in one sector count once, and an element may lie
    across the end of a sector."""
    raise NotImplementedError  # about 3 lines; a set keeps each number once
