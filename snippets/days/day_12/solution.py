"""One solution of build.py."""

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


# --8<-- [start:solution]
def record(value, op, number):
    value.tape.append((op, value.place, number))
    return Value(OPS[op](value.number, number), value.tape, len(value.tape))


def trace(function, example):
    tape = []
    function(Value(example, tape))
    return tape


def replay(tape, x):
    values = [x]
    for op, place, number in tape:
        values.append(OPS[op](values[place], number))
    return values[-1]


# --8<-- [end:solution]
