"""Builds of small projects with the site's own settings: what passes, what fails, and how."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from shutil import copytree

import pytest
from mkdocs.plugins import EVENTS

from anatomy.record import recording
from anatomy.record.showing import Asked
from anatomy.site import processes
from anatomy.site.building import prepare
from anatomy.site.collecting import PageProblems
from anatomy.table.errors import AnatomyError, BadParameter, Busy
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Built, Project, block

SHOW = 'from anatomy.page import show\nprint(show("contiguity.bench", op="matmul"))'
REFERENCE = "[[contiguity.bench.matmul.gpu_warm.contiguous.ratio]]"


@pytest.fixture
def project(tmp_path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, synthetic.shared())


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """One good build, for several tests: its log and its files."""
    ratio = "[[contiguity.bench.matmul.gpu_warm.sliced_offset_view.ratio | .2f]]"
    chart = SHOW.replace('op="matmul"', 'op="matmul", chart="ratios"')
    quiet = 'print("<b>printed</b>")\nimport sys\nassert "torch" not in sys.modules'
    project = Project(tmp_path_factory.mktemp("good"), synthetic.shared()).write(
        index=f"# Home\n\n{block(quiet)}",
        one=f"# One\n\n{ratio}\n\n{block(chart)}",
        two="# Two\n\n`[[x]]`\n\n" + block("x = 1", 'exec="on" session="s"'),
    )
    return project.build("--strict")


def test_a_strict_build_renders_figures_references_and_raw_files(good):
    assert good.status == 0, good.said
    html = good.read("one/index.html")
    assert 'class="chart"' in html and 'class="measured"' in html
    assert 'href="../recordings/toy-gpu/contiguity.bench/default.json"' in html
    raw = good.site / "recordings/toy-gpu/contiguity.bench/default.json"
    assert json.loads(raw.read_text())["machine"]["gpu"] == "Toy GPU"
    assert "<b>printed</b>" in good.read()
    assert "<code>[[x]]</code>" in good.read("two/index.html")


def test_no_page_names_a_folder_of_the_builder_or_another_host(good):
    for path, content in good.files().items():
        assert str(CHECKOUT).encode() not in content, path
        assert str(good.site.parent).encode() not in content, path
        if path.endswith(".html"):
            hosts = set(re.findall(rb'(?:src|href)="(?:https?:)?//([^/"]+)', content))
            assert hosts <= {b"squidfunk.github.io"}, (path, hosts)  # a link in the footer


def test_the_404_page_leads_back_to_the_pages(good):
    html = good.read("404.html")
    assert "There is no such page" in html
    assert 'href="/one/"' in html and 'href="/."' in html


def failing(code: str, options: str = 'exec="on" html="1"') -> str:
    return f"---\ntitle: T\n---\n\n# T\n\n{block(code, options)}"


FAILURES = {
    "braces": ('# T\n\n```{.python exec="on" html="1"}\nprint(1)\n```\n', 3, "without braces"),
    "a failing block": (failing("x = 1\n1 / x\nundefined"), 10, "NameError: name 'undefined'"),
    "a syntax error": (failing("print(1\nx = "), 8, "SyntaxError"),
    "an end of the build": (failing("raise SystemExit(0)"), 8, "SystemExit(0)"),
    "an exit": (failing("print(1)\nexit()"), 9, "SystemExit(None)"),
    "an unquoted option": (failing("print(1)", "exec=on"), 7, 'must be quoted: exec="on"'),
    "a mistyped option": (failing("print(1)", 'exce="on"'), 7, "Did you mean exec?"),
    "a value of an option": (failing("1", 'exec="on" source="abve"'), 7, "must be one of above"),
    "a taken id": (
        failing("1", 'exec="on" id="a"') + block("2", 'exec="on" id="a"'),
        10,
        'id="a" is taken by the block at line 7',
    ),
    "an unknown experiment": (failing(SHOW.replace("bench", "bnech")), 9, "Did you mean 'cont"),
    "an unknown parameter": (failing(SHOW.replace("op=", "opp=")), 9, "called 'opp'"),
    "an unknown row": (
        failing(SHOW.replace('op="matmul"', 'rows=["contiguos"]')),
        9,
        "mean 'conti",
    ),
    "an unknown claim": (
        failing("from anatomy.page import claims\nclaims('x')"),
        9,
        "no claim 'x'",
    ),
    "an unknown claim in a sentence": (
        "# T\n\nwords\n[[claim:slice-dubles-fp16]]\n",
        4,
        "Did you mean 'slice-doubles-fp16'",
    ),
    "an unknown reference": (
        f"# T\n\n{REFERENCE.replace('ratio', 'rato')}\n",
        3,
        "no column 'rato'",
    ),
    "an ambiguous reference": (
        "# T\n\nwords\n[[contiguity.bench.matmul.contiguous.median_s]]\n",
        4,
        "it meets 2 rows, and must meet one. Add one of quantity: gpu_warm, gpu_cold.",
    ),
    "a snippet that is not there": (
        '# T\n\n```python\n--8<-- "nope.py"\n```\n',
        4,
        "Snippet at path 'nope.py' could not be found",
    ),
    "snippets on lines of their own": ("# T\n\n--8<--\nnope.py\n--8<--\n", 3, "'nope.py' could"),
    "a link to no page": ("# T\n\na\n[x](nope.md)\n", 4, "a link 'nope.md', but the target"),
    "a link to no heading": ("# T\n\n[x](#none)\n", 3, "a link '#none', but there is no such"),
}
PAGE_OF = {what: f"wrong{number}.md" for number, what in enumerate(FAILURES)}


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict[str, Built]:
    """The build that names each wrong page: what one did not come to is built without the rest."""
    left, told = dict(FAILURES), {}
    while left:
        project = Project(tmp_path_factory.mktemp("wrong"), synthetic.shared())
        pages = {PAGE_OF[what].removesuffix(".md"): text for what, (text, *_) in left.items()}
        built = project.write(index="# Home\n", **pages).build("--strict")
        named = [what for what in left if f"{PAGE_OF[what]}:" in built.said] or list(left)
        told |= dict.fromkeys(named, built)
        left = {what: each for what, each in left.items() if what not in named}
    return told


@pytest.mark.parametrize("what", FAILURES)
def test_a_wrong_page_fails_the_build_and_is_named_with_its_line(told, what):
    _, line, says = FAILURES[what]
    said = told[what].said
    assert told[what].status != 0 and "Traceback" not in said, said
    _, place, after = said.partition(f"{PAGE_OF[what]}:{line}: ")
    assert place, said
    assert says in after.splitlines()[0]


@pytest.mark.parametrize("options", [("--no-strict",), ("-q",), ("-q", "--strict")])
def test_a_failing_block_fails_every_kind_of_build_with_a_message(project, options):
    built = project.write(index="# Home\n", bad=failing("undefined")).build(*options)
    assert built.status != 0
    assert "bad.md:8: the block failed with NameError" in built.said
    assert not (built.site / "bad" / "index.html").exists()


def test_all_wrong_pages_are_told_at_once(project):
    bad = failing("undefined")
    home = f"# Home\n\n{REFERENCE.replace('ratio', 'no')}\n"
    built = project.write(index=home, a=bad, b=bad).build()
    assert "3 things are wrong on the pages" in built.said
    assert all(place in built.said for place in ("index.md:3", "a.md:8", "b.md:8"))


def test_a_wrong_name_leaves_the_site_that_was_there(project):
    project.write(index="# Home\n").build()
    built = project.write(bad=failing(SHOW.replace("bench", "bnech"))).build()
    assert built.status != 0 and (built.site / "index.html").exists()


def test_missing_and_stale_recordings_are_gaps_and_the_build_passes(project, tmp_path):
    copytree(synthetic.shared(), tmp_path / "recordings")
    file = tmp_path / "recordings/toy-gpu/tensor_layout.report/default.json"
    stale = json.loads(file.read_text())
    stale["code"]["hash"] = "f" * 64
    recording.save(stale, tmp_path / "recordings")
    project.recordings = tmp_path / "recordings"
    text = (
        "# T\n\nAbout [[contiguity.bench(m=512).matmul.gpu_warm.contiguous.median_s]].\n\n"
        + block('from anatomy.page import show\nprint(show("contiguity.bench", m=512))\n'
                'print(show("tensor_layout.report"))')
    )  # fmt: skip
    built = project.write(index=text).build("--strict")
    assert built.status == 0, built.said
    html = built.read()
    assert html.count("pytorch-gpu-anatomy record contiguity.bench --m 512") >= 1
    assert 'class="gap-inline"' in html and 'class="notice gap"' in html
    assert html.count('class="notice badge"') == 1, "once, and a mark at the figure"
    badge, figure = html.split('class="notice badge"')[1].split("<figure", 1)
    assert "The code that measures it has changed" in badge and "1 of the " in badge
    assert "record tensor_layout.report" in badge and stale["started_at"][:10] in badge
    assert "The code that measures it has changed" in figure.split('class="stale"')[1]
    assert "contiguity.bench: missing." in built.said


def test_a_recording_that_was_changed_by_hand_fails_the_build(project, tmp_path):
    copytree(synthetic.shared(), tmp_path / "recordings")
    file = tmp_path / "recordings/toy-gpu/contiguity.bench/default.json"
    file.write_text(file.read_text().replace('"samples": 240', '"samples": 241', 1))
    project.recordings = tmp_path / "recordings"
    built = project.write(index=f"# T\n\n{block(SHOW)}").build()
    assert built.status != 0
    assert "index.md:5: " in built.said and "was changed after it was recorded" in built.said
    assert str(tmp_path) not in built.said.replace(str(project.folder), "")


def test_sessions_end_with_their_page(project):
    make = block("kept = 1", 'exec="on" session="s"')
    use = block("print(kept)", 'exec="on" session="s"')
    assert project.write(index=f"# A\n\n{make}{use}").build().status == 0
    built = project.write(index=f"# A\n\n{make}", other=f"# B\n\n{use}").build()
    assert built.status != 0 and "other.md:4: the block failed with NameError" in built.said


def test_the_same_recordings_give_the_same_bytes(project):
    text = f"# T\n\n{REFERENCE.replace('contiguous', 'sliced_offset_view')}\n\n" + block(
        SHOW + '\nprint(show("contiguity.bench", op="matmul", chart="times"))'
    )
    project.write(index=text, other=text)
    first = project.build(SOURCE_DATE_EPOCH="1700000000")
    before = first.files()
    again = project.build(SOURCE_DATE_EPOCH="1800000000")  # on another day
    assert first.status == again.status == 0
    assert before == again.files() and "sitemap.xml" not in before
    there = project.build(SITE_URL="https://example.org/a/")
    assert re.findall("<loc>(.*)</loc>", there.read("sitemap.xml")) == [
        "https://example.org/a/",
        "https://example.org/a/other/",
    ]


def test_two_builds_at_once_the_second_is_told_so(project):
    slow = block("import time\nprint(time.sleep(600))")  # it is killed
    project.write(index=f"# T\n\n{slow}")
    first = subprocess.Popen(
        project.command(),
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        lock = project.folder / processes.LOCK
        while not lock.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        second = project.build("--strict")
        assert second.status != 0
        assert second.said.count("Another `mkdocs build` is at work") == 1
        assert "Traceback" not in second.said
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    (project.folder / "docs" / "index.md").write_text("# T\n")
    assert project.build("--strict").status == 0  # a killed build leaves no lock behind


def test_the_process_of_mkdocs_never_imports_torch_or_the_record_half():
    code = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, "hooks")
        import events
        from anatomy import page
        from anatomy.figures.charts import plain
        from anatomy.site import building
        assert "torch" not in sys.modules
        assert not {"anatomy.record.recorder", "anatomy.record.processes.worker"} & set(sys.modules)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


PAGES = [("a.md", f"# A\n\n{block(SHOW)}"), ("b.md", f"# B\n\n{REFERENCE}\n")]
HERE = {"slug": "here-gpu", "card": None, "torch": None, "driver": None, "cuda": None}


def prepared(monkeypatch, mode: str | None, here=None, pages=PAGES, shown="toy-gpu"):
    calls = []
    monkeypatch.delenv("ANATOMY_MACHINE", raising=False)
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(synthetic.shared()))
    monkeypatch.setenv("ANATOMY_MODE", mode or "")
    found = prepare(
        pages,
        addresses={},
        checkout=CHECKOUT,
        shown_machine=shown,
        here=lambda: here,
        record=lambda asked, root, mode: calls.append((asked, root, mode)),
    )
    return found, calls


def test_on_a_gpu_host_one_recorder_gets_everything_that_pages_show(monkeypatch):
    found, calls = prepared(monkeypatch, None, HERE)
    ((asked, root, mode),) = calls
    assert {each.name for each in asked} == {"contiguity.bench", "limits.ceilings"}
    assert len(asked) == 2 and root == synthetic.shared() and mode == "auto"
    assert found.machine == "here-gpu" and found.here == HERE


def test_without_a_gpu_the_machine_in_the_settings_is_shown_and_nothing_measured(monkeypatch):
    found, calls = prepared(monkeypatch, "auto")
    assert not calls and found.machine == "toy-gpu" and found.here is None


def test_replay_never_measures_and_does_not_even_ask_for_a_gpu(monkeypatch):
    found, calls = prepared(monkeypatch, "replay", HERE)
    assert not calls and found.machine == "toy-gpu"


def test_remeasure_is_handed_on_and_needs_a_gpu(monkeypatch):
    assert prepared(monkeypatch, "remeasure", HERE)[1][0][2] == "remeasure"
    with pytest.raises(AnatomyError, match="there is no GPU here"):
        prepared(monkeypatch, "remeasure")


def test_a_mistyped_mode_and_a_site_without_machine_are_refused(monkeypatch):
    with pytest.raises(BadParameter, match="'relay': it must be one of auto, replay, remeasure"):
        prepared(monkeypatch, "relay")
    with pytest.raises(AnatomyError, match="Nothing says which machine"):
        prepared(monkeypatch, "replay", shown=None)


def test_nothing_is_measured_for_pages_that_are_wrong(monkeypatch):
    with pytest.raises(PageProblems, match=r"c\.md:1: "):
        prepared(monkeypatch, "auto", HERE, [*PAGES, ("c.md", "[[nope]]")])


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """A stand-in for the recorder's module, in a checkout of its own, that does as it is told."""
    room = tmp_path / "anatomy" / "record"
    room.mkdir(parents=True)
    for package in (room.parent, room):
        (package / "__init__.py").write_text("")
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def does(code: str) -> str:
        (room / "recorder.py").write_text("import json, os, sys, time\n" + code)
        asked = [Asked("contiguity.bench", {"m": 512}, "a.md:1")]
        return processes.run_recorder(asked, tmp_path / "recordings", "auto", tmp_path)

    return does


