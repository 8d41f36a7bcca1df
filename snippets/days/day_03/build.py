"""Which elements does a thread work on? Fill in the function, and run check.py."""


def elements_of(block, thread, blocks, threads, count):
    """The numbers of the elements that one thread of one block adds, in order.

    There are `blocks` blocks of `threads` threads and `count` elements, which may be many more than
    threads: then each thread goes on to an element as far ahead as there are threads in all, until
    there are no more. Threads beside each other must always be at elements beside each other.
    """
    raise NotImplementedError
