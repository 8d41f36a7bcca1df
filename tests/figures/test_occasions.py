"""Would you get the same: on pages, with occasions that nobody measured."""

import re
import shutil
from html import unescape

import pytest

from anatomy import page
from anatomy.figures import tables
from anatomy.figures.charts import strips
from anatomy.figures.text import inline
from anatomy.judge import limits
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table.errors import AnatomyError
from tests.fakes import synthetic
from tests.fakes.later import again


@pytest.fixture
def root(tmp_path):
    return shutil.copytree(synthetic.shared(), tmp_path / "recordings")


def shown(root) -> str:
    with using(Showing(root=root, machine=synthetic.MACHINE)):
        return page.occasions(caption="What to see.")


def text(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)))


def test_while_each_recording_has_one_occasion_a_plain_sentence_says_so(root):
    html = shown(root)
    assert 'class="notice gap"' in html and "<svg" not in html
    assert f"Nothing on {synthetic.MACHINE} was measured" in text(html)
    assert "pytorch-gpu-anatomy record --again" in html and "What to see." in html


def test_while_collecting_nothing_is_shown():
    with using(Showing(root=None, machine="", collecting=True)):
        assert page.occasions() == ""


def test_two_occasions_are_drawn_counted_and_told(root):
    folder = root / synthetic.MACHINE / "contiguity.bench"
    for file in sorted(folder.glob("*.json"))[:2]:
        again(file, lambda row: 1.25)
    html = shown(root)
    assert "notice gap" not in html and html.count("<svg") == 2
    (times,) = re.findall(r"<tr[^>]*><t.[^>]*>GPU-bound times.*?</tr>", html)
    assert " 25" in text(times), "they came back within 25 %"
    (line,) = re.findall(r"<tr[^>]*><t.[^>]*>GPU-bound ratios.*?</tr>", html)
    assert " 100% 0 " in text(line), "the same ratios have the same verdicts"


def test_a_sentence_tells_how_far_figures_moved(root):
    def told(reference: str) -> str:
        with using(Showing(root=root, machine=synthetic.MACHINE)) as showing:
            return text(inline.render_text(showing, f"[[again: {reference}]]")).strip()

    assert "one occasion so far: pytorch-gpu-anatomy record --again" in told("ratios | kept")
    for file in sorted((root / synthetic.MACHINE / "contiguity.bench").glob("*.json"))[:2]:
        again(file, lambda row: 1.25)
    assert told("GPU-bound times | half") == "25%"
    assert told("ratios | kept") == "100%" and told("ratios | turned") == "0"
    assert int(told("ratios | rows")) == int(told("GPU-bound ratios | rows")) > 1
    for wrong in ("ratios | half", "ratios", "bound ratios | half"):
        with pytest.raises(AnatomyError):
            told(wrong)


def test_ratios_of_two_paces_are_drawn_and_counted_apart(root):
    file = root / synthetic.MACHINE / "contiguity.bench" / "default.json"
    again(file, lambda row: 1.25)
    rows = recording.load(file).data["rows"]
    hosts = ("contiguous_half", "as_strided_view")  # the second is compared with the first
    rows = [dict(row, launch_inclusive=row["variant"] in hosts) for row in rows]
    again(file, lambda row: 1.25, rows=rows, day=23)
    html = shown(root)
    assert 'style="--abreast: 3"' in html
    for who in ("GPU-bound", "host-bound", "GPU-against-host"):
        (title,) = re.findall(rf"(\d+) {who} ratios<", html)
        (line,) = re.findall(rf"<tr[^>]*><t.[^>]*>{who} ratios<.*?</tr>", html)
        assert f" {title} " in text(line)


def test_the_sources_count_occasions_and_name_the_host_behind_what_it_paces(root):
    showing = Showing(root=root, machine=synthetic.MACHINE)
    with using(showing):
        found = showing.find("contiguity.bench")
    line = text(strips.sources(showing))
    assert "seen on one occasion" in line and "one operation called" not in line
    row = limits.LAUNCH | {"quantity": "host_enqueue", "role": "control", "median_s": 5e-6}
    synthetic.record(root, limits.FLOORS, [row])
    again(found.recording.path, lambda row: 1.1)
    paced = recording.find(root, synthetic.MACHINE, "contiguity.bench")
    paced.rows[0]["paced_by"] = "host"
    showing = Showing(root=root, machine=synthetic.MACHINE)
    showing.cite(type(found)(found.name, {}, paced, found.freshness))
    line = text(strips.sources(showing))
    assert "seen on 2 occasions" in line
    assert "CPU Toy CPU" in line and "one operation called 5.0" in line


def test_what_the_host_paces_says_so_beside_its_name():
    row = {"variant": "eager", "median_s": 1e-3, "paced_by": "host"}
    assert "host-paced" in tables.times([row])
    assert "host-paced" not in tables.times([row | {"paced_by": "GPU"}])
