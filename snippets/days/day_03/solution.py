"""One solution of build.py."""


# --8<-- [start:solution]
def elements_of(block, thread, blocks, threads, count):
    first = block * threads + thread  # as in vector_add.cu
    return list(range(first, count, blocks * threads))  # a "grid-stride loop"


# --8<-- [end:solution]
