"""The frame of a figure: notices, the body, the caption and the run strip."""

from collections.abc import Callable, Sequence
from html import escape

from anatomy.figures.charts import strips
from anatomy.figures.text import inline
from anatomy.record.showing import Found, Showing, current
from anatomy.table.errors import AnatomyError

# Parameters that say how it was measured, not what.
HOW = ("device", "iters")


def exhibit(
    found: Found | Sequence[Found], caption: str | None, draw: Callable[[], str], *, kind: str = ""
) -> str:
    """A figure of the page that is rendered; empty while a build only collects what pages show.

    What is missing or stale stands above it, under it the caption and the run strip. A recording
    that is not current may lack what is asked for: then its badge stands alone.

    Args:
        found: The recording that it is made of, which there must be for a body, or several.
        caption: What to see, in a page's markup; None for the experiment and its parameters alone.
        draw: Gives the body: charts and tables.
        kind: Further class of the frame, where it has a body.

    Raises:
        AnatomyError: All recordings are current, so that what is asked for is wrong.
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
    return _framed(showing, several, body, says, kind if body else "")


def _framed(showing: Showing, found: Sequence[Found], body: str, says: str, kind: str) -> str:
    calls = list(dict.fromkeys(_call(each) for each in found))
    parts = [f'<span class="says">{says}</span>'] if says else []
    parts += [f"<code>{escape(calls[0])}</code>"] if len(calls) == 1 else []
    caption = f"<figcaption>{' '.join(parts)}</figcaption>" if parts else ""
    classes = f"shown {kind}".rstrip()
    missing = strips.notices(showing, found)
    return (
        f'<figure class="{classes}" data-search-exclude>{missing}{body}{caption}'
        f"{strips.strip(showing, found)}</figure>\n"
    )


def _call(found: Found) -> str:
    """The call as it would be written, with the parameters that say what was measured."""
    pairs = [f"{name}={value}" for name, value in found.params.items() if name not in HOW]
    return f"{found.name}({', '.join(pairs)})"
