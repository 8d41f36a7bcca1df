"""Day 5: one solution of build.py."""


# --8<-- [start:solution]
def sectors(addresses: list[int], size: int) -> int:
    touched = set()
    for first in addresses:
        touched |= set(range(first // 32, (first + size - 1) // 32 + 1))
    return len(touched)


# --8<-- [end:solution]