def test_the_recorder_is_told_what_to_measure_and_where(recorder, tmp_path):
    assert recorder("open('told', 'w').write(sys.stdin.read())") == ""
    told = json.loads((tmp_path / "told").read_text())
    assert told["shown"] == [["contiguity.bench", {"m": 512}, "a.md:1"]]
    assert told["mode"] == "auto" and told["root"] == str(tmp_path / "recordings")


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (5, Busy, "Another recorder"),
        (3, AnatomyError, "could not begin"),
        (130, AnatomyError, "kept"),
    ],
)
def test_a_recorder_that_could_not_work_ends_the_build(recorder, status, error, says):
    with pytest.raises(error, match=says):
        recorder(f"sys.stdin.read(); sys.exit({status})")


def test_a_failed_experiment_costs_itself_alone(recorder):
    assert "the pages show gaps there" in recorder("sys.stdin.read(); sys.exit(1)")


def test_an_interrupt_waits_for_the_recorder_to_clean_up(recorder, tmp_path):
    """Ctrl-C reaches both processes of a terminal; the build must not leave before the other."""
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.stdin.read()\n"
        f"os.kill({os.getpid()}, signal.SIGINT)\n"
        "time.sleep(1)\nopen('cleaned', 'w').close()\nsys.exit(130)\n"
    )
    with pytest.raises(AnatomyError, match="What was finished is kept"):
        recorder(code)
    assert (tmp_path / "cleaned").exists()


def test_the_hooks_are_what_mkdocs_calls(monkeypatch):
    monkeypatch.syspath_prepend(CHECKOUT / "hooks")  # as MkDocs does
    named = {each for each in runpy.run_path(f"{CHECKOUT}/hooks/events.py") if each[:3] == "on_"}
    assert named and named <= {f"on_{event}" for event in EVENTS}, "an event is mistyped"
