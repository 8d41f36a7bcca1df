"""`[[key:NAME]]`, the key of a question of the quiz, here and by the reader's own numbers."""

import json
from html import escape

from anatomy.chapters.reflection import keys
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.judge import limits
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter, lookup


@reference("key")
def key(showing: Showing, name: str, spec: str) -> str:
    """The key for the machine shown, with a place for that by a reader's own numbers, which a
    script fills; `| cited` is that of an A100 by its datasheet."""
    about = lookup("key of the quiz", name, keys.KEYS)
    if spec not in ("", "cited"):
        raise BadParameter(f"a key is the machine's, or | cited; got {spec!r}.")
    found = showing.find(limits.EXPERIMENT)
    if showing.collecting:
        return ""
    if spec:
        sheet = limits.datasheets()[keys.A100]
        stated = keys.numbers(limits.Ceilings(keys.A100, limits.from_datasheet(keys.A100)))
        return spans.figure("cited", about.of(stated), f"{sheet.name}: {sheet.source}")
    ceilings = showing.ceilings_of(found)
    if ceilings is None or found.recording is None:
        return spans.gap(found)
    if not (text := about.of(keys.numbers(ceilings))):
        return spans.gap_because(f"not known of {ceilings.machine}", found.command)
    told = f"calculated from the limits of {ceilings.machine}"
    formula = escape(json.dumps([about.factor, about.powers]))
    unit = escape(about.unit)
    mine = f'<span class="yours" hidden data-formula="{formula}" data-unit="{unit}"></span>'
    return spans.figure("measured", text, told) + mine + spans.marks(found)
