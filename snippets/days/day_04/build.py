"""Day 4: build the chain of a pointer chase. Run check.py when you are done."""


def chain(lines: int, seed: int) -> list[int]:
    """Where each of `lines` cache lines leads: `chain(...)[i]` is the line that follows line i.

    Whoever follows it from any line must visit every line once before coming back, and must not
    be able to guess the next one: the order is random, and follows from the `seed`.
    """
    raise NotImplementedError  # about 5 lines; random.Random(seed).shuffle(a_list) helps
