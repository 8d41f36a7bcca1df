"""The machine shown and another one, side by side: what differs, by how much, and why."""

from collections.abc import Callable
from html import escape
from itertools import chain

from anatomy.claims import FAILS, HOLDS, Result, differences, ledger
from anatomy.claims.differences import Compared, Difference
from anatomy.figures import tables
from anatomy.figures.compared import agreement, predictions
from anatomy.figures.text import inline
from anatomy.record import loading, recording
from anatomy.record.exchange.pairs import Side
from anatomy.record.showing import Showing, current
from anatomy.table.errors import lookup

ALONE = (
    "A second machine is not recorded yet, so there is nothing to compare {} with. On another "
    "GPU, `pytorch-gpu-anatomy record` makes its recordings; made elsewhere, "
    "`pytorch-gpu-anatomy import FILE` adds them."
)


def compared(
    part: str = "answer",
    *,
    heading: str | None = None,
    says: str | None = None,
    against: str | None = None,
    caption: str | None = None,
) -> str:
    """Two machines held against each other, one part of it, as Markdown with figures in it.

        compared("verdicts", heading="Which verdicts differ?", caption="Each with its cause.")

    Without another machine `answer` says so, and every other part is empty, its heading with it: a
    page has all parts in one block.

    Args:
        part: `answer` (in sentences), `verdicts` (claims with two, and what explains them),
            `ratios` (a chart of one machine's against the other's), or `limits` (of both, and what
            they predict beside what was measured).
        heading: What stands above the part.
        says: What stands between the two, as Markdown.
        against: Slug of the other machine; by default the first that has recorded a same call.
    """
    showing, draw = current(), lookup("part of the comparison", part, PARTS)
    if showing.collecting:
        return ""
    found = _with_another(showing, against)
    if found is None:
        return ALONE.format(f"`{showing.machine}`") + "\n{ .lead }\n" if part == "answer" else ""
    above = "".join(f"\n{each}\n\n" for each in (heading and f"## {heading}", says) if each)
    return f"{above}{draw(showing, found, caption)}\n"


def _with_another(showing: Showing, against: str | None) -> Compared | None:
    """The machine shown and the other one; None where there is no other."""
    root, mine = showing.root, _places(showing, showing.machine)
    others = [slug for slug in ledger.judged_machines(root) if slug != showing.machine]
    others = [slug for slug in others if mine & _places(showing, slug)]
    if against is not None and against != showing.machine:
        others = [recording.known_machine(root, against)]
    if not others:
        return None
    both = Side(root, showing.machine), Side(root, others[0])
    key = ("compared", *(side.machine for side in both))
    return showing.once(key, lambda: differences.compared(*both, page=showing))


def _places(showing: Showing, slug: str) -> set[tuple[str, ...]]:
    return {file.parts[-2:] for file in loading.files(showing.root, slug)}


def _answer(showing: Showing, found: Compared, caption: str | None) -> str:
    """What the limits say, what differs, and what to do; the figures under it have more."""
    opposite = sum({each.old.word, each.new.word} == {HOLDS, FAILS} for each in found.verdicts)
    return (
        f"{predictions.answer(found)}Of {found.judged} claims judged on both, "
        f"{len(found.verdicts)} got another verdict there, {opposite or 'none'} of them the "
        "opposite one. So on a third card scale a GPU-bound time by the limit that it is near, and "
        "measure a host-bound one.\n{ .lead }\n"
    )


def _verdicts(showing: Showing, found: Compared, caption: str | None) -> str:
    if not found.verdicts:
        return f"None of {found.judged} differs."
    machines, names = [found.old.machine, found.new.machine], agreement.names(found)

    told: dict[str, list[Difference]] = {}  # claims by their cause, which is told once
    for each in found.verdicts:
        told.setdefault(differences.cause(each.name, machines), []).append(each)

    def claim(each: Difference) -> str:
        text = differences.cause(each.name, machines)
        unknown = text in (differences.NOT_KNOWN, differences.NOT_KNOWN_YET)
        because = tables.why(text) if unknown else inline.render_text(showing, text)
        first = each is told[text][0] or unknown
        return f'{_claim(showing, each.old)}<span class="remarks">' + (
            f"Cause: {because}</span>" if first else "Cause: as above.</span>"
        )

    columns = [
        ("claim", claim),
        (names[0], lambda each: _said(each.old)),
        (names[1], lambda each: _said(each.new)),
    ]
    table = tables.by_columns(columns, [*chain(*told.values())], "Verdicts that differ")
    return _figure(showing, table, caption)


def _claim(showing: Showing, result: Result) -> str:
    """What was claimed, with the claim's id behind the link."""
    address = ledger.link(showing, result)
    said, name = escape(result.claim.statement), result.claim.name
    return f'<a href="{escape(address)}" title="{escape(name)}">{said}</a>' if address else said


def _said(result: Result) -> str:
    found = result.measured
    text = found.text if found else result.evidence
    if found and found.cases > 1 and found.low < found.high:
        # Two machines may count other cases: beside the ends alone, like cases would look unlike.
        text = f"{found.middle}, median of {found.cases} cases: {text.rpartition(' in ')[0]}"
    seen = tables.lighter(text)
    return tables.chip(result.word, title=result.evidence) + f'<span class="remarks">{seen}</span>'


def _ratios(showing: Showing, found: Compared, caption: str | None) -> str:
    """By how much ratios differ, in sentences, and the chart."""
    return f"{agreement.said(found)}\n\n{_figure(showing, agreement.drawn(found), caption)}"


def _limits(showing: Showing, found: Compared, caption: str | None) -> str:
    return _figure(showing, predictions.drawn(found), caption)


def _figure(showing: Showing, body: str, caption: str | None) -> str:
    """A figure without a run strip: behind it stand all recordings of both machines."""
    text = inline.render_text(showing, caption) if caption else ""
    says = f"<figcaption>{text}</figcaption>" if text else ""
    return f'<figure class="shown" data-search-exclude>{body}{says}</figure>'


PARTS: dict[str, Callable[[Showing, Compared, str | None], str]] = {
    "answer": _answer,
    "verdicts": _verdicts,
    "ratios": _ratios,
    "limits": _limits,
}
