"""How many claims of each topic hold, as bars in parts."""

from collections import Counter
from collections.abc import Sequence

from anatomy import claims
from anatomy.claims import Result
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import INK, PAPER, QUIET, Canvas

# Verdicts from left to right, and their colours.
TONES = {
    claims.HOLDS: "var(--chart-better)",
    claims.IN_PART: "var(--mixed)",
    claims.FAILS: "var(--chart-worse)",
    claims.INCONCLUSIVE: QUIET,
}
LANE, BAR = 20.0, 14.0  # pixels: a topic's line, and its bar
FEW = 3  # topics with fewer claims are drawn together
OTHERS = "other topics"


def topics(found: Sequence[Result]) -> str:
    """A bar for each topic: its claims with a verdict from recordings, parted by verdict. `found`
    are the results of one machine."""
    counted: dict[str, Counter] = {}
    for result in found:
        if result.word in TONES:
            counted.setdefault(result.claim.topic, Counter())[result.word] += 1
    few = [name for name, verdicts in counted.items() if verdicts.total() < FEW]
    others = sum((counted.pop(name) for name in few), Counter())
    bars = sorted(counted.items(), key=lambda each: (-each[1].total(), each[0]))
    bars += [(OTHERS, others)] if others else []
    if not bars:
        return ""
    said = (f"{name}: {_said(verdicts)}" for name, verdicts in bars)
    return canvas.both(lambda sheet: _drawn(sheet, bars), f"Verdicts by topic. {'; '.join(said)}.")


def _said(verdicts: Counter) -> str:
    return ", ".join(f"{verdicts[word]} {word}" for word in TONES if verdicts[word])


def _drawn(sheet: Canvas, bars: Sequence[tuple[str, Counter]]) -> None:
    _, y = sheet.key(12, TONES)
    left = 16 + max(canvas.wide(name) for name, _ in bars)
    one = (sheet.width - left - 2) / max(verdicts.total() for _, verdicts in bars)
    for number, (name, verdicts) in enumerate(bars):
        top, x = y + 12 + number * LANE, left
        sheet.words(left - 8, top + 11, name, anchor="end", colour=INK)
        for word, tone in TONES.items():
            wide = verdicts[word] * one
            if not wide:
                continue
            sheet.box(x, top, wide - 1, BAR, fill=tone)
            ink = INK if tone == QUIET else PAPER
            middle = x + wide / 2 - 0.5
            sheet.words(middle, top + 11, str(verdicts[word]), size=10, anchor="middle", colour=ink)
            x += wide
