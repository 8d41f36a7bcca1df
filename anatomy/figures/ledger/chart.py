"""How far off the inherited numbers are: a sentence, and claimed against measured as a chart.

Only statements of the seed are counted here, and only on the machine shown.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape

from anatomy import claims
from anatomy.claims import Result, ledger
from anatomy.figures import tables
from anatomy.figures.charts import svg
from anatomy.record.showing import Showing

# Within the first factor a claim is called close; beyond the second one, far off.
NEAR, FAR = 1.25, 2.0
# Units that share a chart: a count is a number as a ratio is one.
PLAIN = ("x", "count")
TITLES = {"s": "Times", "B/s": "Bandwidths", "share": "Shares of a whole"}
# Why a statement is not in the chart, after the count of such statements.
REASONS = (
    "state no number",
    "can't be put to the test on this machine",
    "wait for their measurement",
    "state a number of another kind than the measured one",
)
NONE_YET = '<p class="notice gap">No claimed number has a measured one beside it yet.</p>'


def called(found: Sequence[Result], slug: str) -> str:
    """What readers call a machine: its GPU without the maker, or its slug in code."""
    own = (each for result in found if result.machine == slug for each in result.found)
    gpus = (each.recording.data["machine"].get("gpu") for each in own if each.recording)
    name = next(filter(None, gpus), None)
    return escape(name.removeprefix("NVIDIA ")) if name else tables.code(slug)


def inherited(showing: Showing, found: Sequence[Result]) -> list[Result]:
    """The statements of the seed, on the machine that the page counts."""
    here = ledger.counted(showing, found)
    return [each for each in found if each.machine == here and each.claim.row is not None]


def comparable(found: Sequence[Result]) -> list[Result]:
    """Those with a claimed number and a measured one of this machine to hold it against."""
    measured = [each for each in found if each.word != claims.NOT_MEASURABLE]
    return [each for each in measured if each.deviation and each.measured.recorded]


def left_out(found: Sequence[Result]) -> dict[str, int]:
    """Why the others are not among the comparable ones, and how many for each reason."""
    kept = {each.claim.name for each in comparable(found)}
    none, elsewhere, waiting, other = REASONS
    by_word = {claims.NOT_MEASURABLE: elsewhere, claims.NOT_RECORDED: waiting}

    def why(each: Result) -> str:
        if each.claim.claimed is None:
            return none
        reckoned = each.measured and not each.measured.recorded
        return by_word.get(each.word, elsewhere if reckoned else other)

    counted = Counter(why(each) for each in found if each.claim.name not in kept)
    return {each: counted[each] for each in REASONS}


def factor(result: Result) -> float:
    """How far off the claimed number is, in whichever direction."""
    return max(result.deviation, 1 / result.deviation)


def accuracy(showing: Showing, found: Sequence[Result]) -> str:
    """How often, and by how much, the inherited numbers are off, in a sentence."""
    here = comparable(inherited(showing, found))
    if not here:
        return NONE_YET + "\n"
    close = sum(factor(each) <= NEAR for each in here)
    far = [each for each in here if factor(each) > FAR]
    less = sum(each.deviation < 1 for each in far)
    several = [each for each in here if each.measured.cases > 1]
    single = sum(_farthest(each) > FAR for each in several)
    sentence = (
        "<p>The guides that this project grew from give numbers too. Of "
        f"{len(here)} inherited numbers that were measured on the "
        f"{called(here, here[0].machine)}, {close} {'is' if close == 1 else 'are'} "
        f"within a factor of {NEAR:g} of the claim, and {len(here) - close - len(far)} more within "
        f"a factor of {FAR:g}. Further off are {len(far)}: {less} below the claim, "
        f"{len(far) - less} above it."
    )
    if several:
        sentence += (
            f" {len(several)} of the {len(here)} have several cases, such as sizes and formats, of "
            f"which the median counts here; {single} of these {len(several)} are off by more than "
            f"a factor of {FAR:g} in some case."
        )
    return sentence + "</p>\n"


def _farthest(result: Result) -> float:
    """By which factor the claimed number is off in the case that is farthest from it."""
    low, high = result.claim.claimed
    seen = result.measured
    below = low / seen.low if seen.low > 0 else float("inf")
    return max(below, seen.high / high, 1.0)


def chart(showing: Showing, found: Sequence[Result]) -> str:
    """Claimed against measured: numbers without a unit first, then a panel for each unit."""
    statements = inherited(showing, found)
    here = comparable(statements)
    if not here:
        return NONE_YET
    words = [word for word in claims.WORDS if any(each.word == word for each in here)]
    plain = [("Ratios and counts", PLAIN, words)]
    body = ""
    for row in (plain, [(title, (unit,), []) for unit, title in TITLES.items()]):
        panels, count = [], 0
        for title, units, legend in row:
            if points := [point(each) for each in here if each.claim.unit in units]:
                drawing = svg.Drawing("diagonals.against", (points, legend, units[0], [NEAR, FAR]))
                panels.append((title, drawing))
                count += len(points)
        if panels:
            titles = " and ".join(title.lower() for title, _ in panels)
            label = f"Claimed against measured {titles} of {count} claims, with the diagonal on "
            label += "which they are equal; the table has the figures."
            body += svg.chart(panels, label, abreast=len(panels))
    return f'<div class="against">{body}</div>' + _note(statements, len(here))


def _note(found: Sequence[Result], drawn: int) -> str:
    """What is not in the chart, and why."""
    reasons = [f"{count} {reason}" for reason, count in left_out(found).items() if count]
    if not reasons:
        return ""
    joined = " and ".join(filter(None, (", ".join(reasons[:-1]), reasons[-1])))
    drawn = f"{drawn} of {len(found)} inherited statements are drawn"
    return f'<p class="left-out">{drawn}. Of the others, {joined}.</p>'


def point(result: Result) -> dict:
    """A claim's mark; those that are close to the diagonal go without a name."""
    claim, seen, row = result.claim, result.measured, str(result.claim.row)
    low, high = claim.claimed
    close = factor(result) <= NEAR
    mark = {"claimed_low": low, "claimed_high": high, "value": seen.value, "high": seen.high}
    mark |= {"low": seen.low if seen.low > 0 else None, "many": seen.cases > 1}
    mark |= {"name": "" if close else f"{claim.name} {row}", "number": "" if close else row}
    return mark | {"verdict": result.word, "hover": described(result)}


def described(result: Result) -> str:
    """What a reader sees who points at a mark."""
    seen = result.measured
    number = f"median {seen.middle}, {seen.text}" if seen.cases > 1 else seen.text
    claimed = f"{result.claim.row} {result.claim.statement} Claimed: {result.claim.number}."
    return f"{claimed} Measured: {number}. Verdict: {result.word}."
