"""What a script of the ladder changes from the rung before it, on its page."""

from html import escape

from anatomy.chapters.ladder.shown import scripts
from anatomy.figures.text import inline
from anatomy.record.showing import current
from anatomy.table.errors import BadParameter


def changes(rung: str, *, since: str | None = None, caption: str | None = None) -> str:
    """The lines that a rung's script takes from the rung before it, and those that it adds.

    Its docstring, the marks of its sections and the part that times it are left out.

        changes("2_sdpa", caption="One call in the place of four lines.")

    Args:
        rung: Name of the script, without its ending.
        since: Name of the script that it is held against; by default the rung that it says.
        caption: What to see.

    Raises:
        UnknownName: There is no such script.
        BadParameter: The script names no rung before it, and neither does `since`.
    """
    showing = current()
    name = since or scripts.before(rung)
    if name is None:
        raise BadParameter(f"{rung} says of no rung that it changes it; give `since`.")
    lines = scripts.difference(name, rung)
    text = inline.render_text(showing, caption) if caption else ""
    if showing.collecting:
        return ""
    counts = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    gone, new = (f"{count} line{'s' * (count != 1)}" for count in counts)
    counted = f"{gone} of <code>{escape(name)}.py</code> gone, {new} new"
    says = f'<span class="says">{text}</span> ' if text else ""
    return (
        f'<figure class="shown changes" data-search-exclude>{_coloured(lines)}'
        f"<figcaption>{says}{counted}</figcaption></figure>\n"
    )


def _coloured(lines: list[str]) -> str:
    """A difference as the site's other code is coloured; its signs say the same."""
    from pygments import highlight  # only a build of the site has it
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer

    how = HtmlFormatter(cssclass="language-diff highlight", wrapcode=True)
    return highlight("\n".join(lines) + "\n", DiffLexer(stripnl=False), how)
