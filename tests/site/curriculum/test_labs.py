"""Labs: read as pages line for line, executed with recordings and on a CPU, and as notebooks."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jupytext
import nbformat
import pytest

from anatomy import comparison, notebook
from anatomy.figures.curriculum import outline
from anatomy.figures.text import labs
from anatomy.figures.text.labs import DRAWN, YOURS, as_page, cells, written
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table.errors import BadParameter
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Project

LABS = sorted((CHECKOUT / "docs" / labs.FOLDER).glob(f"*{labs.ENDING}"))
MOST_BYTES = 150_000  # of a page
TOY = """\
# ---
# title: "A lab"
# ---

# %% [markdown]
# # What does a slice cost?
#
# More than [nothing](../index.md), and `less` than [this](https://example.org).

# %%
from anatomy.notebook import beside, measure

found = measure("contiguity.bench")
found.show(
    op="matmul", quantity="gpu_warm"
)  # the é before it has two bytes

# %%
row = found.row(op="matmul", quantity="gpu_warm", variant="sliced_offset_view")
print(beside(1.0, row["median_s"], "s"), "<b>")

# %% tags=["drawn"]
print("<svg>a sketch</svg>")

# %% tags=["yours"]
import torch

torch.ones(2)
"""


def test_a_lab_is_a_page_line_for_line():
    page = as_page("labs/a.py", TOY).split("\n")
    lines = TOY.split("\n")
    assert len(page) == len(lines)
    assert page[1] == 'title: "A lab"' and page[5] == "# What does a slice cost?"
    same = [at for at, line in enumerate(page) if line and line == lines[at]]
    assert {lines.index("import torch"), lines.index('row = found.row(op="matmul", quantity='
            '"gpu_warm", variant="sliced_offset_view")')} <= set(same)  # fmt: skip
    assert sum(line == "```" for line in page) == 4


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("# %%\nx = 1\n# %%\ny\n", ":3", "an empty line ends"),
        ("x = 1\n\n# %%\ny\n", ":1", "text begins with"),
        ("# %% [markdown]\nprint(1)\n", ":2", "text begins with"),
        ('# %% tags=["mine"]\nx\n', ":1", "a cell begins with"),
        ("# %%\nx = 1", ":2", "the last cell ends"),
    ],
)
def test_what_belongs_to_no_cell_is_told_with_its_line(text, where, why):
    with pytest.raises(BadParameter, match=f"labs/a.py{where}: .*{why}"):
        as_page("labs/a.py", text)


@pytest.mark.parametrize("code", ["1 + 1", "x = [\n 1,\n]\nx.y(\n  2,\n)  # é\n", 'f("é") # é'])
def test_what_is_printed_for_a_notebook_is_no_part_of_its_code(code):
    printing = as_page("labs/a.py", f"# %%\n{code}\n\n").split("\n")[1:-2]
    assert "output(" in "\n".join(printing)
    assert written("\n".join(printing)) == code.strip("\n")


@pytest.mark.parametrize("file", LABS, ids=lambda file: file.stem)
def test_jupytext_reads_the_same_cells(file):
    theirs = jupytext.read(file).cells
    _, ours = cells(f"labs/{file.name}", file.read_text(encoding="utf-8"))
    if theirs[0].cell_type == "raw":  # our front matter
        theirs = theirs[1:]
    kinds = {"markdown": "text", "code": "code"}
    assert [("\n".join(each.lines).strip("\n"), each.kind) for each in ours] == [
        (each.source, *(each.metadata.get("tags") or [kinds[each.cell_type]])) for each in theirs
    ]


def test_at_least_six_days_have_a_lab_and_each_says_which():
    assert len(LABS) >= 6
    for file in LABS:
        day = outline.numbered("day", int(file.stem.removeprefix("day_")))
        assert f"[day {day.number}](../curriculum/{file.stem}.md)" in file.read_text("utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labs")
    root = folder / "recordings"
    synthetic.bench(root)
    project = Project(folder, root).write(index="# Home\n\nText.")
    (folder / "docs" / "labs").mkdir()
    (folder / "docs" / "labs" / "a.py").write_text(TOY, encoding="utf-8")
    settings = (folder / "mkdocs.yml").read_text(encoding="utf-8")
    named = settings.replace("nav:\n", "nav:\n  - Lab: labs/a.py\n")
    (folder / "mkdocs.yml").write_text(named, encoding="utf-8")
    built = project.build()
    assert built.status == 0, built.said
    return built


def test_a_lab_is_executed_with_the_recordings_and_looks_like_the_site(built):
    page = built.read("labs/a/index.html")
    assert 'class="table-scroll"' in page and "your guess: 1.00 s; measured: " in page
    assert "&lt;b&gt;" in page and "ran on none here" in page
    assert "\n<svg>a sketch</svg>" in page and "print(&quot;&lt;svg" not in page
    assert 'href="../.."' in page and 'href="a.ipynb" download' in page
    assert "output(" not in page and "<!--html-->" not in page and "jp-Cell" not in page
    assert "cdnjs" not in page and len(page) < MOST_BYTES
    assert "Where these numbers come from" in page


def test_its_notebook_opens_unrun_with_its_own_code_and_no_dead_links(built):
    text = built.read("labs/a/a.ipynb")
    nbformat.validate(nbformat.reads(text, as_version=4))
    held = json.loads(text)["cells"]
    assert [each["cell_type"] for each in held] == ["markdown", *["code"] * 2, "markdown", "code"]
    assert "has a picture" in "".join(held[3]["source"])
    words = "".join(held[0]["source"])
    assert "More than nothing, and" in words and "[this](https://example.org)" in words
    assert not any(each.get("outputs") for each in held)
    assert "".join(held[1]["source"]).endswith("has two bytes")
    assert held[4]["metadata"]["tags"] == [YOURS]


def test_a_link_that_leads_nowhere_ends_the_build_with_its_line(tmp_path):
    synthetic.bench(tmp_path / "recordings")
    project = Project(tmp_path, tmp_path / "recordings").write(index="# Home\n\nText.")
    (tmp_path / "docs" / "labs").mkdir()
    text = TOY.replace("../index.md", "../nowhere.md")
    (tmp_path / "docs" / "labs" / "a.py").write_text(text, encoding="utf-8")
    built = project.build()
    assert built.status != 0 and "labs/a.py:8: There is no page 'nowhere.md'" in built.said


@pytest.fixture
def recorded(monkeypatch):
    """Labs run with what is recorded, and their own cells for as short as can be."""
    monkeypatch.setenv("ANATOMY_MODE", "replay")
    quick = partial(comparison.compare_in_python, settle_cap_s=0, profile=False)

    def compare(variants, **given):
        return quick(variants, **given | {"budget_s": 0.05, "iters": 3, "device": "cpu"})

    monkeypatch.setattr(comparison, "compare_in_python", compare)


@pytest.mark.parametrize("file", LABS, ids=lambda file: file.stem)
def test_every_cell_of_a_lab_runs_on_a_cpu(file, recorded, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    _, found = cells(f"labs/{file.name}", file.read_text(encoding="utf-8"))
    names = {"shown": []}
    for cell in found:
        if cell.kind not in ("text", DRAWN):
            code = as_page("x.py", "\n".join(["# %%", *cell.lines])).split("\n")[1:-1]
            exec("\n".join(code), names)
    said = capsys.readouterr().out
    assert "measured: " in said and "nan" not in said
    assert "[" in said.rpartition("<table>")[2], "the last table, that of compare, has intervals"
    assert said.count("<!--html-->") >= 2


def test_a_notebook_needs_no_package_of_the_site_and_replays_without_torch():
    theirs = "altair vl_convert mkdocs markdown markdown_exec jupytext nbformat pymdownx torch"
    code = f"""
