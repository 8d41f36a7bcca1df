"""What is recorded is text on a page, whatever it says: it becomes no element and no attribute."""

import ast
import re
from pathlib import Path

import pytest
from markdown import Markdown

from anatomy.figures import tables
from anatomy.figures.charts import svg
from anatomy.figures.text import inline
from anatomy.record import recording, showing, signatures
from tests.fakes import synthetic
from tests.fakes.poison import PAYLOAD, TAG, Poison, Reader, poisoned
from tests.site.test_page import CALLS, IDS, call

EXTENSIONS = ["attr_list", "def_list", "footnotes", "md_in_html", "tables"]
REFERENCES = [
    "contiguity.bench.matmul.gpu_warm.sliced_offset_view.ratio | range",
    "contiguity.bench.matmul.gpu_warm.sliced_offset_view.verdict",
    "contiguity.bench.matmul.gpu_warm.sliced_offset_view.share_of",
    "claim:slice-doubles-fp16",
    "claim:slice-doubles-fp16 | evidence",
    "claim:transposed-view-forces-slower-kernels | condition",
    "limit:matmul fp16",
    "machine:gpu",
    "machine:torch",
]
# What code chooses among words and numbers of its own, by the names that it has there: classes,
# colours, counts of columns, ids made of declared names, a column's head, and base64. By module,
# wherever it lies.
OURS = {
    "building": {"strips.AGED", "strips.SOURCES"},
    "canvas": {"role"},
    "chooser": {"len(panels)"},
    "commands": {"ident"},
    "fences": {"fence.line + offset", "name", "own", "page", "value"},
    "figures": {"tone"},
    "framing": {"f' {kind}' if kind and body else ''"},
    "frontiers": {"kind"},
    "labs": {"DRAWN", "SESSION", "YOURS"},
    "lessons": {"name", "spent"},
    "lists": {"' long' if long else ''"},
    "matrices": {"len(alongs)"},
    "preview": {"_STYLE"},
    "printing": {"side"},
    "spans": {"kind"},
    "strips": {"kind"},
    "svg": {"abreast", "at", "re.escape(name)", "side_by_side"},
    "table": {"len(HEADS)", "of", "title"},
    "tables": {"hover", "kind", "kinds", "width"},
    "timelines": {"address"},
}


@pytest.fixture
def attacked(monkeypatch):
    """Recordings in which every text goes on with an attack as soon as it is printed."""
    find = recording.find

    def attack(*given, **params):
        found = find(*given, **params)
        if found is None:
            return None
        parts = ("machine", "software", "rows", "warnings", "conditions")
        return recording.Recording(
            found.data | {part: poisoned(found.data.get(part)) for part in parts}, found.path
        )

    monkeypatch.setattr(recording, "find", attack)
    monkeypatch.setattr(svg, "picture", lambda *given: "<svg ></svg>")


def test_the_attack_itself_would_be_seen():
    text = Poison("same")
    assert text == "same" and {"same": 1}[text] == 1
    assert Reader(f"<p>{text}</p>").evil and Reader(f'<p title="{text}">').evil
    assert not Reader(tables.code(text)).evil and TAG in tables.code(text)


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=IDS)
def test_no_text_of_a_recording_becomes_markup_in_a_figure(attacked, name, args, kwargs):
    assert not Reader(call(name, *args, **kwargs)).evil


@pytest.mark.parametrize("body", REFERENCES)
def test_no_text_of_a_recording_becomes_markup_in_a_sentence(attacked, body):
    page = synthetic.showing(shown=[showing.Asked("contiguity.bench", {}, "page.md:1")])
    for text in (
        f"See [[{body}]] here.",
        f"[[{body}]]",
        f"- [[{body}]]\n",
        f"| a |\n|---|\n| [[{body}]] |",
    ):
        html, wrong = inline.replace(page, text)
        assert not wrong
        assert not Reader(Markdown(extensions=EXTENSIONS).convert(html)).evil, html


def test_text_that_a_figure_takes_as_its_own_is_escaped(attacked):
    row = {"variant": PAYLOAD, "median_s": 1.0, "role": PAYLOAD, "note": PAYLOAD, "regime": PAYLOAD}
    row |= {"share": 0.5, "share_of": PAYLOAD, "limit_value": 1.0, "limit_kind": PAYLOAD}
    row |= {"op": PAYLOAD, "quantity": PAYLOAD, "verdict": PAYLOAD, "control": PAYLOAD}
    for html in (tables.times([row]), tables.plain([row | {"kernel": PAYLOAD, "blas": PAYLOAD}])):
        assert TAG in html and not Reader(html).evil
    assert not Reader(tables.chip(PAYLOAD, PAYLOAD, PAYLOAD)).evil


def unescaped(tree: ast.AST) -> list[str]:
    """What f-strings put into attributes without `escape`, there or where it got its name."""
    safe = {
        target.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and escapes(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        before = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.Constant):
                before += part.value
                continue
            what = ast.unparse(part.value)
            inside = re.search(r'[\w-]="[^"<>]*$', before)
            # What has a number's format can be nothing else.
            number = part.format_spec and ast.unparse(part.format_spec)[-2] in "fgd"
            if inside and not number and not escapes(part.value) and what not in safe:
                found.append(f"{node.lineno}: {what}")
            before += "x"
    return found


def escapes(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "escape"


def test_what_is_put_into_an_attribute_is_escaped():
    assert unescaped(ast.parse("""f'<p title="{row.note}">'""")) == ["1: row.note"]
    named: dict[str, set[str]] = {}
    for path in Path(signatures.PACKAGE).rglob("*.py"):
        for each in unescaped(ast.parse(path.read_text(encoding="utf-8"))):
            named.setdefault(path.stem, set()).add(each.partition(": ")[2])
    assert named == OURS
