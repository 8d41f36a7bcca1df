"""The frame of a figure: notices, the body, the caption and the run strip."""

from collections.abc import Callable, Sequence
from html import escape

from anatomy.figures.charts import strips
from anatomy.figures.text import inline
from anatomy.record.showing import Found, current
from anatomy.table.errors import AnatomyError

HOW = ("device", "iters")  # parameters that say how it was measured, not what


def exhibit(
    found: Found | Sequence[Found], caption: str | None, draw: Callable[[], str], *, kind: str = ""
) -> str:
    """A figure of the page that is rendered; empty while a build only collects what pages show.

    What is missing or stale stands above it, under it the caption, in a page's markup, and the run
    strip. The body that `draw` gives is left out where the one recording that it is made of is
    missing, and where one that is not current lacks what is asked for: then a badge stands alone.
    If all are current, what is asked for is wrong, and `draw`'s error is raised. `kind` is a
    further class of the frame around a body.
    """
    showing = current()
    says = inline.render_text(showing, caption) if caption else ""
    if showing.collecting:
        return ""
    several = [found] if isinstance(found, Found) else list(found)
    body = ""
    if not isinstance(found, Found) or found.recording is not None:
        try:
            body = draw()
        except AnatomyError:
            if all(each.freshness.state in ("current", "missing") for each in several):
                raise
    calls = list(dict.fromkeys(map(_call, several)))
    parts = [f'<span class="says">{says}</span>'] if says else []
    parts += [f"<code>{escape(calls[0])}</code>"] if len(calls) == 1 else []
    caption = f"<figcaption>{' '.join(parts)}</figcaption>" if parts else ""
    missing, strip = strips.notices(showing, several), strips.strip(showing, several)
    opening = f'<figure class="shown{f" {kind}" if kind and body else ""}" data-search-exclude>'
    return f"{opening}{missing}{body}{caption}{strip}</figure>\n"


def _call(found: Found) -> str:
    """The call as it would be written, with the parameters that say what was measured."""
    pairs = [f"{name}={value}" for name, value in found.params.items() if name not in HOW]
    return f"{found.name}({', '.join(pairs)})"
