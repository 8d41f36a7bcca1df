"""Several GPUs in pictures: what each computes and sends when, and what more of them would do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import scaling
from anatomy.chapters.distributed.requirements import DDP, GIGABYTE, GRADIENT, ONE, STARTUP, WEAK
from anatomy.chapters.distributed.scaling import Fit, Step
from anatomy.figures import framing, tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.diagrams.lanes import COPY, KERNEL, LANE, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.parts import sizes
from anatomy.record.showing import current
from anatomy.table import units

LEFT, LEFT_OF_PARTS = 64.0, 104.0  # pixels for the lanes' names
KEY = {"a kernel computes": KERNEL, "bytes move between GPUs, or wait to": COPY}
# What the forward pass of DataParallel is made of, in the order in which it happens; and what else
# could run its copies.
PARTS = {of.COPIES: COPY, of.SHARES: COPY, of.RUN: KERNEL, of.GATHER: COPY}
RUNS = {"DataParallel": of.RUN, "kept threads": of.STAYING, "without cuDNN": of.RUN_OFF}
BESIDE = {"copied between GPUs": COPY, "the copies run": KERNEL}
SAID = (
    "<b data-weights>{weights}</b> million weights in float32 on <b data-gpus>{gpus}</b> GPUs: "
    "their gradients need an all-reduce of <b data-all-reduce>{all_reduce}</b>. If it slows a "
    "step as much as ours, that takes <b data-step>{step}</b>, an efficiency of "
    "<b data-efficiency>{efficiency}</b>; as much as in our one bucket: "
    "<b data-exposed>{exposed}</b>, <b data-least>{least}</b>. Each GPU keeps "
    "<b data-ddp>{ddp}</b> under DDP, <b data-fsdp>{fsdp}</b> under FSDP2, and its activations."
)


@drawn_from("distributed.overlap")
def lanes(table: Sequence[Row], ways: Mapping[str, str]) -> str:
    """One profiled step of each way: for every GPU a lane of what it computes, and one of what
    moves between GPUs.

        lanes({"DDP": "DDP", "FSDP2": "FSDP2"})

    Args:
        ways: Variant of `distributed.overlap` -> what it is called, in the order drawn.
    """
    table = rows.select(table, op="profile of *", variants=list(ways))
    table = [row for row in table if row.get("compute_spans_s")]
    if not table:
        return '<p class="key">Not shown: no rank was profiled.</p>'
    said = "; ".join(_said(row, ways[row["variant"]]) for row in table if not row["rank"])
    return canvas.both(lambda sheet: _drawn(sheet, table, ways), f"One step. {said}.")


def _said(row: Row, name: str) -> str:
    columns = "communication_s", "exposed_s", "idle_s"
    times = (units.seconds(row[each], most=2) for each in columns)
    return "{}: sends {}, exposed {}, idle {}".format(name, *times)


def _drawn(sheet: Canvas, table: Sequence[Row], ways: Mapping[str, str]) -> None:
    longest = max(row["profiled_step_s"] for row in table)
    plan = Lanes(sheet, longest, left=LEFT)
    for way, name in ways.items():
        several = sorted((r for r in table if r["variant"] == way), key=lambda row: row["rank"])
        if not several:
            continue
        top = sheet.height + 14
        sheet.paragraph(1, top, sheet.width - 2, _said(several[0], name), bold=True)
        for row in several:
            top = sheet.height + 6
            plan.lane(top, f"GPU {row['rank']}")
            plan.lane(top + LANE, "sends")
            for column, at, fill in (
                ("compute_spans_s", top, KERNEL),
                ("communication_spans_s", top + LANE, COPY),
            ):
                ends = row[column]
                for start, end in zip(ends[::2], ends[1::2], strict=True):
                    plan.box(at, start, end, fill)
        sheet.space(10)
    sheet.key(plan.axis(sheet.height + 2) + 17, KEY, opacity=0.85)


@drawn_from("distributed.training")
def data_parallel(table: Sequence[Row]) -> str:
    """The parts of DataParallel's forward pass one behind the other, as it runs them, with threads
    that have run before, and without cuDNN's attention; each part was timed by itself."""
    seen = {row["variant"]: row for row in rows.select(table, op=of.PARTS)}
    needed = {*PARTS, *RUNS.values()}
    if any(units.missing(seen[each].get("median_s")) for each in needed):
        return spans.gap_because(seen[of.RUN].get("note") or "not measured")
    took = {name: seen[name]["median_s"] for name in needed}

    def laid(run: str) -> Iterator[tuple[float, float, str, str]]:
        """Start, end, colour and name of each part, where `run` stands for all that runs."""
        start = 0.0
        for part, fill in PARTS.items():
            end = start + took[run if part == of.RUN else part]
            yield start, end, fill, "run" if part == of.RUN else part
            start = end

    def draw(sheet: Canvas) -> None:
        longest = max(end for run in RUNS.values() for _, end, *_ in laid(run))
        plan = Lanes(sheet, longest, LEFT_OF_PARTS)
        for name, run in RUNS.items():
            top = sheet.height + 6
            plan.lane(top, name)
            for start, end, fill, part in laid(run):
                plan.box(top, start, end, fill, part)
        sheet.key(plan.axis(sheet.height + 2) + 17, BESIDE, opacity=0.85)

    said = (f"{name}: {units.seconds(took[run], most=2)} to run" for name, run in RUNS.items())
    copies = units.seconds(took[of.COPIES], most=2)
    return canvas.both(draw, f"Forward pass. {copies} to copy the model; {'; '.join(said)}.")


