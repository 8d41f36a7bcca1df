"""References in prose that are not to a row: claims, limits, cited figures, and the machine."""

from collections.abc import Callable
from functools import cache, partial
from html import escape

from anatomy import claims
from anatomy.claims import ledger, seeds
from anatomy.figures import tables
from anatomy.figures.curriculum import lists
from anatomy.figures.text import listings, spans
from anatomy.judge import limits
from anatomy.record.showing import Showing
from anatomy.table import chapters, units
from anatomy.table.errors import BadParameter, UnknownName, lookup


def claim(showing: Showing, name: str, spec: str) -> str:
    """`[[claim:ID]]`: the sentence, its number, ours, the verdict and a link; or a part of it."""
    if spec not in ("", *CLAIM_PARTS):
        raise BadParameter(f"a claim has {', '.join(CLAIM_PARTS)}; got {spec!r}.")
    result = claims.evaluate(showing, name)
    if showing.collecting:
        return ""
    if spec == "statement":
        return escape(result.claim.statement)
    if spec == "claimed":
        if not result.claim.number:
            raise BadParameter(f"the claim {result.claim.name} states no number.")
        return spans.figure("cited", result.claim.number, result.claim.place)
    if not spec:
        return _whole_claim(showing, result)
    if result.word == claims.NOT_RECORDED:
        return spans.gap(*result.found)
    if spec == "measured":
        if result.measured is None:
            return spans.gap_because(f"no number, {result.word}: {result.evidence}")
        return _measured(result)
    if spec in ("evidence", "condition"):
        text = result.evidence if spec == "evidence" else result.condition
        return escape(text) + spans.marks(*result.found)
    if spec == "where":  # of a table beside the verdict: nothing where there is nothing to add
        return escape(ledger.where(result)) + spans.marks(*result.found)
    if spec == "count":
        return escape(result.counted) + spans.marks(*result.found)
    if spec in MISCONCEPTIONS:
        word = OPPOSITE.get(result.word, result.word) if spec == "refutes" else result.word
        told = f"Tested: {result.claim.statement} {result.word.capitalize()}. {result.evidence}"
        return tables.chip(word, OF_IT.get(word, word), told) + spans.marks(*result.found)
    return tables.chip(result.word, title=result.evidence) + spans.marks(*result.found)


def _whole_claim(showing: Showing, result: claims.Result) -> str:
    """One claim in a sentence of a page, as an element that stands in a paragraph."""
    claim = result.claim
    parts = [f'<q title="{escape(claim.place)}">{escape(claim.statement)}</q>']
    if claim.number:
        parts.append(f"claimed {spans.figure('cited', claim.number, claim.place)}")
    if result.word == claims.NOT_RECORDED:
        parts.append(spans.gap(*result.found))
    else:
        if result.measured is not None:
            parts.append(f"here {_measured(result)}")
        condition = ledger.brief(result, MOST_SAID)
        where = f" {escape(condition)}" if condition else ""
        parts.append(tables.chip(result.word, title=result.evidence) + where)
    if address := ledger.link(showing, result):
        parts.append(f'<a href="{escape(address)}">evidence</a>')
    return f'<span class="claim">{" · ".join(parts)}{spans.marks(*result.found)}</span>'


def _measured(result: claims.Result) -> str:
    origin = f"{result.evidence} On {result.machine}."
    return spans.figure("measured", result.measured.text, origin)


# What a figure that is not ours must say: of one that is cited its source, and of one that was
# chosen, or follows by arithmetic, why it is so.
NEEDED = {
    "cited": "a cited figure has a source: [[cited: FIGURE | WHERE IT STANDS]].",
    "given": "a given figure has a reason: [[given: FIGURE | WHY IT IS SO]].",
}


def not_ours(kind: str, showing: Showing, text: str, origin: str) -> str:
    """`[[cited: 1.8× | NVIDIA, H200 datasheet]]`, `[[given: 0.3 s | the budget]]`."""
    if not text or not origin:
        raise BadParameter(NEEDED[kind])
    return "" if showing.collecting else spans.figure(kind, text, origin)


