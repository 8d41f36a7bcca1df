"""Who won: what is recorded of the comparison, judged by the rules that its page has under "Which
rules were fixed before the run?" (docs/how-good-is-the-stopwatch.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from anatomy.chapters.harnesses.contest import scoring
from anatomy.judge import replication
from anatomy.record.recording import Recording
from anatomy.table import intervals

ESTIMATES, REFERENCE = "harnesses.estimates", "harnesses.reference"
PROCESSES = {REFERENCE: 3, ESTIMATES: 6}  # in the order in which they are recorded
OURS = "compare"
# Ours in each quantity is held against these.
RIVALS = {
    "gpu_cold": ("do_bench mean", "do_bench median", "inductor"),
    "step_wall": ("blocked_autorange", "adaptive_autorange"),
    "gpu_warm": ("do_bench_cudagraph",),
}
SHORT_S, BIAS, BIAS_SHORT_S = 10e-6, 0.01, 0.5e-6
APART = 0.01  # figures further apart count as different, where there is no verdict
# What an interval is asked about: the long run around it, its process minutes apart, the reference.
COVERED = LONG, APART_IN_TIME, OVER_PROCESSES = "long run", "minutes apart", "processes"
# Kind of pair -> the part of the rows that it is in, and the verdicts that count.
PAIRS = {"same": ("pair", ("slower", "faster")), "effect": ("effect", ("slower",))}
TOGETHER = 3  # fresh processes behind one claim of less than 2 %

PLACE = ["op", "quantity"]
_RATIO = ("ratio", "ratio_low", "ratio_high")
# A recording in which nothing of a kind could be measured has fewer columns than these.
_READ = (
    *("part", "process", *PLACE, "variant", "replicate", "cost_s", "wide", "verdict"),
    *("median_s", "low_s", "high_s", "rest_s", "noise_floor", "block_ratios", *_RATIO),
)
_TIMES = ("median_s", "low_s", "high_s", "events_s", "events_profiled_s", "sm_clock_mhz")


def where(table: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows of a table whose columns have these values."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


@dataclass(frozen=True, eq=False)
class Contest:
    """The tables of a comparison, and what follows from them, each worked out once."""

    estimates: pd.DataFrame  # rows of `harnesses.estimates`, with their process
    reference: pd.DataFrame = field(default_factory=pd.DataFrame)  # and of `harnesses.reference`

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> "Contest":
        """What these recordings have of it; those of other experiments are left out."""
        tables = {ESTIMATES: [pd.DataFrame()], REFERENCE: [pd.DataFrame()]}
        for each in recordings:
            rows = each.table.assign(process=each.params.get("process"))
            tables.get(each.experiment, []).append(rows)
        return cls(*(pd.concat(each, ignore_index=True) for each in tables.values()))

    def part(self, name: str, need: str) -> pd.DataFrame:
        """The rows of one part that have the column `need`, with every column that is read."""
        whole = self.estimates.reindex(columns=list(_READ))
        found = where(whole, part=name).dropna(subset=[need])
        return found.astype(dict.fromkeys(PLACE, str)).reset_index(drop=True)

    @cached_property
    def figures(self) -> pd.DataFrame:
        """The estimates that gave a figure."""
        return self.part("estimate", "median_s")

    @cached_property
    def ours(self) -> pd.DataFrame:
        """Those of `compare`."""
        return where(self.figures, variant=OURS)

    @cached_property
    def references(self) -> pd.DataFrame:
        """What the reference's processes say of each workload and quantity: `reference_s` with the
        lowest and the highest round of all; what our stopwatch reads there with the profiler off
        and on, `events_s` and `events_profiled_s`; the clock there, `reference_mhz`."""
        types = dict.fromkeys(PLACE, str) | dict.fromkeys(_TIMES, float)
        cells = self.reference.reindex(columns=list(types)).astype(types).groupby(PLACE)
        return cells.agg(
            reference_s=("median_s", "median"),
            reference_low=("low_s", "min"),
            reference_high=("high_s", "max"),
            events_s=("events_s", "median"),
            events_profiled_s=("events_profiled_s", "median"),
            reference_mhz=("sm_clock_mhz", "median"),
        ).dropna(subset=["reference_s"])

    @cached_property
    def per_s(self) -> pd.Series:
        """What spreads are shown as shares of, by place: the reference, or where there is none the
        median of all harnesses' medians."""
        medians = self.figures.groupby([*PLACE, "variant"]).median_s.median()
        return self.references.reference_s.combine_first(medians.groupby(PLACE).median())

    @cached_property
    def spreads(self) -> pd.DataFrame:
        """The spread of every harness on every workload: `spread_s` in seconds, `per_s`, the time
        that it is shown as a share of, and `spread`, that share; for the others `ratio`, our spread
        over theirs, with its interval."""
        rows = []
        for place, cell in self.figures.groupby(PLACE, sort=False):
            per_s = self.per_s[place]
            runs = cell.groupby(["variant", "process"]).median_s.agg(list)
            for name in (OURS, *RIVALS[place[1]]):
                spread_s = scoring.spread(where(cell, variant=name).median_s)
                if np.isnan(spread_s):
                    continue
                ratio = (np.nan,) * 3
                if name != OURS and OURS in runs:
                    both = pd.concat([runs[OURS], runs[name]], axis=1).dropna()
                    ratio = scoring.spread_ratio(both.iloc[:, 0], both.iloc[:, 1])
                rows.append((*place, name, spread_s, per_s, spread_s / per_s, *ratio))
        columns = [*PLACE, "variant", "spread_s", "per_s", "spread", *_RATIO]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def own_noise(self) -> pd.DataFrame:
        """What our stopwatch moves by itself, and what else moves it, by place: `own_s`, the spread
        of successive figures, `across_s`, that of as many from different processes (NaN of one),
        and both as the shares that `spreads` gives, `own` and `across`."""

        def typical(runs: pd.DataFrame, by: str) -> pd.Series:
            spreads = runs.groupby([*PLACE, by]).median_s.agg(scoring.spread)
            return spreads.groupby(PLACE).median()

        own_s = typical(self.part("long", "median_s"), "process")
        across_s = typical(self.ours, "replicate").reindex(own_s.index)
        table = pd.DataFrame({"own_s": own_s, "across_s": across_s})
        per_s = self.per_s.reindex(own_s.index)
        return table.assign(own=own_s / per_s, across=across_s / per_s).dropna(subset=["own"])

    @cached_property
    def biases(self) -> pd.DataFrame:
        """How far every harness's median figure lies from the reference, where there is one: the
        columns of `references`, `bias` as a share of it, `off_s` in seconds, and `within`, whether
        that keeps the rule; wall times have none."""
        medians = self.figures.groupby([*PLACE, "variant"], sort=False).median_s.median()
        table = medians.reset_index().join(self.references, on=PLACE, how="inner")
        off_s = table.median_s - table.reference_s
        bias, short = off_s / table.reference_s, table.reference_s < SHORT_S
        within = np.where(short, off_s.abs() <= BIAS_SHORT_S, bias.abs() <= BIAS)
        within |= table.quantity == "step_wall"
        return table.assign(bias=bias, off_s=off_s, within=within)

    @cached_property
    def asked(self) -> pd.DataFrame:
        """Every 95 % interval of ours beside what it should hold: `kind`, one of `COVERED`, `op`,
        `quantity`, `low_s`, `high_s`, `truth_s`, `held`."""
        rows = []
        for place, runs in self.ours.groupby(PLACE, sort=False):
            around = intervals.median_interval(runs.groupby("process").median_s.median())
            if place in self.references.index and around.exact:
                truth_s = self.references.reference_s[place]
                rows.append((OVER_PROCESSES, *place, around.low, around.high, truth_s))
        columns = ["kind", *PLACE, "low_s", "high_s", "truth_s"]
        inside = [
            self.part("long", "rest_s").assign(kind=LONG),
            self.ours.assign(kind=APART_IN_TIME),
        ]
        over_blocks = pd.concat(inside).rename(columns={"rest_s": "truth_s"})[columns]
        table = pd.concat([over_blocks, pd.DataFrame(rows, columns=columns)], ignore_index=True)
        table = table.dropna(subset=["low_s", "truth_s"])
        return table.assign(held=table.truth_s.between(table.low_s, table.high_s))

    @cached_property
    def coverages(self) -> pd.DataFrame:
        """How many of our intervals hold what they should, by `kind` and `quantity`; `all` stands
        for the cold and the warm GPU times, which the targets are about."""
        on_gpu = self.asked[self.asked.quantity != "step_wall"].assign(quantity="all")
        held = dict(list(pd.concat([on_gpu, self.asked]).groupby(["kind", "quantity"]).held))
        return _shares(
            ["kind", "quantity"],
            (((kind, q), held.get((kind, q), ())) for kind in COVERED for q in ("all", *RIVALS)),
        )

    @cached_property
    def errors(self) -> pd.DataFrame:
        """How often equals were told apart (`kind` same), and a true 2 % found (effect), by
        `variant` and what counted: `verdict`, `verdict of 3 processes`, `interval` (excludes 1),
        `1% apart`."""
        found = []
        for kind, (_, claimed) in PAIRS.items():
            mine, threes = self.compared(kind), self.threes(kind)
            off = mine.ratio - 1
            found += [
                ((OURS, kind, "verdict"), mine.verdict.isin(claimed)),
                ((OURS, kind, f"verdict of {TOGETHER} processes"), threes.verdict.isin(claimed)),
                ((OURS, kind, "interval"), (mine.ratio_low > 1) | (mine.ratio_high < 1)),
                ((OURS, kind, "1% apart"), (off if kind == "effect" else off.abs()) > APART),
            ]
        effects = self.part("effect", "ratio")
        for name in [rival for rivals in RIVALS.values() for rival in rivals]:
            runs = where(self.figures, variant=name).sort_values("replicate")
            steps = runs.groupby(["process", "op"]).median_s.pct_change().dropna()
            found += [
                ((name, "same", "1% apart"), steps.abs() > APART),  # from a replicate to the next
                ((name, "effect", "1% apart"), where(effects, variant=name).ratio - 1 > APART),
            ]
        return _shares(["variant", "kind", "by"], found)

    def compared(self, kind: str) -> pd.DataFrame:
        """Our comparisons of one kind of `PAIRS` that gave a ratio."""
        return where(self.part(PAIRS[kind][0], "ratio"), variant=OURS)

    def threes(self, kind: str) -> pd.DataFrame:
        """What threes of processes say of a pair together, by `judge.replication`: `op`,
        `quantity`, `ratio` with its interval, `noise_floor`, `verdict`."""
        rows = []
        for place, cell in self.compared(kind).groupby(PLACE):
            # An effect is measured in every replicate, an A/A pair once in a process.
            turn = cell.sort_values("replicate").groupby("process").cumcount()
            for _, runs in cell.groupby(turn):
                runs = runs.sort_values("process")
                for first in range(0, len(runs) - TOGETHER + 1, TOGETHER):
                    three = runs.iloc[first : first + TOGETHER]
                    ones = np.ones_like
                    each = [intervals.ratio_interval(r, ones(r)) for r in three.block_ratios]
                    found = replication.pooled(each, logarithmic=True)
                    floor, ratio = float(three.noise_floor.max()), found.interval
                    verdict = replication.verdict(found, floor)
                    rows.append((*place, ratio.median, ratio.low, ratio.high, floor, verdict))
        return pd.DataFrame(rows, columns=[*PLACE, *_RATIO, "noise_floor", "verdict"])

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Wall seconds of one estimate, median and largest, by `variant` and `quantity`."""
        grouped = self.figures.groupby(["variant", "quantity"], sort=False).cost_s
        return grouped.agg(cost_s="median", largest_s="max").reset_index()


def _shares(keys: list[str], found: Iterable[tuple[tuple[str, ...], Sequence]]) -> pd.DataFrame:
    """A `scoring.Share` for each key that has outcomes."""
    rows = [(*key, *scoring.share(int(sum(each)), len(each))) for key, each in found if len(each)]
    return pd.DataFrame(rows, columns=[*keys, *scoring.Share._fields])
