"""Recordings, and figures of them, that claims of several chapters read."""

from anatomy.claims import Measured, Need
from anatomy.claims.table import Table, rate_of, trusted, why_not
from anatomy.judge.rows import Row
from anatomy.table.errors import UnknownName

DTYPES = ("fp16", "bf16", "tf32", "fp32")
SIZES = (2048, 4096, 8192)
CEILINGS = Need("limits.ceilings")
WARM = {"quantity": "gpu_warm"}


def bench(dtype: str, size: int) -> Need:
    """The recording of `contiguity.bench` for square matrices."""
    return Need("contiguity.bench", {"dtype": dtype, "m": size, "n": size, "k": size})


EVERY = tuple(bench(dtype, size) for dtype in DTYPES for size in SIZES)
FP16, TF32, FP32 = bench("fp16", 2048), bench("tf32", 8192), bench("fp32", 8192)


def best(table: Table, op: str, work: str) -> Measured:
    """The highest rate of an operation, in units of work per second, with its interval."""
    found = table.select(op=op)
    if not found:
        raise UnknownName("op in a recording", op, [str(row.get("op")) for row in table])
    there = [row for row in found if not why_not(row)] or [trusted(found[0])]
    row = max(there, key=lambda each: each[work] / each["median_s"])
    return rate_of(row, work, "B/s" if work == "bytes" else "FLOP/s")


def beginning(table: Table, op: str, *variants: str) -> list[Row]:
    """The rows of these variants whose operation begins so."""
    rows = table.select(variant=variants)
    return [row for row in rows if str(row.get("op")).startswith(op)]
