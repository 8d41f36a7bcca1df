"""One process of the comparison. Its number alone decides what is drawn, so it can be run again."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import torch

from anatomy.chapters.harnesses.stopwatches.adapters import Figures, Harness, Row, ours, pair
from anatomy.chapters.harnesses.stopwatches.workloads import Call, scaled
from anatomy.comparison import compare
from anatomy.measure.blocks import balanced_orders
from anatomy.measure.stopwatch import Stopwatch
from anatomy.table.errors import AnatomyError

QUANTITIES = ("gpu_cold", "gpu_warm", "step_wall")
ON_GPU = ("gpu_cold", "gpu_warm")  # effects are put into the GPU's work; long runs are of it
SUCCESSIVE = 6  # estimates of a long run
DIGITS = 6  # significant ones of a figure; a recording has hundreds
SETTLE_S, SETTLE_SIDE = 0.03, 4096  # products before every run, for equal clocks to begin with
SETTLE_CALLS = 1000  # on the fastest GPU of a decade from now, or under a clock that stands still
Act = Callable[[], Figures]
FAILURES = (AnatomyError, RuntimeError, AssertionError)  # out of memory is a RuntimeError


@dataclass
class Process:
    """One process of the comparison, and the rows that it has so far."""

    watch: Stopwatch  # also the clock for what every run costs
    number: int  # which process it is, from 0; turns the orders
    replicates: int  # how often every harness estimates every workload
    budget_s: float  # wall time of one run
    load: Callable[[], Any]  # settles the clocks
    harnesses: Sequence[Harness]
    workloads: Mapping[str, Callable[[], Call]]
    effects: Mapping[str, Callable[[], tuple[Call, Call]]]
    rows: list[Row] = field(default_factory=list)
    warned: Counter = field(default_factory=Counter)

    def run(self) -> list[Row]:
        """Everything that one process does, in order; returns the rows."""
        for missing in (each for each in self.harnesses if each.missing):
            named = {"quantity": missing.quantity, "variant": missing.name}
            self.rows.append({"part": "estimate", "op": "all", "note": missing.missing} | named)
        able = [each for each in self.harnesses if not each.missing]
        orders = balanced_orders(len(able), seed=0) or [[]]
        calls = self._built(self.workloads)
        for replicate in range(self.replicates):
            for index, (op, call) in enumerate(calls.items()):
                turn = self.number * self.replicates + replicate + index
                for place, which in enumerate(orders[turn % len(orders)]):
                    name, quantity, run, _ = able[which]
                    more = {"replicate": replicate, "place": place}
                    self._add("estimate", op, quantity, partial(run, call), name, **more)
                quantity = QUANTITIES[(self.number + replicate + index) % len(QUANTITIES)]
                self._pair("pair", op, quantity, call, call, replicate)
        for op, call in calls.items():
            for quantity in ON_GPU:
                self._long_run(op, quantity, call)
        effects = self._built(self.effects)
        for op, (plain, more) in effects.items():
            for quantity in ON_GPU:
                self._pair("pair", op, quantity, plain, plain, 0)
                for replicate in range(self.replicates):
                    self._pair("effect", op, quantity, plain, more, replicate)
            for harness in able:
                if not harness.name.startswith("compare"):
                    both = partial(self._one_then_other, harness, plain, more)
                    self._add("effect", op, harness.quantity, both, harness.name, replicate=0)
        for op, both in list(effects.items())[-1:]:
            for quantity in ON_GPU:
                compared = partial(self._whole_comparison, quantity, both)
                self._add("overhead", op, quantity, compared, replicate=0)
        ask_about_the_others(self.rows)
        return [compact(row) for row in self.rows]

    def _built(self, builders: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """What could be built, and has run; of the rest there is a row that says why not."""
        built = {}
        for op, build in builders.items():
            try:
                torch.manual_seed(self.number)
                made = build()
                for call in made if isinstance(made, tuple) else (made,):
                    self.watch.wall([call] * 3)
                built[op] = made
            except FAILURES as error:
                self.rows.append({"part": "estimate", "op": op, "note": first_line(error)})
        return built

    def _add(
        self, part: str, op: str, quantity: str, act: Act, variant: str = "compare", **more: Any
    ) -> None:
        """A row for each figure that `act` gives behind the settle load, with the wall time that it
        took; or one that says why `variant` has none."""
        named = {"part": part, "op": op, "quantity": quantity} | more
        settle(self.watch, self.load)
        known = len(self.watch.warnings)
        try:
            begun = self.watch.now()
            found = act()
            self.watch.drain()
            named["cost_s"] = self.watch.now() - begun
            self.rows += [named | columns for columns in found]
        except FAILURES as error:
            self.rows.append(named | {"variant": variant, "note": first_line(error)})
        finally:
            # Hundreds of comparisons may warn of the same thing; it is told once, with a count.
            for warning in self.watch.warnings[known:]:
                self.warned[re.sub(r"\d[\d.]*", "some", warning.rpartition(": ")[2])] += 1
            del self.watch.warnings[known:]

    def _pair(self, part: str, op: str, quantity: str, plain: Call, other: Call, replicate: int):
        act = partial(pair, self.watch, self.budget_s, quantity, plain, other)
        self._add(part, op, quantity, act, replicate=replicate)

    def _long_run(self, op: str, quantity: str, call: Call) -> None:
        """Successive estimates by `compare`; one more goes before them and is not counted, for the
        card recovers from the settle load."""
        estimate = partial(ours, self.watch, self.budget_s, quantity, call)

        def act() -> Figures:
            found = [estimate()[0] for _ in range(1 + SUCCESSIVE)][1:]
            # What they cost together is the cost of none.
            return [row | {"replicate": n, "cost_s": None} for n, row in enumerate(found)]

        self._add("long", op, quantity, act)

    def _one_then_other(self, harness: Harness, plain: Call, more: Call) -> Figures:
        """Two estimates one after the other, as one compares with a harness that has no pairs."""
        before = harness.run(plain)
        settle(self.watch, self.load)
        after = harness.run(more)
        pairs = zip(before, after, strict=True)
        ratios = [late["median_s"] / early["median_s"] for early, late in pairs]
        # What both cost has a settle load in it.
        return [row | {"ratio": x, "cost_s": None} for row, x in zip(after, ratios, strict=True)]

    def _whole_comparison(self, quantity: str, both: tuple[Call, Call]) -> Figures:
        """What a comparison of two kernels costs that have run before, by its defaults."""
        calls = dict(zip(("a", "b"), both, strict=True))
        how = {"quantity": quantity, "device": self.watch.device, "settle_cap_s": 0.0}
        for _ in range(2):  # the first one in a process starts the profiler
            settle(self.watch, self.load)
            begun = self.watch.now()
            table = compare(calls, watch=self.watch, **how).table
            cost_s = self.watch.now() - begun
        kept = {"median_s": table.median_s[0], "wide": bool(table.wide.any()), "cost_s": cost_s}
        return [{"variant": "compare"} | kept]


def ask_about_the_others(rows: Sequence[Row]) -> None:
    """Put beside each of our estimates what the other blocks of its workload and quantity say: of
    one in a long run those of that run, of the rest those minutes apart. With its own blocks, its
    interval would be asked about itself."""
    together = defaultdict(list)
    for row in rows:
        if "blocks" in row:
            together[row["part"] == "long", row["op"], row["quantity"]].append(row)
    for group in together.values():
        for row in group:
            others = [block for each in group if each is not row for block in each["blocks"]]
            if others and row["part"] in ("estimate", "long"):
                row["rest_s"] = median(others)


def settle_load(device: torch.device, scale: float) -> Call:
    """What is run before each measurement to settle the clocks: a product of two matrices."""
    side = max(8, scaled(SETTLE_SIDE, scale))
    square = torch.randn(side, side, dtype=torch.bfloat16, device=device)
    return lambda: square @ square


def settle(watch: Stopwatch, load: Callable[[], Any]) -> None:
    """Run the load for `SETTLE_S`."""
    begun = watch.now()
    for _ in range(SETTLE_CALLS):
        watch.wall([load])
        if watch.now() - begun >= SETTLE_S:
            break


def compact(row: Row) -> Row:
    """A row as it is kept: without its blocks and what it lacks, numbers of `DIGITS` digits."""
    kept = {name: each for name, each in row.items() if each is not None and name != "blocks"}
    return {n: float(f"{x:.{DIGITS}g}") if isinstance(x, float) else x for n, x in kept.items()}


def first_line(error: BaseException) -> str:
    """What failed, in the first line of what it says."""
    line = next(iter(str(error).strip().splitlines()), "") or "no message"
    return f"{type(error).__name__}: {line[:160]}"