import sys
sys.modules |= dict.fromkeys({theirs.split()!r})
from anatomy.notebook import measure
print(measure("sync_points.training_loop").show(op="small", chart="ratios")._repr_html_())
print(measure("transfers.hazard").show()._repr_html_())
print(measure("coalescing.strides").curve(x="stride", y="rate")._repr_html_())
"""
    env = os.environ | {"ANATOMY_MODE": "replay", "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no readback" in done.stdout and done.stdout.count("measured on: ") == 3
    assert done.stdout.count("<details>") == 1 and ">variant</th>" in done.stdout


def test_what_is_measured_says_where_and_is_asked_row_by_row(recorded):
    found = notebook.measure("coalescing.strides")
    row = found.row(op="one of each", variant="stride 8")
    assert row["rate"] < found.row(op="one of each", variant="stride 1")["rate"]
    with pytest.raises(BadParameter, match="rows are like that"):
        found.row()
    html = found.show(op="one of each", columns=["variant", "median_s"])._repr_html_()
    assert "measured on: NVIDIA H200" in html and "µs [" in html


def test_a_build_without_a_recording_has_a_gap_and_goes_on():
    showing = Showing(root=Path("nowhere"), machine="nvidia-h200")
    with using(showing):
        found = notebook.measure("coalescing.strides")
        assert str(found.row(variant="stride 8")["rate"]) == "nan"
        assert "gap" in found.show().html
    assert showing.asked[0].name == "coalescing.strides"


def test_on_a_gpu_it_measures(monkeypatch, recorded):
    monkeypatch.delenv("ANATOMY_MODE")
    monkeypatch.setattr("anatomy.machine.host.here", lambda: {"slug": "nvidia-h200"})
    asked = []

    def measured(declared, params, how):
        asked.append((declared.name, params["iters"]))
        root = recording.default_root()
        return recording.find(root, "nvidia-h200", declared.name)

    monkeypatch.setattr("anatomy.cli.measure.measured", measured)
    assert notebook.measure("coalescing.strides", iters=12).rows
    assert asked == [("coalescing.strides", 12)]


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "said"),
    [
        (None, 2e-6, "s", "measured: 2.00 µs (no guess yet)"),
        (4e-6, 2e-6, "s", "your guess: 4.00 µs; measured: 2.00 µs; a factor of 2 apart"),
        (1e12, 4e12, "B/s", "a factor of 4 apart"),
        (0, 3, "blocks", "your guess: 0 blocks; measured: 3 blocks; a factor of nan apart"),
        (0.5, 0.0947, "% of all", "your guess: 50.0% of all; measured: 9.47% of all"),
    ],
)
def test_a_guess_stands_beside_what_was_measured(guess, measured, unit, said):
    assert said in notebook.beside(guess, measured, unit)
