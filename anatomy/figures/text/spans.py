"""What is put into a sentence: a recorded value, a cited one, a gap. Markdown leaves it alone."""

from html import escape

from anatomy.record.showing import Found

# Characters that Markdown would read as markup inside the text of a span.
_MARKDOWN = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*_[]{}|~^=+!"})


def literal(text: str) -> str:
    """Text into which neither HTML nor Markdown reads anything."""
    return escape(text, quote=True).replace("&#x27;", "&#39;").translate(_MARKDOWN)


def figure(kind: str, text: str, origin: str) -> str:
    """A figure with its origin on hover; `kind`, its class, is measured, cited or given."""
    return f'<span class="{kind}" title="{literal(origin)}">{literal(text)}</span>'


def stale(*found: Found) -> str:
    """A mark for recordings that are not current; empty where all are, or are missing."""
    old = [each for each in found if each.freshness.state not in ("current", "missing")]
    if not old:
        return ""
    why = literal(f"{old[0].freshness.reason} Mend it: {old[0].command}")
    return f'<span class="tag stale" title="{why}">out of date</span>'


def gap(*found: Found) -> str:
    """What stands in a sentence in place of a value that was not recorded yet."""
    missing = next((each for each in found if each.recording is None), found[0])
    # The stylesheet shows the command at the first gap of a paragraph, a list or a table only.
    command = literal(missing.command)
    return (
        f'<span class="gap-inline" title="{command}">not recorded yet'
        f'<span class="gap-command">: <code>{command}</code></span></span>'
    )


def gap_because(reason: str, command: str = "") -> str:
    """Why there is no value, in its place, and the command that would mend it."""
    mend = f": <code>{literal(command)}</code>" if command else ""
    return f'<span class="gap-inline">{literal(reason)}{mend}</span>'
