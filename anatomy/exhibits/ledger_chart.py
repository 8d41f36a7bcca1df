"""How far off the inherited numbers are: a sentence, and claimed against measured as a chart.

Only statements of the seed are counted here, and only on the machine shown.
"""

from collections.abc import Sequence
from html import escape

from anatomy import claims
from anatomy.charts import svg
from anatomy.claims import Result
from anatomy.showing import Showing

# Within the first factor a claim is called close; beyond the second one, far off.
NEAR, FAR = 1.25, 2.0
# Units that share a chart: a count is a number as a ratio is one.
PLAIN = ("x", "count")
TITLES = {
    "s": "Times",
    "B/s": "Bandwidths",
    "share": "Shares of a whole",
}
# Why a statement is not in the chart, after the count of such statements.
REASONS = (
    "state no number",
    "can't be put to the test on this machine",
    "wait for their measurement",
    "state a number of another kind than the measured one",
)
NONE_YET = '<p class="notice gap">No claimed number has a measured one beside it yet.</p>'


def inherited(showing: Showing, found: Sequence[Result]) -> list[Result]:
    """The statements of the seed, on the machine shown."""
    return [
        each for each in found if each.machine == showing.machine and each.claim.row is not None
    ]


def comparable(found: Sequence[Result]) -> list[Result]:
    """Those with a claimed number and a measured one of this machine to hold it against."""
    return [each for each in found if each.deviation and each.word != claims.NOT_MEASURABLE]


def left_out(found: Sequence[Result]) -> dict[str, int]:
    """Why the others are not among the comparable ones, and how many for each reason."""
    kept = {each.claim.name for each in comparable(found)}
    counted = dict.fromkeys(REASONS, 0)
    none, elsewhere, waiting, other = REASONS
    for each in found:
        if each.claim.name in kept:
            continue
        if each.claim.claimed is None:
            counted[none] += 1
        elif each.word == claims.NOT_MEASURABLE:
            counted[elsewhere] += 1
        elif each.word in (claims.NOT_RECORDED, claims.NOT_YET):
            counted[waiting] += 1
        else:
            counted[other] += 1
    return counted


def accuracy(showing: Showing, found: Sequence[Result]) -> str:
    """How often, and by how much, the inherited numbers are off, in a sentence."""
    here = comparable(inherited(showing, found))
    if not here:
        return NONE_YET + "\n"
    off = [max(each.deviation, 1 / each.deviation) for each in here]
    close = sum(each <= NEAR for each in off)
    near = sum(NEAR < each <= FAR for each in off)
    far = [each for each, by in zip(here, off, strict=True) if by > FAR]
    less = sum(each.deviation < 1 for each in far)
    several = [each for each in here if each.measured.cases > 1]
    single = sum(_farthest(each) > FAR for each in several)
    be = "is" if close == 1 else "are"
    told = (
        f"<p>Of {len(here)} inherited numbers that were measured on "
        f"<code>{escape(showing.machine)}</code>, {close} {be} within a factor of {NEAR:g} of the "
        f"claim, {near} more within a factor of {FAR:g}, and {len(far)} further off, {less} of "
        f"these below the claim and {len(far) - less} above it."
    )
    if several:
        told += (
            f" That is by the median. Off by more than a factor of {FAR:g} in some case: {single} "
            f"of the {len(several)} numbers that were measured in several cases."
        )
    return told + "</p>\n"


def _farthest(result: Result) -> float:
    """By which factor the claimed number is off in the case that is farthest from it."""
    low, high = result.claim.claimed
    seen = result.measured
    below = low / seen.low if seen.low > 0 else float("inf")
    return max(below, seen.high / high, 1.0)


def chart(showing: Showing, found: Sequence[Result]) -> str:
    """Claimed against measured: numbers without a unit first, then a panel for each unit."""
    all_here = inherited(showing, found)
    here = comparable(all_here)
    if not here:
        return NONE_YET
    words = [word for word in claims.WORDS if any(each.word == word for each in here)]
    plain = [each for each in here if each.claim.unit in PLAIN]
    others = [
        (title, [each for each in here if each.claim.unit == unit], unit)
        for unit, title in TITLES.items()
        if any(each.claim.unit == unit for each in here)
    ]
    parts = []
    if plain:
        panels = [("Ratios and counts", _drawing(plain, words, "x"))]
        parts.append(svg.chart(showing, panels, _label("ratios and counts", plain)))
    if others:
        panels = [(title, _drawing(some, [], unit)) for title, some, unit in others]
        told = " and ".join(title.lower() for title, _, _ in others)
        some = [each for _, members, _ in others for each in members]
        parts.append(svg.chart(showing, panels, _label(told, some), abreast=len(panels)))
    return f'<div class="against">{"".join(parts)}</div>' + _note(all_here, len(here))


def _label(what: str, some: Sequence[Result]) -> str:
    return (
        f"Claimed against measured {what} of {len(some)} claims, with the diagonal on which they "
        "are equal; the table has the figures."
    )


def _note(found: Sequence[Result], drawn: int) -> str:
    """What is not in the chart, and why."""
    reasons = [f"{count} {reason}" for reason, count in left_out(found).items() if count]
    if not reasons:
        return ""
    return (
        f'<p class="left-out">{drawn} of {len(found)} inherited statements are drawn. Of the '
        f"others, {_joined(reasons)}.</p>"
    )


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _drawing(some: Sequence[Result], words: Sequence[str], unit: str) -> svg.Drawing:
    points = [point(each) for each in some]
    return svg.Drawing("diagonals.against", (points, list(words), unit, [NEAR, FAR]))


def point(result: Result) -> dict:
    """A claim's mark; those that are close to the diagonal go without a name."""
    low, high = result.claim.claimed
    seen = result.measured
    claim, row = result.claim, str(result.claim.row)
    close = max(result.deviation, 1 / result.deviation) <= NEAR
    return {
        "claimed_low": low,
        "claimed_high": high,
        "value": seen.value,
        "low": seen.low if seen.low > 0 else None,
        "high": seen.high,
        "many": seen.cases > 1,
        "verdict": result.word,
        "name": "" if close else f"{claim.name} {row}",
        "number": "" if close else row,
        "hover": told(result),
    }


def told(result: Result) -> str:
    """What a reader sees who points at a mark."""
    seen = result.measured
    number = f"median {seen.middle}, {seen.text}" if seen.cases > 1 else seen.text
    return (
        f"{result.claim.row} {result.claim.statement} Claimed: {result.claim.number}. "
        f"Measured: {number}. Verdict: {result.word}."
    )
