"""How much faster the best matmul of a format is than that of a wider one."""

from anatomy.figures.curriculum.calculations import calculation

PAIRS = (("tf32", "fp32"), ("bf16", "tf32"), ("fp8", "bf16"), ("bf16", "fp32"))


def over_the_wider(narrow: float, wide: float) -> float:
    """The rate of the best matmul in one format over that in another."""
    return narrow / wide


for narrow, wide in PAIRS:
    calculation(
        f"{narrow}-matmul-over-{wide}",
        unit="x",
        narrow=f"limit:matmul {narrow}",
        wide=f"limit:matmul {wide}",
    )(over_the_wider)
