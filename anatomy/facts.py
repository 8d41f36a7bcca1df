"""References in prose that are not to a row: claims, limits, cited figures, and the machine."""

from collections.abc import Callable
from typing import Any

from anatomy import boards, claims, limits, recording, scoreboard, spans, tables, units
from anatomy.claims import seeds
from anatomy.errors import BadParameter, UnknownName
from anatomy.showing import Showing


def claim(showing: Showing, name: str, spec: str) -> str:
    """`[[claim:ID]]`, the verdict; `| evidence`, what was seen; `| statement`, what was said."""
    if spec not in ("", "verdict", "evidence", "statement"):
        raise BadParameter(f"a claim has verdict, evidence and statement; got {spec!r}.")
    result = claims.evaluate(showing, name)
    if showing.collecting:
        return ""
    if spec == "statement":
        return spans.literal(result.claim.statement)
    if result.word == claims.NOT_RECORDED:
        return spans.gap(*result.found)
    if spec == "evidence":
        return spans.literal(result.evidence) + spans.stale(*result.found)
    return tables.chip(result.word, title=result.evidence) + spans.stale(*result.found)


def limit(showing: Showing, name: str, spec: str) -> str:
    """`[[limit:matmul fp16]]`, a ceiling of the machine shown, measured or else the maker's.

    `| reached` is the share of the maker's figure that was measured, `| maker` that figure, and
    `| ridge` the operations per byte from which on a product of this format is compute-bound.
    """
    ceilings = showing.ceilings
    if ceilings is None:
        return ""
    ceiling = ceilings.get(name)
    if ceiling is None:
        raise UnknownName("limit", name, [each.name for each in ceilings])
    stated = limits.stated(showing.machine).get(name)
    if spec in ("reached", "maker") and stated is None:
        return spans.gap_because(f"no datasheet of {showing.machine} is known")
    if spec == "maker":
        return spans.cited(units.rate(stated.value, stated.unit), stated.source)
    if spec == "reached" and ceiling.kind != "measured":
        return spans.gap(showing.find(limits.EXPERIMENT))
    if spec == "reached":
        text = units.percent(ceiling.value / stated.value)
    elif spec == "ridge":
        corner = limits.ridge(ceilings, name)
        if corner is None:
            raise BadParameter(f"{name} has no ridge: only products have, and only beside copies.")
        text = f"{units.significant(corner)} FLOP/B"
    else:
        text = units.format_value(ceiling.value, spec) if spec else _rate(ceiling)
    title = f"{ceiling.name}, {ceiling.kind}: {ceiling.source}"
    if ceiling.kind == "datasheet":
        return spans.cited(text, title)
    return f'<span class="measured" title="{spans.literal(title)}">{spans.literal(text)}</span>'


def _rate(ceiling: limits.Ceiling) -> str:
    return units.rate(ceiling.value, ceiling.unit)


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
    return spans.cited(text, f"{figure.gpu}, cited from {figure.place}")


def machine(showing: Showing, name: str, spec: str) -> str:
    """`[[machine:gpu]]`, a field of the machine or software block of what the page shows."""
    for asked in showing.shown:
        found = showing.find(asked.name, **asked.params)
        if found.recording is not None:
            return _field(found.recording, name, spec)
    if showing.collecting:
        return ""
    return spans.gap_because(f"nothing recorded on {showing.machine} yet")


def target(showing: Showing, name: str, spec: str) -> str:
    """`[[target:power]]`, whether one of the harnesses' targets is met; `| found`, its figure."""
    if spec not in ("", "verdict", "found", "detail"):
        raise BadParameter(f"a target has verdict, found and detail; got {spec!r}.")
    calls = boards.found(showing)
    if showing.collecting:
        return ""
    board = boards.board(calls)
    if board.empty:
        return spans.gap(*calls)
    one = board.target(name)
    if spec == "found":
        return spans.literal(scoreboard.found_text(one)) + spans.stale(*calls)
    if spec == "detail":
        return spans.literal(one.detail or "") + spans.stale(*calls)
    return boards.chip(one) + spans.stale(*calls)


def _field(found: recording.Recording, name: str, spec: str) -> str:
    known: dict[str, Any] = found.data["software"] | found.data["machine"]
    if name not in known:
        raise UnknownName("field of the machine", name, known)
    if name.endswith("_bytes") and not spec:
        return spans.literal(units.byte_count(known[name]))
    return spans.literal(units.format_value(known[name], spec))


REFERENCES: dict[str, Callable[[Showing, str, str], str]] = {
    "claim": claim,
    "limit": limit,
    "seed": seed,
    "machine": machine,
    "target": target,
}
