"""Labs as notebooks: with what their cells came to, for the site, and without, for their readers.

What a notebook holds is JSON by nbformat 4.5. mkdocs-jupyter makes a page of it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any
from urllib.parse import urljoin

from anatomy.figures.text import fences, labs
from anatomy.record.showing import Showing
from anatomy.table.errors import UnknownName

HTML = re.compile(r"<!--html-->(.*?)<!--/html-->", re.DOTALL)  # as `anatomy.notebook.HTML` marks it
_SOURCES = re.compile(r'\n*<details class="sources".*', re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
_PICTURE = {"text": "Here this notebook's page has a picture", "target": ""}  # in place of a figure
_MARKUP = re.compile(r"<!--.*?-->|</?(?:span|div|abbr|figure)\b[^<>]*>", re.DOTALL)
Notebook = dict[str, Any]


def links(showing: Showing, source: str) -> tuple[Callable[[str], str], list[str]]:
    """What gives the address, on a lab's page, of what a link of its text leads to, and a list that
    will have a sentence for each that leads nowhere, with its line in the lab's `source`."""
    dead: list[str] = []

    def link(target: str) -> str:
        if not target.partition("#")[0].endswith((".md", labs.ENDING)):
            return target
        try:
            return showing.page_link(target)
        except UnknownName as error:
            line = source.partition(f"]({target}")[0].count("\n") + 1
            dead.append(f"{showing.page}:{line}: {error}")
            return target

    return link, dead


def executed(text: str, printed: Mapping[str, str], link: Callable[[str], str]) -> Notebook:
    """A lab with what its cells came to: `text` is its page as drawn, `printed` what its blocks
    printed by their places, and `link` gives the address of what a link of its text leads to."""
    made = []
    for kind, part, place in _parts(text):
        if kind == "text":
            part = _LINK.sub(lambda found: f"[{found['text']}]({link(found['target'])})", part)
            made.append(_cell(len(made), "markdown", part))
        else:
            made.append(_cell(len(made), "code", labs.written(part)))
            said = printed.get(place, "")
            if kind == labs.DRAWN:
                made[-1]["source"], said = [], f"<!--html-->{said}<!--/html-->"
            made[-1]["outputs"] = list(_outputs(said))
            made[-1]["metadata"] = {} if kind == "code" else {"tags": [kind]}
    return _notebook(made)


def to_run(notebook: Notebook, address: str) -> Notebook:
    """An executed notebook as its reader opens it: nothing has run yet, text is plain Markdown, and
    links lead to the site if its `address`, that of the page, is known, or else are text."""
    made = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["metadata"].get("tags") == [labs.DRAWN]:
            made.append(_cell(len(made), "markdown", f"*{_led(_PICTURE, address)}.*"))
        elif cell["cell_type"] == "code":
            made.append({**_cell(len(made), "code", text), "metadata": cell["metadata"]})
        else:
            plain = unescape(_MARKUP.sub("", _SOURCES.sub("", text)))
            made.append(
                _cell(len(made), "markdown", _LINK.sub(lambda at: _led(at, address), plain))
            )
    return _notebook([cell for cell in made if cell["source"]])


def as_page(html: str, file: str) -> str:
    """What mkdocs-jupyter made of a lab as the other pages are: without styles of its own, and with
    a link to the notebook's `file` beside the page."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    html = html.replace('class="anchor-link"', 'class="headerlink" title="Permanent link"')
    link = f'<a href="{escape(file)}" download>Download the notebook</a>'
    said = (
        f'<p class="take" data-search-exclude>{link} to measure on your own GPU. '
        "On this page its cells show our recordings.</p>"
    )
    title, heading, rest = html.partition("</h1>")
    return title + heading + rest.replace("</p>", f"</p>\n{said}", 1)


def as_json(notebook: Notebook) -> str:
    """A notebook as its file has it."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind and content of each cell of a drawn lab, and of code the place of its block."""
    at, lines = 0, text.split("\n")
    for fence in fences.find(text):
        yours = fence.options.get("title") == labs.YOURS
        session = fence.options.get("session")
        if yours or session in (labs.SESSION, labs.DRAWN):
            yield from _texts(lines[at : fence.line - 1])
            kind = labs.YOURS if yours else labs.DRAWN if session == labs.DRAWN else "code"
            yield kind, fence.code, fence.options.get("id", "")
            at = fence.end
    yield from _texts(lines[at:])


def _texts(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for text in "\n".join(lines).split(labs.TEXT):
        if text.strip():
            yield "text", text.strip("\n"), ""


def _outputs(printed: str) -> Iterator[dict[str, Any]]:
    """What a cell printed, as the outputs of a notebook: text, and HTML."""
    for at, part in enumerate(HTML.split(printed)):
        if at % 2:
            data = {"text/html": part, "text/plain": ""}
            yield {"output_type": "display_data", "data": data, "metadata": {}}
        elif part.strip():
            yield {"output_type": "stream", "name": "stdout", "text": part.strip("\n") + "\n"}


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    named = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    return {**named, "source": source.splitlines(keepends=True), **code}


def _notebook(cells: list[dict[str, Any]]) -> Notebook:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _led(found: Mapping[str, str] | re.Match, address: str) -> str:
    if address.startswith("http") or found["target"].startswith("http"):
        return f"[{found['text']}]({urljoin(address, found['target'])})"
    return found["text"]
