"""Answers of the exercises on launches."""

from anatomy.chapters.launches.requirements import COUNT
from anatomy.figures.curriculum.calculations import calculation

WALL = 'launches.rates."100 launches".step_wall'
OP = f'{WALL}."PyTorch op".per_launch_s'
ADDED_BYTES = 12  # of an element of two vectors and their sum, in float32


@calculation(unit="elements", launch=OP, bandwidth="limit:copy")
def elements_of_a_launch(launch: float, bandwidth: float) -> float:
    """Time of a launch from Python times the bandwidth of a copy, over 12 bytes an element; to two
    digits."""
    return float(f"{launch * bandwidth / ADDED_BYTES:.2g}")


def millions_of_a_launch(launch: float, bandwidth: float) -> float:
    """The same in millions."""
    return elements_of_a_launch(launch, bandwidth) / 1e6


for end, kind in (("low", "fast"), ("high", "slow")):
    launch = OP.replace("per_launch_s", f"per_launch_{end}_s")
    of_end = calculation(
        f"elements-of-a-{kind}-launch", unit="million", launch=launch, bandwidth="limit:copy"
    )
    of_end(millions_of_a_launch)


@calculation(unit="%", cpp=f'{WALL}."C++ loop".per_launch_s', launch=OP)
def cpp_over_python(cpp: float, launch: float) -> float:
    """Time of a launch from C++ over that of one from Python."""
    return cpp / launch


def _blocks_in_a_nanosecond(threads: int) -> None:
    time = f'launches.block_sizes."CUDA, {threads}".median_s'

    @calculation(f"blocks-of-{threads}-in-a-nanosecond", unit="blocks", time=time)
    def blocks(time: float) -> float:
        """Blocks of one launch of the vector addition, over its time in nanoseconds."""
        return COUNT / threads / (time * 1e9)


for each in (32, 64, 128):
    _blocks_in_a_nanosecond(each)
