"""The ladder for a terminal: a row for each way to climb it, and attention's bytes beside it."""

import re
from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from anatomy.cli.output import table
from anatomy.judge.rows import Row, names
from anatomy.record.recording import Recording
from anatomy.table import units

STEPS, TRAFFIC = "ladder.training", "ladder.traffic"
EXPERIMENTS = (STEPS, TRAFFIC)
# Verdicts on the speed-ups: over rung 0, and over the rung before.
WORDS = ("verdict", "verdict_before")
RUNG = re.compile(r"\d ")  # how a way's name begins: with the number of its rung


def report(found: Recording) -> Iterator[Table | str]:
    """What a new recording of one of `EXPERIMENTS` says."""
    rows = found.rows
    if found.experiment == TRAFFIC:
        yield traffic(rows)
        yield from dict.fromkeys(row["note"] for row in rows if row.get("note"))
    else:
        yield from steps(rows)
    yield from (f"warning: {warning}" for warning in found.warnings)


def steps(rows: Sequence[Row]) -> Iterator[Table | str]:
    """A table of each comparison of `STEPS`, from rung 0 upwards; then what can't run, and why."""
    climbed = [row for row in rows if RUNG.match(str(row.get("variant")))]
    climbed = [row for row in climbed if row.get("role") != "again"]
    ways = names(climbed, "variant")
    ways.sort(key=lambda way: way[0])  # rung by rung, and within a rung as they come
    for op in names(climbed, "op"):
        group = [row for row in climbed if row["op"] == op]
        yield _steps_of(op, sorted(group, key=lambda row: ways.index(row["variant"])))
    if any(row.get(word) == "undecided" for row in climbed for word in WORDS):
        yield "?: not told apart from the noise"
    whys = {row["variant"]: row["note"] for row in climbed if _unmeasured(row)}
    for why in dict.fromkeys(whys.values()):
        stuck = (way for way in ways if way in whys and whys[way] == why)
        yield f"{', '.join(stuck)}: {why}"


def _unmeasured(row: Row) -> bool:
    return units.missing(row.get("median_s"))


def _steps_of(op: str, rows: Sequence[Row]) -> Table:
    columns: dict[str, Callable[[Row], str | None]] = {
        "a step takes": _time,
        "speed-up": lambda row: _speedup(row, "ratio"),
        "over the rung before": lambda row: _speedup(row, "ratio_before"),
        "rate": lambda row: _if_measured(
            row, "flops", lambda flops: units.rate(flops / row["median_s"], "FLOP/s")
        ),
        "of the ceiling": lambda row: _if_measured(row, "share_of_ceiling", units.percent),
        "peak memory": lambda row: _if_measured(row, "total_peak_bytes", units.byte_count),
        "kernels": lambda row: _if_measured(row, "kernels_per_call", lambda count: f"{count:.0f}"),
        "first step": lambda row: _if_measured(row, "setup_s", units.seconds),
        "gradients off": lambda row: _if_measured(row, "gradient_error", units.percent),
    }
    shown = {head: cell for head, cell in columns.items() if any(map(cell, rows))}
    lines = [(row["variant"], *(cell(row) for cell in shown.values())) for row in rows]
    heads = ("rung", *(f"#{head}" for head in shown))
    return table(heads, lines, f"\n{op}, wall time of a step")


def _time(row: Row) -> str:
    if _unmeasured(row):
        return "void" if str(row.get("note")).startswith("void") else "can't run"
    return units.seconds_range(row["median_s"], row.get("low_s"), row.get("high_s"))


def _speedup(row: Row, column: str) -> str | None:
    """A ratio of times the other way round; `?` beside one that is not decided."""
    ratio, low, high = (row.get(f"{column}{end}") for end in ("", "_low", "_high"))
    if units.missing(ratio) or row.get("role") == "control":
        return None
    ends = (None, None) if units.missing(low) or units.missing(high) else (1 / high, 1 / low)
    word = row.get(WORDS[column == "ratio_before"])
    return units.ratio_range(1 / ratio, *ends) + (" ?" if word == "undecided" else "")


def _if_measured(row: Row, column: str, printed: Callable[[float], str]) -> str | None:
    return None if _unmeasured(row) else _if_known(row, column, printed)


def _if_known(row: Row, column: str, printed: Callable[[float], str]) -> str | None:
    return None if units.missing(row.get(column)) else printed(row[column])


def traffic(rows: Sequence[Row]) -> Table:
    """The bytes of `TRAFFIC` by the counters and on paper, and how many times those of `fused`."""
    columns = {
        "scores": ("score_bytes", units.byte_count),
        "counted": ("dram_bytes", units.byte_count),
        "over fused": ("over_fused", units.ratio),
        "on paper": ("formula_bytes", units.byte_count),
        "over fused, on paper": ("formula_over_fused", units.ratio),
    }
    lines = [
        (row["op"], row["variant"], *(_if_known(row, *column) for column in columns.values()))
        for row in rows
    ]
    heads = ("attention", "way", *(f"#{head}" for head in columns))
    return table(heads, lines, "\nBytes of device memory")
