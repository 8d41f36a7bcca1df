"""How a number is made, as a diagram: interleaved blocks, the control twice, interval, verdict."""

from collections.abc import Sequence
from typing import NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, PAPER, QUIET, Canvas
from anatomy.judge import again, rows
from anatomy.judge.rows import Row
from anatomy.record import occasions as kept
from anatomy.record.recording import Recording
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter

STEP = 0.01  # of the axis of ratios
# Orders of the three in the blocks of one process, as `compare` has them by default; a test holds
# them against `measure.blocks`, which needs torch.
ORDERS = ((0, 2, 1), (2, 0, 1), (1, 2, 0), (0, 1, 2), (1, 0, 2), (2, 1, 0))
LETTERS = "abcd"  # under each interval, and before what is said of it
PLOT, TALL = 120.0, 186.0  # pixels: height of the plot of ratios, on a phone and on a desk


class Trio(NamedTuple):
    """Control, variant and the control again, of one comparison; in the order they are sampled."""

    control: Row
    variant: Row  # with the interval and the verdict of all occasions
    again: Row
    # The variant by this occasion's blocks alone, and by those of the one before; None where there
    # was no other.
    now: Row | None = None
    before: Row | None = None

    @property
    def count(self) -> int:
        """Blocks of the first process."""
        found = self.control.get("run_blocks")
        return found[0] if found else len(self.control["blocks_s"])

    @property
    def processes(self) -> int:
        """Fresh processes that measured it."""
        return self.control.get("runs") or 1

    def ratios(self, row: Row) -> list[float]:
        """A row's median over the control's in each block of the first process."""
        pairs = zip(row["blocks_s"], self.control["blocks_s"], strict=True)
        return [above / below for above, below in pairs][: self.count]


def recorded(table: Sequence[Row]) -> Trio:
    """The rows of one operation and quantity that the diagram draws."""
    by_role = {row["role"]: row for row in table}
    if len(table) != 3 or set(by_role) != {"control", "variant", "again"}:
        raise BadParameter(
            "the diagram draws a control, its duplicate and one variant beside them."
        )
    return Trio(by_role["control"], by_role["variant"], by_role["again"])


def interleaved(
    experiment: str,
    *,
    quantity: str | None = None,
    caption: str | None = None,
    several: str | None = None,
) -> str:
    """The blocks of one process in the order that `compare` takes them, each block's ratios to the
    control, and over all processes their interval and the verdict.

        interleaved("worked_example.kernel", quantity="gpu_cold")

    Args:
        experiment: One that holds a single variant against the control, by its defaults.
        several: What the caption adds where it was measured on several occasions.
    """
    found = current().find(experiment, **selectors(experiment, {}, None, quantity))
    held = found.recording.rows if found.recording else ()
    if several and any(row.get("occasions", 1) > 1 for row in held):
        caption = f"{caption or ''} {several}".strip()

    def draw() -> str:
        trio = recorded(rows.select(found.recording.rows, quantity=quantity))
        if trio.variant.get("occasions", 1) > 1:
            alone = kept.alone(found.recording).rows
            now = recorded(rows.select(alone, quantity=quantity)).variant
            trio = trio._replace(now=now, before=_before(found.recording, now))
        variant = trio.variant["variant"]
        label = (
            f"{trio.count} blocks, each with the control, {variant} and the control again in a "
            f"changing order. In each block both are divided by the control. The control again: "
            f"{_interval(trio.again)}. {variant}: "
            + "; ".join(f"{when}{_interval(row)}, {row['verdict']}" for when, row in _told(trio))
            + "."
        )
        return canvas.both(lambda sheet: _drawn(sheet, trio), label)

    return framing.exhibit(found, caption, draw)


def _before(found: Recording, now: Row) -> Row:
    """A variant's row as the occasion before this one found it."""
    (seen,) = (
        each
        for each in kept.seen(found)
        if each.figure == "ratio"
        and all(each.row.get(name) == now.get(name) for name in ("op", "quantity", "variant"))
    )
    one = seen.found[-2]
    ratios = {"ratio": one.median, "ratio_low": one.low, "ratio_high": one.high}
    return now | ratios | {"verdict": again.word(seen, one)}


def _interval(row: Row) -> str:
    return f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"


def _drawn(sheet: Canvas, trio: Trio) -> None:
    desk = sheet.width > 500
    left, right = 44.0, 470.0 if desk else 252.0
    sheet.words(1, 12, "1. Time them in turn, in short blocks", bold=True)
    top = _legend(sheet, trio, 30) + (8 if desk else 6)
    _blocks(sheet, trio, left, right if desk else sheet.width - 2, top)
    heading = top + 56
    said = "2. Divide by the control" + (", block by block: time / control" if desk else "")
    sheet.words(1, heading, said, bold=True)
    if desk:
        sheet.words(right + 14, heading, "3. Interval and verdict", bold=True)
    bottom = _plot(sheet, trio, left, right, heading + 14)
    if not desk:
        sheet.words(1, bottom + 22, "3. Interval and verdict", bold=True)
        bottom += 26
        for first, row in _lines(trio):
            _say(sheet, 12, bottom + 16, 16, row, first)
            bottom += 52


def _told(trio: Trio) -> list[tuple[str, Row]]:
    """The variant on this occasion and on all of them, where there are several."""
    if trio.now is None:
        return [("", trio.variant)]
    return [
        ("now ", trio.now),
        ("on another day, card and host ", trio.before),
        ("all, and what a further host may add ", trio.variant),
    ]


