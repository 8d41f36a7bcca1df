"""One process of the comparison. Its number alone decides what is drawn, so it can be run again."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from anatomy.chapters.harnesses.stopwatches.adapters import Figure, Harness, ours, quick
from anatomy.chapters.harnesses.stopwatches.workloads import CUDA_ONLY, EFFECTS, WORKLOADS, Call
from anatomy.comparison import compare
from anatomy.measure.blocks import balanced_orders
from anatomy.measure.stopwatch import Stopwatch
from anatomy.table.errors import AnatomyError

QUANTITIES = ("gpu_cold", "gpu_warm", "step_wall")
EFFECT_QUANTITIES = ("gpu_cold", "gpu_warm")  # effects are put into the GPU's work alone
SUCCESSIVE, LONG_QUANTITIES = 6, ("gpu_cold", "gpu_warm")  # of long runs: estimates without a pause
DIGITS = 6  # significant ones of a figure; a recording has hundreds
SETTLE_S, SETTLE_SIDE = 0.03, 4096  # products before every run, for equal clocks to begin with
SETTLE_CALLS = 1000  # on the fastest GPU of a decade from now, or under a clock that stands still

Row = dict[str, Any]


@dataclass
class Process:
    """One process of the comparison, and the rows that it has so far."""

    watch: Stopwatch  # also the clock for what every run costs
    number: int  # which process it is, from 0; turns the orders
    replicates: int  # how often every harness estimates every workload
    budget_s: float  # wall time of one run
    scale: float  # factor on every size
    harnesses: Sequence[Harness]
    workloads: Mapping[str, Callable] = field(default_factory=lambda: WORKLOADS)
    effects: Mapping[str, Callable] = field(default_factory=lambda: EFFECTS)
    load: Callable[[], Any] | None = None  # settles the clocks; by default a product of matrices
    rows: list[Row] = field(default_factory=list)
    warned: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.load is None:
            self.load = settle_load(self.watch.device, self.scale)

    def run(self) -> list[Row]:
        """Everything that one process does, in order; returns the rows."""
        able = [each for each in self.harnesses if each.missing is None]
        for harness in self.harnesses:
            if harness.missing:
                self._add("estimate", "all", harness.quantity, harness.name, note=harness.missing)
        calls = dict(self._built(self.workloads))
        blocks: dict[tuple[str, str], dict[Any, tuple]] = defaultdict(dict)
        for replicate in range(self.replicates):
            for index, (op, call) in enumerate(calls.items()):
                self._estimates(op, call, able, replicate, index, blocks)
                quantity = QUANTITIES[(self.number + replicate + index) % len(QUANTITIES)]
                found = self._pair("pair", op, quantity, {"a": call, "b": call}, replicate)
                blocks[op, quantity]["pair", replicate] = found
        self._tell_the_truth(blocks)
        for op, call in calls.items():
            for quantity in LONG_QUANTITIES:
                self._long_run(op, quantity, call)
        pairs = dict(self._built(self.effects))
        for op, (plain, more) in pairs.items():
            for quantity in EFFECT_QUANTITIES:
                self._pair("pair", op, quantity, {"a": plain, "b": plain}, 0)
                for replicate in range(self.replicates):
                    self._pair("effect", op, quantity, {"a": plain, "b": more}, replicate)
            for harness in able:
                if not harness.name.startswith("compare"):
                    self._point_effect(op, plain, more, harness)
        if pairs:
            self._overhead(*list(pairs.items())[-1])
        return self.rows

    def _built(self, builders: Mapping[str, Callable]) -> Iterator[tuple[str, Any]]:
        for op, build in builders.items():
            if op in CUDA_ONLY and self.watch.device.type != "cuda":
                self._add("estimate", op, None, None, note="needs CUDA's spin kernel")
                continue
            try:
                torch.manual_seed(self.number)
                built = build(self.watch.device, self.scale)
                for call in built if isinstance(built, tuple) else (built,):
                    self.watch.wall([call] * 3)
            except RuntimeError as error:  # out of memory is one
                self._add("estimate", op, None, None, note=_first_line(error))
                continue
            yield op, built

    def _estimates(self, op, call, able, replicate, index, blocks) -> None:
        """Every harness once on one workload, in the order of this row of the square."""
        orders = balanced_orders(len(able), seed=0) or [[]]
        order = orders[(self.number * self.replicates + replicate + index) % len(orders)]
        for place, which in enumerate(order):
            each = able[which]
            figures, cost_s, note = self._timed(lambda h=each: h.run(call))
            if note:
                self._add("estimate", op, each.quantity, each.name, replicate=replicate, note=note)
            for name, figure in (figures or {}).items():
                self._add(
                    "estimate",
                    op,
                    each.quantity,
                    name,
                    replicate=replicate,
                    place=place,
                    cost_s=cost_s,
                    **_columns(figure),
                )
                if figure.blocks_s:
                    blocks[op, each.quantity][replicate] = figure.blocks_s

    def _pair(self, part: str, op: str, quantity: str, calls: dict[str, Call], replicate: int):
        """One comparison of two callables with a verdict; returns the blocks of the first."""
        rows, cost_s, note = self._timed(lambda: quick(self.watch, self.budget_s, quantity, calls))
        if note:
            self._add(part, op, quantity, "compare", replicate=replicate, note=note)
            return ()
        first, second, again = rows
        wanted = ("median_s", "low_s", "high_s", "samples", "wide")
        wanted += ("ratio", "ratio_low", "ratio_high", "noise_floor", "verdict")
        row = {name: second[name] for name in wanted}
        pairs = zip(second["blocks_s"], first["blocks_s"], strict=True)
        row["block_ratios"] = [float(f"{above / below:.5g}") for above, below in pairs]
        self._add(part, op, quantity, "compare", replicate=replicate, cost_s=cost_s, **row)
        return (*first["blocks_s"], *again["blocks_s"])

    def _point_effect(self, op: str, plain: Call, more: Call, harness: Harness) -> None:
        """Two estimates one after the other, as one compares with a harness that has no pairs."""
        before, cost_s, note = self._timed(lambda: harness.run(plain))
        after, cost_too_s, note_too = self._timed(lambda: harness.run(more))
        if note or note_too:
            self._add("effect", op, harness.quantity, harness.name, note=note or note_too)
            return
        for name, figure in after.items():
            self._add(
                "effect",
                op,
                harness.quantity,
                name,
                replicate=0,
                cost_s=cost_s + cost_too_s,
                ratio=figure.seconds / before[name].seconds,
                **_columns(figure),
            )

    def _tell_the_truth(self, blocks: Mapping[tuple[str, str], Mapping[Any, tuple]]) -> None:
        """Put beside each of our estimates what the rest of the process says of the same thing;
        with its own blocks, its interval would be asked about itself."""
        for row in self.rows:
            if row["part"] == "estimate" and row.get("variant") == "compare" and "note" not in row:
                runs = blocks[row["op"], row["quantity"]]
                others = [b for key, run in runs.items() if key != row["replicate"] for b in run]
                if others:
                    row["rest_s"] = _short(median(others))

    def _long_run(self, op: str, quantity: str, call: Call) -> None:
        """Successive estimates by `compare`, beside each what the others say, by rule 9."""
        found, cost_s, note = self._timed(
            lambda: [
                ours(self.watch, self.budget_s, quantity, call)["compare"]
                for _ in range(1 + SUCCESSIVE)
            ][1:]
        )
        if note:
            self._add("long", op, quantity, "compare", note=note)
            return
        for index, figure in enumerate(found):
            others = [block for other in found if other is not figure for block in other.blocks_s]
            self._add(
                "long",
                op,
                quantity,
                "compare",
                replicate=index,
                cost_s=cost_s / (1 + SUCCESSIVE),
                rest_s=median(others) if others else None,
                **_columns(figure),
            )

    def _overhead(self, op: str, calls: tuple[Call, Call]) -> None:
        """What a whole comparison of two kernels costs that have run before, by its defaults."""
        both = dict(zip(("a", "b"), calls, strict=True))
        for quantity in EFFECT_QUANTITIES:
            for part in (None, "overhead"):  # the first call in a process starts the profiler
                found, cost_s, note = self._timed(
                    lambda q=quantity: compare(
                        both,
                        quantity=q,
                        device=self.watch.device,
                        settle_cap_s=0.0,
                        watch=self.watch,
                    )
                )
                if part:
                    told = {"note": note} if note else _overhead_columns(found.table)
                    self._add(part, op, quantity, "compare", replicate=0, cost_s=cost_s, **told)

    def _timed(self, act: Callable[[], Any]) -> tuple[Any, float | None, str | None]:
        """What `act` gave after the settle load, the wall seconds it took, and why it failed."""
        settle(self.watch, self.load)
        known = len(self.watch.warnings)
        try:
            begun = self.watch.now()
            given = act()
            self.watch.drain()
            return given, self.watch.now() - begun, None
        except (AnatomyError, RuntimeError, AssertionError) as error:
            return None, None, _first_line(error)
        finally:
            # Hundreds of comparisons may warn of the same thing; it is told once, with a count.
            for warning in self.watch.warnings[known:]:
                self.warned[re.sub(r"\d[\d.]*", "some", warning.rpartition(": ")[2])] += 1
            del self.watch.warnings[known:]

    def _add(self, part: str, op: str, quantity: str | None, variant: str | None, **more) -> None:
        named = {"part": part, "op": op, "quantity": quantity, "variant": variant}
        self.rows.append(compact(named | more))


def settle_load(device: torch.device, scale: float) -> Call:
    """What is run before each measurement to settle the clocks: a product of two matrices."""
    side = max(8, round(SETTLE_SIDE * scale))
    square = torch.randn(side, side, dtype=torch.bfloat16, device=device)
    return lambda: square @ square


def settle(watch: Stopwatch, load: Call) -> None:
    """Run the load for `SETTLE_S`."""
    begun = watch.now()
    for _ in range(SETTLE_CALLS):
        watch.wall([load])
        if watch.now() - begun >= SETTLE_S:
            break


def compact(row: Row) -> Row:
    """A row without what it lacks, its numbers as short as their digits are worth."""
    return {name: _short(value) for name, value in row.items() if value is not None}


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _columns(figure: Figure) -> Row:
    return {
        "median_s": figure.seconds,
        "low_s": figure.low_s,
        "high_s": figure.high_s,
        "samples": figure.samples,
        **figure.more,
    }


def _overhead_columns(table) -> Row:
    return {"median_s": table.median_s.iloc[0], "wide": bool(table.wide.any())}


def _first_line(error: BaseException) -> str:
    line = next(iter(str(error).strip().splitlines()), "") or "no message"
    return f"{type(error).__name__}: {line[:160]}"
