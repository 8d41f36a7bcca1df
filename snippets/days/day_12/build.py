"""Write a tracer: fill in the three functions, about eight lines, and run check.py."""

import operator

OPS = {"+": operator.add, "*": operator.mul}


class Value:
    """A number that notes on a tape what is done with it. The input is value 0, and line n of the
    tape makes value n + 1."""

    def __init__(self, number, tape, place=0):
        self.number, self.tape, self.place = number, tape, place

    def __add__(self, number):
        return record(self, "+", number)

    def __mul__(self, number):
        return record(self, "*", number)

    def __gt__(self, number):
        return self.number > number  # True or False, and no tape hears of it


def record(value, op, number):
    """Note (op, value's place, number) on the tape; return the result as a new Value."""
    raise NotImplementedError


def trace(function, example):
    """The tape of a function that was called with a Value of the example."""
    raise NotImplementedError


def replay(tape, x):
    """What the tape makes of another number."""
    raise NotImplementedError