def _lines(trio: Trio) -> list[tuple[str, Row]]:
    """What stands over each interval, as they stand from the left."""
    name = trio.variant["variant"]
    several = [f"{name}, now:", "an earlier day:", "on these pages:"]
    heads = ["control / control", *(several if trio.now else [f"{name}:"])]
    told = [trio.again, *(row for _, row in _told(trio))]
    lettered = (f"{letter}. {head}" for letter, head in zip(LETTERS, heads, strict=False))
    return list(zip(lettered, told, strict=True))


def _legend(sheet: Canvas, trio: Trio, y: float) -> float:
    """What the colours are; returns the line under them."""
    x = 1.0
    called = f"the control, {trio.control['variant']}", trio.variant["variant"], "the control again"
    for row, words in zip(trio[:3], called, strict=True):
        if x + 18 + canvas.wide(words, 11) > sheet.width:
            x, y = 1.0, y + 18
        _cell(sheet, x, y - 10, 13, row["role"])
        x += 18 + sheet.words(x + 18, y, words, size=11, colour=MUTED) + 20
    return y


def _cell(sheet: Canvas, x: float, y: float, width: float, role: str) -> None:
    """One variant's part of a block; the control's duplicate is hollow."""
    sheet.box(x, y, width, 14, round_=1.5, **_look(role))


def _look(role: str) -> dict[str, str]:
    colour = BAD if role == "variant" else GOOD
    return {"fill": PAPER if role == "again" else colour, "edge": colour}


def _blocks(sheet: Canvas, trio: Trio, left: float, right: float, y: float) -> None:
    """Each block's parts in the order that they are asked in, with the block's number."""
    orders = ORDERS
    each = (right - left) / trio.count
    wide = (each - 5) / 3
    sheet.words(1, y + 12, "block", size=11, colour=MUTED)
    for number in range(trio.count):
        for place, index in enumerate(orders[number % len(orders)]):
            x = left + number * each + 2.5 + place * wide
            _cell(sheet, x + 0.5, y, wide - 1, trio[index]["role"])
        middle = left + (number + 0.5) * each
        sheet.words(middle, y + 29, str(number + 1), size=10, anchor="middle", colour=MUTED)
    more = trio.processes - 1
    if more and sheet.width > 500:
        word = "process" if more == 1 else "processes"
        for line, text in ((9, "and so again in"), (23, f"{more} more fresh {word}")):
            sheet.words(right + 14, y + line, text, size=11, colour=MUTED)


def _plot(sheet: Canvas, trio: Trio, left: float, right: float, top: float) -> float:
    """Ratios by block, the noise floor behind them, and intervals to the right; its lower edge."""
    series = (trio.again, trio.variant)
    spans = [x for row in series for x in (*trio.ratios(row), row["ratio_low"], row["ratio_high"])]
    floor = trio.again["noise_floor"]
    low = (min(*spans, 1 - floor) // STEP) * STEP
    high = (max(*spans, 1 + floor) // STEP + 1) * STEP
    tall_plot = PLOT if sheet.width < 500 else TALL

    def at(ratio: float) -> float:
        return top + (high - ratio) / (high - low) * tall_plot

    end = sheet.width - 1 if sheet.width < 500 else right + 72
    tall = at(1 - floor) - at(1 + floor)
    sheet.box(left, at(1 + floor), end - left, tall, fill=QUIET, opacity=0.3)
    for step in range(-50, 51):
        tick = 1 + step * STEP
        if low <= tick <= high:
            look = {"colour": LINE, "thick": 1} if step else {"colour": MUTED, "thick": 1.6}
            sheet.line((left, at(tick)), (end, at(tick)), **look)
            y, text = at(tick) + 4, f"{tick:.2f}"
            sheet.words(left - 6, y, text, size=10.5, anchor="end", colour=MUTED)
    each = (right - left) / trio.count
    for row, shift in zip(series, (-3, 3), strict=True):
        for number, ratio in enumerate(trio.ratios(row)):
            x = left + (number + 0.5) * each + shift
            sheet.box(x - 3, at(ratio) - 3, 6, 6, round_=3, **_look(row["role"]))
    for number, (first, row) in enumerate(_lines(trio)):
        apart = 17 if sheet.width > 500 else 19
        x, look = right + 12 + apart * number, _look(row["role"])
        ends = [at(row[name]) for name in ("ratio_low", "ratio_high")]
        sheet.line(*((x, y) for y in ends), colour=look["edge"], thick=3)
        sheet.box(x - 4.5, at(row["ratio"]) - 4.5, 9, 9, round_=4.5, **look)
        sheet.words(x, top + tall_plot + 12, first[0], size=11, anchor="middle", colour=MUTED)
        if sheet.width > 500:
            _say(sheet, right + 80, top + 10 + 49 * number, 15, row, first)
    return top + tall_plot + (12 if sheet.width < 500 else 0)


def _say(sheet: Canvas, x: float, y: float, step: float, row: Row, first: str) -> None:
    """What is said of an interval, from the line `y` on; `first` and a verdict are bold."""
    floor = f"noise floor {units.percent(row['noise_floor'], 2)}"
    again, colour = row["role"] == "again", _look(row["role"])["edge"]
    last = floor if again else row["verdict"]
    for line, (text, bold) in enumerate(
        [(first, True), (_interval(row), False), (last, not again)]
    ):
        ink = colour if bold else INK
        sheet.words(x, y + step * line, text, size=11, colour=ink, bold=bold)