def predicted(
    gpus: Sequence[int] = (4, 8),
    *,
    measured: Sequence[int] = (),
    calculator: bool = False,
    caption: str | None = None,
    **params: Any,
) -> str:
    """A DDP step of more GPUs, by the fit of the all-reduce and the steps of the GPUs measured.

        predicted((4, 8))

    Args:
        measured: Numbers of GPUs whose own recordings stand beside the prediction.
        calculator: Under it the same for a model of the reader's, by docs/assets/several.js.
    """
    showing = current()
    names = "distributed.collectives", "distributed.training"
    calls = [(name, params) for name in names]
    calls += [("distributed.training", {"world_size": each}) for each in measured]
    found = showing.find_together(calls)

    def draw() -> str:
        if any(each.recording is None for each in found[:2]):
            return ""
        known, table = (each.recording.rows for each in found[:2])
        others = [each.recording.rows for each in found[2:] if each.recording]
        fit, one, ddp = of_fit(known), _row(table, WEAK, ONE), _row(table, WEAK, DDP)
        if fit is None or one is None or ddp is None:
            return '<p class="key">Not shown: the fit or the steps were not measured.</p>'
        alone_s = one["median_s"]
        given = fit, GRADIENT * sizes.weights(ddp["width"], ddp["layers"]), alone_s
        ends = [alone_s * ddp[each] for each in ("ratio", "ratio_low", "ratio_high")]
        steps = [
            tuple(scaling.predicted(*given, step_s, each) for step_s in ends)
            for each in sorted({fit.gpus, *gpus})
        ]
        seen = {row["gpus"]: row for rows_ in (table, *others) if (row := _row(rows_, WEAK, DDP))}
        if not calculator or (whole := _row(table, WEAK, of.WHOLE)) is None:
            return _table(steps, seen)
        return _table(steps, seen) + _calculator(*given, ends[0], whole["median_s"], min(gpus))

    return framing.exhibit(found, caption, draw)


def of_fit(table: Sequence[Row]) -> Fit | None:
    """The fit of the all-reduce in a table of `distributed.collectives`; None without one."""
    found = [_row(table, op, "all-reduce") for op in (STARTUP, GIGABYTE)]
    if not all(found):
        return None
    start, more = found
    return Fit(start["median_s"], more["bytes"] / more["median_s"], start["gpus"])


def _row(table: Sequence[Row], op: str, variant: str) -> Row | None:
    wanted = (r for r in table if (r.get("op"), r.get("variant")) == (op, variant))
    return next((row for row in wanted if not units.missing(row.get("median_s"))), None)


def _table(steps: Sequence[tuple[Step, Step, Step]], seen: Mapping[int, Row]) -> str:
    """Predictions, each in the middle and from both ends of the interval of what was measured."""

    def span(low: str, high: str) -> str:
        return low if low == high else f"{low} to {high}"

    def times(of_step: Callable[[Step], float]) -> Callable[[tuple[Step, ...]], str]:
        return lambda each: span(*(units.seconds(of_step(one), most=2) for one in each[1:]))

    columns = (
        ("", lambda each: f"{each[0].gpus}\N{NO-BREAK SPACE}GPUs"),
        (
            "#all gradients in one all-reduce, by the fit",
            lambda each: units.seconds(each[0].all_reduce_s, most=2),
        ),
        ("#it adds to the step", times(lambda step: step.added_s)),
        ("#step, predicted", times(lambda step: step.step_s)),
        (
            "#efficiency, predicted",
            lambda each: span(*(units.percent(one.efficiency, 2) for one in each[:0:-1])),
        ),
        ("#step, measured", lambda each: tables.time(seen.get(each[0].gpus))),
    )
    return tables.by_columns(columns, steps, "Predicted steps of more GPUs")


def _calculator(
    fit: Fit, sent: float, alone_s: float, step_s: float, in_one_s: float, gpus: int
) -> str:
    """The sentence for the page's own model, and all that docs/assets/several.js needs to say it of
    another."""
    share, most = (scaling.added_share(fit, sent, alone_s, each) for each in (step_s, in_one_s))
    step, exposed = (scaling.predicted(fit, sent, alone_s, s, gpus) for s in (step_s, in_one_s))
    weights = sent / GRADIENT
    times = {"all_reduce": step.all_reduce_s, "step": step.step_s, "exposed": exposed.step_s}
    said = {name: units.seconds(value, most=3) for name, value in times.items()}
    shares = {"efficiency": step.efficiency, "least": exposed.efficiency}
    said |= {name: units.percent(value, 2) for name, value in shares.items()}
    kept = {"ddp": of.STATE + of.BUCKET, "fsdp": of.STATE / gpus}
    said |= {name: f"{each * weights / 1e9:.3g} GB" for name, each in kept.items()}
    given = {"start_s": fit.start_s, "rate": fit.rate, "share": share, "most": most}
    given |= {"weights": weights / 1e6, "alone_s": alone_s, "gpus": gpus}
    data = " ".join(f'data-{name.replace("_", "-")}="{each:.4g}"' for name, each in given.items())
    text = SAID.format(weights=f"{weights / 1e6:.0f}", gpus=gpus, **said)
    return f'<div class="several-gpus" {data}><p>{text}</p></div>'
