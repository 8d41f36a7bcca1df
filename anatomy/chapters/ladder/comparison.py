"""The rungs against each other: one comparison for each op, and what follows for each rung."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.ladder import copies, rungs
from anatomy.chapters.ladder.ceilings import Ceiling
from anatomy.chapters.ladder.requirements import FORWARD_BACKWARD
from anatomy.chapters.ladder.rungs import Call
from anatomy.chapters.ladder.steps import Bench, Ready, give_back, with_optimizer
from anatomy.comparison import compare
from anatomy.table import intervals

Ceilings = Mapping[str, Ceiling]  # by number format
Row = Mapping[str, Any]

QUANTITY = "step_wall"
SETTLE_S = 2.0  # after which settling gives up: all ways have run, and two rounds are to agree
# Columns of what a step is held against, of its own figures: of rung 0's duplicate they are null.
_BEFORE = ("before", "ratio_before", "ratio_before_low", "ratio_before_high", "verdict_before")
_USES = ("uses", "uses_low", "uses_high", "pays")
_SHARE = ("share_of_ceiling", "share_of_ceiling_low", "share_of_ceiling_high")


def compared(
    op: str, ready: Sequence[Ready], bench: Bench, ceilings: Ceilings, iters: int, budget_s: float
) -> tuple[pd.DataFrame | None, dict[str, str]]:
    """The comparison of an op, and why each way that is not in it is not."""
    calls, absent = _calls(op, ready, bench)
    control = rungs.FP32.label
    if control not in calls:
        reason = absent.get(control) or "rung 0, which it would be compared with, can't run"
        return None, dict.fromkeys((each.way.label for each in ready), reason) | absent
    known = {each.way.label: each for each in ready if each.way.label in calls}
    loss = torch.tensor(bench.wanted.loss, dtype=torch.float64)

    def measured(left: dict[str, Call]) -> pd.DataFrame:
        return compare(
            left,
            control=control,
            reference=lambda: loss,
            allowed={label: each.way.loss for label, each in known.items()},
            quantity=QUANTITY,
            op=op,
            flops=3 * bench.size.flops,
            limit={label: f"matmul {each.way.products}" for label, each in known.items()},
            device=bench.x.device,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_S, budget_s),
            profile=False,
        ).table

    try:
        table, blamed = without_culprits(measured, calls, control)
    except Exception as error:  # the other op can be measured all the same
        return None, dict.fromkeys(calls, copies.why(error)) | absent
    finally:
        copies.free_graphs(calls.values())  # a pool is as large as all that a step keeps
    return with_columns(table, known, ceilings, gaps=op == FORWARD_BACKWARD), absent | blamed


def _calls(op: str, ready: Sequence[Ready], bench: Bench) -> tuple[dict[str, Call], dict[str, str]]:
    if op == FORWARD_BACKWARD:
        return {each.way.label: each.call for each in ready}, {}
    calls, absent = {}, {}
    wanted = [each for each in ready if each.way.adamw]
    for each in ready:
        each.call = None
        if not each.way.adamw:
            each.model = None
    bench.forget(wanted)
    for each in wanted:
        try:
            calls[each.way.label] = with_optimizer(each, bench)
        except Exception as error:
            absent[each.way.label] = copies.why(error)
        give_back(bench.x.device)
    return calls, absent


def without_culprits(
    measured: Callable[[dict[str, Call]], pd.DataFrame], calls: Mapping[str, Call], control: str
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of `measured`, without the calls for which it raises, and why each of these is left
    out. Whom an error names goes; if it names nobody, ways with CUDA graphs go first and then
    compiled ones, which have most that can fail. Without `control` there is no comparison."""
    left, absent = dict(calls), {}
    while True:
        try:
            return measured(dict(left)), absent
        except Exception as error:
            blamed = [label for label in _blamed(error, left) if label != control]
            if not blamed:
                raise
            absent |= dict.fromkeys(blamed, copies.why(error))
            left = {label: call for label, call in left.items() if label not in blamed}