def limit(showing: Showing, name: str, spec: str) -> str:
    """`[[limit:matmul fp16]]`, a ceiling of the machine shown, measured or else the maker's.

    `| reached` is the share of the maker's figure that was measured, `| maker` that figure, and
    `| ridge` the operations per byte from which on a product of this format is compute-bound.
    """
    ceilings = showing.ceilings
    if ceilings is None:
        return ""
    if (ceiling := ceilings.get(name)) is None:
        raise UnknownName("limit", name, [each.name for each in ceilings])
    there = showing.find(limits.EXPERIMENT)
    stated = limits.from_datasheet(ceilings.machine).get(name)
    if spec in ("reached", "maker") and stated is None:
        return spans.gap_because(f"no datasheet of {ceilings.machine} is known")
    if spec == "maker":
        cited = spans.figure("cited", units.rate(stated.value, stated.unit), stated.source)
        return cited + spans.elsewhere(there)
    if spec == "reached" and ceiling.kind != "measured":
        return spans.gap(there)
    if spec == "reached":
        text = units.percent(ceiling.value / stated.value)
    elif spec == "ridge":
        corner = limits.ridge(ceilings, name)
        if corner is None:
            raise BadParameter(f"{name} has no ridge: only products have, and only beside copies.")
        text = f"{units.significant(corner)} FLOP/B"
    else:
        whole = units.rate(ceiling.value, ceiling.unit)
        text = units.format_value(ceiling.value, spec) if spec else whole
    kind = "cited" if ceiling.kind == "datasheet" else "measured"
    origin = f"{ceiling.name}, {ceiling.kind}{_bursts(ceiling)}: {ceiling.source}"
    return spans.figure(kind, text, origin) + spans.elsewhere(there)


def _bursts(ceiling: limits.Ceiling) -> str:
    """The interval of a ceiling that was measured, and how it ran."""
    if units.missing(ceiling.low) or units.missing(ceiling.high):
        return ""
    low, high = (units.rate(end, ceiling.unit) for end in (ceiling.low, ceiling.high))
    return f" in bursts, {low} to {high} (95% interval)"


def seed(showing: Showing, name: str, spec: str) -> str:
    """`[[seed:RUN.OP.VARIANT]]`, a time that the seed published; `| ratio`, over its control's."""
    parts = name.split(".")
    if len(parts) != 3:
        raise BadParameter("a cited figure is seed:RUN.OP.VARIANT, as fp16-2048.matmul.contiguous.")
    figure = seeds.figure(*parts)
    if spec == "ratio":
        text = units.ratio(figure.ratio)
    else:
        text = units.format_value(figure.seconds, spec) if spec else figure.text
    return spans.figure("cited", text, f"{figure.gpu}, cited from {figure.place}")


def machine(showing: Showing, name: str, spec: str) -> str:
    """`[[machine:gpu]]`, a field of the machine or software block of what the page shows."""
    if showing.collecting:
        return ""
    # A page that shows nothing else has them from the one recording that every machine has.
    calls = [each[:2] for each in showing.shown] or [(limits.EXPERIMENT, {})]
    for experiment, params in sorted(calls, key=lambda call: not showing.has(*call)):
        if (recording := showing.find(experiment, **params).recording) is not None:
            known = recording.data["software"] | recording.data["machine"]
            value = lookup("field of the machine", name, known)
            in_bytes = name.endswith("_bytes") and not spec
            return escape(units.byte_count(value) if in_bytes else units.format_value(value, spec))
    return spans.gap_because(f"nothing recorded on {showing.machine} yet")


def calculated(showing: Showing, name: str, spec: str) -> str:
    """`[[calculated: NAME]]`, what a tested function makes of recorded numbers."""
    from anatomy.figures.curriculum import calculations  # which reads references itself

    return calculations.calculated(showing, name, spec)


# Characters of a condition in a sentence; a longer one is in the hover text and in the ledger.
MOST_SAID = 90
# What a claim that states a misconception, or refutes one, says of the misconception.
OF_IT = {
    claims.HOLDS: "misconception confirmed",
    claims.FAILS: "misconception refuted",
    claims.IN_PART: "misconception refuted in part",
    claims.INCONCLUSIVE: "not decided",
}
MISCONCEPTIONS = ("states", "refutes")
OPPOSITE = {claims.HOLDS: claims.FAILS, claims.FAILS: claims.HOLDS}
CLAIM_PARTS = ("verdict", "evidence", "statement", "claimed", "measured", "condition", "where")
CLAIM_PARTS += ("count", *MISCONCEPTIONS)
Reference = Callable[[Showing, str, str], str]
REFERENCES: dict[str, Reference] = {
    "claim": claim,
    **{kind: partial(not_ours, kind) for kind in NEEDED},
    "limit": limit,
    "seed": seed,
    "machine": machine,
    "calculated": calculated,
    "index": listings.index,
    "advice": listings.advice,
    "days": lists.days,
}


def reference(name: str) -> Callable[[Reference], Reference]:
    """Declare a function of a chapter's `references.py` as what `[[name:...]]` stands for."""

    def declare(function: Reference) -> Reference:
        REFERENCES[name] = function
        return function

    return declare


@cache
def references() -> dict[str, Reference]:
    """What the words before the colon stand for: those above, and those of chapters."""
    chapters.load("references")
    return REFERENCES
