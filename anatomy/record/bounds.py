"""What a number may be, said once: in the annotation of the parameter that takes it.

    def bench(device: str = "cuda:0", m: Length = 4096, scale: Scale = 1.0): ...

`anatomy.record.signatures` reads these from the source, so each is two literals, or constants that
stand for some. What depends on other parameters, such as a width of whole heads, the experiment
checks itself."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Between:
    """The least and the most that a parameter may be, both allowed."""

    least: float
    most: float

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most

    def __str__(self) -> str:
        ends = (f"{end:,.6f}".rstrip("0").rstrip(".") for end in (self.least, self.most))
        return "from {} to {}".format(*ends)


# The most is far beyond any card, so that memory decides; and below what overflows an address.
Length = Annotated[int, Between(1, 1_048_576)]  # elements along a side: m, width, tokens
Count = Annotated[int, Between(1, 100_000)]  # of what is made or repeated: layers, heads, samples
Several = Annotated[int, Between(2, 1_048_576)]  # a length or a count of which 1 says nothing
Number = Annotated[int, Between(0, 100_000)]  # which of several it is, from 0
Scale = Annotated[float, Between(0.000_001, 16)]  # factor on the sizes of an experiment
Seconds = Annotated[float, Between(0.001, 86_400)]  # to spend: from a call to a day
