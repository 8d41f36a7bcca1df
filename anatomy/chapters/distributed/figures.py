"""Several GPUs in pictures: what each computes and sends when, and what more of them would do."""

from collections.abc import Iterator, Mapping, Sequence
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

LEFT = 64.0  # pixels for the lanes' names
KEY = {"a kernel computes": KERNEL, "bytes move between GPUs, or wait to": COPY}
# What the forward pass of DataParallel is made of, in the order in which it happens.
PARTS = {of.COPIES: COPY, "share out the batch": COPY, of.RUN: KERNEL, "gather": COPY}
BESIDE = {"copied between GPUs": COPY, "the copies run": KERNEL}
SAID = (
    "<b data-weights>{weights}</b> million weights in float32 on <b data-gpus>{gpus}</b> GPUs: "
    "their gradients need an all-reduce of <b data-all-reduce>{all_reduce}</b>. If it slows a "
    "step as much as ours, that takes <b data-step>{step}</b>, an efficiency of "
    "<b data-efficiency>{efficiency}</b>. If nothing hides: <b data-exposed>{exposed}</b>, "
    "<b data-least>{least}</b>."
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
    """The parts of DataParallel's forward pass one behind the other, as it runs them and with one
    thread in place of one for each GPU; each part was timed by itself."""
    seen = {row["variant"]: row for row in rows.select(table, op=of.PARTS)}
    threads = {f"{seen[of.RUN]['gpus']} threads": of.RUN, "1 thread": of.IN_TURN}
    if any(units.missing(seen[each].get("median_s")) for each in (*PARTS, of.IN_TURN)):
        return spans.gap_because(seen[of.RUN].get("note") or "not measured")
    took = {name: seen[name]["median_s"] for name in (*PARTS, of.IN_TURN)}

    def laid(run: str) -> Iterator[tuple[float, float, str, str]]:
        """Start, end, colour and name of each part, where `run` stands for all that runs."""
        start = 0.0
        for part, fill in PARTS.items():
            end = start + took[run if part == of.RUN else part]
            yield start, end, fill, "run" if part == of.RUN else part
            start = end

    def draw(sheet: Canvas) -> None:
        plan = Lanes(sheet, max(end for run in threads.values() for _, end, *_ in laid(run)), LEFT)
        for name, run in threads.items():
            top = sheet.height + 6
            plan.lane(top, name)
            for start, end, fill, part in laid(run):
                plan.box(top, start, end, fill, part)
        sheet.key(plan.axis(sheet.height + 2) + 17, BESIDE, opacity=0.85)

    said = (f"{name}: {units.seconds(took[run], most=2)} to run" for name, run in threads.items())
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
        sent = GRADIENT * sizes.weights(ddp["width"], ddp["layers"])
        known = fit, sent, one["median_s"], ddp["median_s"]
        steps = [scaling.predicted(*known, each) for each in sorted({fit.gpus, *gpus})]
        seen = {row["gpus"]: row for rows_ in (table, *others) if (row := _row(rows_, WEAK, DDP))}
        return _table(steps, seen) + (_calculator(*known, min(gpus)) if calculator else "")

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


def _table(steps: Sequence[Step], seen: Mapping[int, Row]) -> str:
    columns = (
        ("", lambda step: f"{step.gpus}\N{NO-BREAK SPACE}GPUs"),
        ("#all gradients in one all-reduce", lambda step: units.seconds(step.all_reduce_s, most=3)),
        ("#it adds to the step", lambda step: units.seconds(step.added_s, most=3)),
        ("#step, by the fit", lambda step: units.seconds(step.step_s, most=3)),
        ("#efficiency, by the fit", lambda step: units.percent(step.efficiency)),
        ("#step, measured", lambda step: tables.time(seen.get(step.gpus))),
    )
    return tables.by_columns(columns, steps, "Predicted steps of more GPUs")


def _calculator(fit: Fit, sent: float, alone_s: float, step_s: float, gpus: int) -> str:
    """The sentence for the page's own model, and all that docs/assets/several.js needs to say it of
    another."""
    share = scaling.added_share(fit, sent, alone_s, step_s)
    step = scaling.predicted(fit, sent, alone_s, step_s, gpus)
    exposed_s = alone_s + step.all_reduce_s
    times = {"all_reduce": step.all_reduce_s, "step": step.step_s, "exposed": exposed_s}
    said = {name: units.seconds(value, most=3) for name, value in times.items()}
    shares = {"efficiency": step.efficiency, "least": alone_s / exposed_s}
    said |= {name: units.percent(value, 2) for name, value in shares.items()}
    weights = sent / GRADIENT / 1e6
    given = {"start_s": fit.start_s, "rate": fit.rate, "measured": fit.gpus, "share": share}
    given |= {"weights": weights, "alone_s": alone_s, "gpus": gpus}
    data = " ".join(f'data-{name.replace("_", "-")}="{each:.4g}"' for name, each in given.items())
    text = SAID.format(weights=f"{weights:.0f}", gpus=gpus, **said)
    return f'<div class="several-gpus" {data}><p>{text}</p></div>'
