"""The quiz by a reader's own machine: its numbers to fill in, and all keys in a table."""

import json
from html import escape

from anatomy.chapters.reflection import keys, references
from anatomy.figures import framing, tables
from anatomy.judge import limits
from anatomy.record.showing import current


def own_numbers() -> str:
    """Where a script lets readers type the four numbers of their machine, or paste them."""
    fields = [{"name": name, **each._asdict()} for name, each in keys.CONSTANTS.items()]
    without = "Keys by your own numbers need JavaScript. The formulas are in the table of all keys."
    return f'<div class="own-numbers" data-fields="{escape(json.dumps(fields))}">{without}</div>\n'


def all_keys(*, caption: str | None = None) -> str:
    """The keys that are numbers: formula, for the machine shown, and for an A100."""
    showing = current()
    found = showing.find(limits.EXPERIMENT)

    def draw() -> str:
        lines = [
            [
                escape(key.asks),
                tables.code(key.formula),
                *(references.key(showing, name, spec) for spec in ("", "cited")),
            ]
            for name, key in keys.KEYS.items()
        ]
        head = ("key", "formula", "#here", "#A100, datasheet")
        return tables.listed(head, lines, "Keys that are numbers")

    return framing.exhibit(found, caption, draw)