def _blamed(error: Exception, calls: Mapping[str, Call]) -> list[str]:
    notes = " ".join(getattr(error, "__notes__", ()))
    # `5 bf16` is the beginning of `5 bf16 without a graph`.
    longest = sorted(calls, key=len, reverse=True)
    for label in longest:
        if repr(label) in notes or str(error).startswith(f"{label} "):
            return [label]
    graphs = [label for label in calls if rungs.BY_LABEL[label].graph]
    return graphs or [label for label in calls if rungs.BY_LABEL[label].mode]


def with_columns(
    table: pd.DataFrame, known: Mapping[str, Ready], ceilings: Ceilings, *, gaps: bool
) -> pd.DataFrame:
    """The comparison with what is known of each way, and what follows for it. `gaps`: the kernels
    that were listed are those of this op."""
    rows = {row["variant"]: row for row in table.to_dict("records")}
    added = []
    for name, row in rows.items():
        each = known[name.removesuffix(" (again)")]
        told = each.way.columns | each.told
        busy = told.get("busy_s")
        told["gap_s"] = max(0.0, row["median_s"] - busy) if gaps and busy else None
        if not gaps:  # the optimizer's kernels were not listed, nor its memory
            told |= {n: None for n in told if n.endswith(("_s", "_bytes")) and n != "setup_s"}
            told |= dict.fromkeys(("kernels_per_call", "kernel_seconds"))
        told |= _share(row, ceilings.get(each.way.products))
        own = row["role"] != "again"
        told |= _against(row, each, rows, known) if own else dict.fromkeys((*_BEFORE, *_USES))
        added.append(told)
    extra = pd.DataFrame(added, index=table.index).astype(object)
    extra = extra.where(extra.notna(), None)
    return pd.concat([table.drop(columns=[c for c in extra if c in table]), extra], axis=1)


def _share(row: Row, ceiling: Ceiling | None) -> dict[str, float | None]:
    """What a step reaches of what the card multiplies at best in its number format."""
    if ceiling is None or row["verdict"] == "impossible":
        return dict.fromkeys(_SHARE)
    rate, low, high = (row["flops"] / row[name] for name in ("median_s", "high_s", "low_s"))
    shares = (rate / ceiling.value, low / ceiling.high, high / ceiling.low)
    return dict(zip(_SHARE, shares, strict=True))


def _against(row: Row, each: Ready, rows: Mapping[str, Row], known: Mapping[str, Ready]) -> dict:
    """A way against that of the rung before, and the steps that pay its longer set-up back."""
    before = each.way.rung.builds_on and each.way.rung.builds_on.label
    if before not in rows:
        return dict.fromkeys((*_BEFORE, *_USES))
    slow, fast = rows[before]["blocks_s"], row["blocks_s"]
    ratio = intervals.ratio_interval(fast, slow)
    word = intervals.verdict(ratio, row["noise_floor"])
    told = dict(zip(_BEFORE, (before, ratio.median, ratio.low, ratio.high, word), strict=True))
    pays = {"faster": True, "undecided": None}.get(word, False)
    cost = max(0.0, each.told["setup_s"] - known[before].told["setup_s"])
    found = intervals.break_even(cost, slow, fast)
    ends = (found.median, found.low, found.high) if pays else (None, None, None)
    steps = [None if end == float("inf") else end for end in ends]
    return told | dict(zip(_USES, (*steps, pays), strict=True))


def refused_rows(op: str, refused: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows without times that say why."""
    return [
        {
            "op": op,
            "variant": way.label,
            "role": "variant",
            "quantity": QUANTITY,
            **way.columns,
            "note": refused[way.label],
        }
        for way in rungs.TRAINING
        if way.label in refused and (op == FORWARD_BACKWARD or way.adamw)
    ]
