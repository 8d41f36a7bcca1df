"""The frame of a figure: notices, the body, the caption, and where its numbers come from."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature

from anatomy.figures.charts import strips
from anatomy.figures.text import inline, spans
from anatomy.record.showing import Found, current, selectors
from anatomy.table import units
from anatomy.table.errors import AnatomyError


def exhibit(
    found: Found | Sequence[Found], caption: str | None, draw: Callable[[], str], *, kind: str = ""
) -> str:
    """A figure of the page that is rendered; empty while a build only collects what pages show.

    What is missing stands above it, and what is stale where no page says it; under it the caption,
    in a page's markup, and a line that leads to its sources at the end of the page. The body that
    `draw` gives is left out where the one recording that it is made of is missing, and where one
    that is not current lacks what is asked for: then a badge stands alone. If all are current, what
    is asked for is wrong, and `draw`'s error is raised. `kind` is a further class of the frame
    around a body.
    """
    showing = current()
    several = [found] if isinstance(found, Found) else list(found)
    says = ""
    if caption:
        says = showing.beside(several, lambda: inline.render_text(showing, caption))
    if showing.collecting:
        return ""
    body = ""
    if not isinstance(found, Found) or found.recording is not None:
        try:
            body = draw()
        except AnatomyError:
            if all(each.freshness.state in ("current", "missing") for each in several):
                raise
    caption = f'<figcaption><span class="says">{says}</span></figcaption>' if says else ""
    missing = strips.notices(showing, several, bool(body))
    source = strips.under(showing, several, body)
    opening = f'<figure class="shown{f" {kind}" if kind and body else ""}" data-search-exclude>'
    return f"{opening}{missing}{body}{caption}{source}</figure>\n"


def drawn_from(
    experiment: str = "", *, needs: str = "", ceilings: bool = False
) -> Callable[..., Callable[..., str]]:
    """Make what pages call of a function that draws the rows of one recording.

        @drawn_from("timing.equals", needs="samples_s")
        def in_order(table: Sequence[Row]) -> str: ...

    Pages give the other arguments, a `caption`, and the recording's parameters, of which `op` may
    be one; and first of all the `experiment`, where none is declared. Where no row has a value in
    the column `needs`, the reason stands in place of the drawing. With `ceilings` the function is
    given those of the machine too, after the rows.
    """

    def declare(draw: Callable[..., str]) -> Callable[..., str]:
        own = signature(draw).parameters

        @wraps(draw)
        def shown(*given, caption: str | None = None, **named) -> str:
            name = experiment or named.pop("experiment", None)
            if not name:
                name, *given = given
            params = {key: named.pop(key) for key in [*named] if key not in own}
            found = current().find(name, **selectors(name, params, named.get("op"), None))
            limits = (current().ceilings_of(found),) if ceilings else ()

            def body() -> str:
                table = found.recording.rows
                if needs and all(units.missing(row.get(needs)) for row in table):
                    notes = (row["note"] for row in table if row.get("note"))
                    return spans.gap_because(next(notes, "not measured"))
                return draw(table, *limits, *given, **named)

            return exhibit(found, caption, body)

        return shown

    return declare
