"""Several published machines: an edition each, and another's figure, labelled, where one lacks."""

import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from anatomy import claims, page
from anatomy.claims import ledger
from anatomy.figures.charts import svg
from anatomy.figures.text import frontmatter, inline
from anatomy.record import failures, loading, recording
from anatomy.record.showing import Asked, Showing, using
from anatomy.site import building, editions
from anatomy.table.errors import MeasurementError
from tests.fakes import second_machine, synthetic
from tests.fakes.second_machine import GPU, SLUG
from tests.fakes.sites import CHECKOUT, Project, block
from tests.site import links

BENCH = "contiguity.bench"
SHOW = f'from anatomy.page import show\nprint(show("{BENCH}", op="matmul"))'
LAYOUT = 'from anatomy.page import show\nprint(show("tensor_layout.report"))'
TIME = f"[[{BENCH}.matmul.gpu_warm.contiguous.median_s]]"
OFFSET = "[[tensor_layout.report.sliced_offset_view.offset_bytes]]"
PAGES = {
    "index": f"# Home\n\n## Times\n\n{TIME} on [[machine:gpu]] and\n\n{OFFSET}, see "
    f"[one](one.md#a).\n\n![](assets/logo.svg)\n\n{block(SHOW)}",
    "one": f"# One\n\n## A\n\n[home](index.md)\n\n{block(LAYOUT)}",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The toy machine whole, and a second one, half as fast, without its layouts."""
    root = copytree(synthetic.shared(), tmp_path_factory.mktemp("two"), dirs_exist_ok=True)
    wanted = {BENCH, "limits.ceilings"}
    return second_machine.copied(root, synthetic.MACHINE, root, wanted.__contains__, 2.0)


@pytest.fixture(scope="module")
def two(tmp_path_factory, root):
    project = Project(tmp_path_factory.mktemp("site"), root, machines=(SLUG, "nobody-has-it"))
    project.write(**PAGES)
    return project.build("--strict", SITE_URL="https://example.org/a/")


def showing(root, machine=SLUG, published=(synthetic.MACHINE,), **more) -> Showing:
    return Showing(root, machine, published=published, page="page.md", **more)


def shown(root, function="show", *given, **options) -> str:
    there = options.pop("showing", None) or showing(root)
    with using(there):
        return getattr(page, function)(*given, **options)


# The site


def test_each_machine_has_every_page_with_its_own_figures(two):
    assert two.status == 0, two.said
    for name in ("index.html", "one/index.html"):
        assert (two.site / SLUG / name).is_file()
    times = [re.findall(r'class="measured"[^>]*>([\d.]+) µs', two.read(f)) for f in
             ("index.html", f"{SLUG}/index.html")]  # fmt: skip
    assert float(times[1][0]) == pytest.approx(2 * float(times[0][0]), rel=0.01)
    assert "on Toy GPU and" in two.read() and f"on {GPU} and" in two.read(f"{SLUG}/index.html")
    assert not (two.site / "nobody-has-it").exists()


def test_links_stay_in_an_edition_and_what_all_share_is_there_once(two):
    html = two.read(f"{SLUG}/index.html")
    assert 'href="one/#a"' in html and 'src="../assets/logo.svg"' in html
    assert f'href="../recordings/{SLUG}/{BENCH}/default.json"' in html
    assert {each.name for each in (two.site / SLUG).iterdir()} == {"index.html", "one"}
    assert [each for each in links.broken(two.site) if not each.startswith("404")] == []
    navigation = re.findall(r'class="md-nav__link[^>]*href="([^"]*)"|href="([^"]*)" class="md-nav',
                            two.read(f"{SLUG}/one/index.html"))  # fmt: skip
    assert {"../"} <= {a or b for a, b in navigation} and "../../" not in str(navigation)


def test_the_header_leads_to_the_same_page_of_the_other_machine(two):
    def switch(path: str) -> list[tuple[str, bool]]:
        links = re.findall(
            r'<a href="([^"]*)" data-machine="[^"]*"( aria-current)?', two.read(path)
        )
        return [(href, bool(current)) for href, current in links]

    assert switch("one/index.html") == [("./", True), (f"../{SLUG}/one/", False)]
    assert switch(f"{SLUG}/one/index.html") == [("../../one/", False), ("./", True)]
    assert switch("index.html") == [("./", True), (f"{SLUG}/", False)]
    assert "data-others" in two.read() and "data-others" not in two.read(f"{SLUG}/index.html")
    assert "data-machine" not in two.read("404.html")


def test_search_and_sitemap_know_the_root_alone_and_others_name_it(two):
    index = json.loads(two.read("search/search_index.json"))["docs"]
    assert index and not any(SLUG in each["location"] for each in index)
    assert SLUG not in two.read("sitemap.xml")
    canonical = '<link rel="canonical" href="https://example.org/a/{}">'
    for path in ("", f"{SLUG}/"):
        assert canonical.format("one/") in two.read(f"{path}one/index.html")
        assert canonical.format("") in two.read(f"{path}index.html")


def test_with_one_machine_there_is_no_switch(tmp_path):
    built = Project(tmp_path, synthetic.shared(), machines=(SLUG,)).write(**PAGES).build()
    assert built.status == 0, built.said
    assert (
        "machines.js" not in built.read()
        and 'class="md-header__option machines"' not in built.read()
    )


def test_what_no_edition_can_show_is_wrong_once(tmp_path, root):
    wrong = Project(tmp_path, root, machines=(SLUG,)).write(index="# T\n\n[x](nope.md)\n").build()
    assert wrong.status != 0
    wrong = (
        Project(tmp_path, root, machines=(SLUG,)).write(index=f"# T\n\n{TIME[:-3]}x]]\n").build()
    )
    assert wrong.said.count("index.md:3: ") == 1


def test_a_row_that_this_machine_has_not_is_of_the_machine_that_has_it(tmp_path, root):
    """Rows are called by their size, and the largest follow a machine's cache."""
    root = copytree(root, tmp_path / "recordings")
    file = root / SLUG / BENCH / "default.json"
    data = loading.read(file)
    for row in data["rows"]:
        row["op"] = f"{row['op']} of 50 MB"
    recording.save(data, root)
    here, there = showing(root), Showing(root, synthetic.MACHINE)
    text, wrong = inline.replace(here, TIME)
    assert not wrong and synthetic_name(there) in text and "of its cache" in text
    assert inline.replace(showing(root, published=()), TIME)[1]  # nowhere else to look
    html = here.run(SHOW, 1)
    assert "of its cache" in html and html.count("<table") == 1 and not here.borrowing
    asked = [each.recording.machine for each in here.looked_up() if each.name == BENCH]
    assert asked == [synthetic.MACHINE]
    _, wrong = inline.replace(here, TIME.replace("matmul", "matmuul"))
    assert "matmul of 50 MB" in wrong[0]  # the names of the machine shown


def synthetic_name(there: Showing) -> str:
    return there.find(BENCH).recording.data["machine"]["gpu"]


def test_the_root_shows_this_gpu_host_and_the_published_ones_follow(root, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    monkeypatch.setenv("ANATOMY_MODE", "auto")
    monkeypatch.delenv("ANATOMY_MACHINE", raising=False)
    own = {"slug": "own-gpu", "card": "1" * 12, "torch": "2.13.0", "driver": "1.1", "cpu": "cpu-x"}
    made = building.prepare(
        [("a.md", f"# A\n\n{TIME}\n\n{block(SHOW)}")],
        addresses={"a.md": "a/"},
        checkout=CHECKOUT,
        shown_machine=synthetic.MACHINE,
        published=[SLUG],
        here=lambda: own,
        record=lambda *_: None,
    )
    assert [each.folder for each in made.editions] == ["", synthetic.MACHINE, SLUG]
    drawn = made.draw("a.md", f"{TIME}\n\n{block(SHOW)}", 0)
    (figure,) = drawn.printed.values()
    assert "Toy GPU</b>: not measured on this machine yet" in drawn.pictures[0] + figure
    assert '<span class="tag elsewhere"' in drawn.text
    assert f"{BENCH}: missing. It has not been measured." in "\n".join(drawn.gaps)
    assert "not measured" not in "".join(made.draw(f"{SLUG}/a.md", block(SHOW), 0).pictures)


def test_a_preview_shows_the_first_machine_alone_and_others_stand_in(root, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    monkeypatch.setenv("ANATOMY_MODE", "replay")
    monkeypatch.delenv("ANATOMY_MACHINE", raising=False)
    made = building.prepare(
        [("a.md", f"# A\n\n{OFFSET}")],
        addresses={"a.md": "a/"},
        checkout=CHECKOUT,
        shown_machine=SLUG,
        published=[synthetic.MACHINE],
        several=False,
        here=lambda: None,
        record=lambda *_: None,
    )
    assert [each.machine for each in made.editions] == [SLUG]
    assert '<span class="tag elsewhere"' in made.draw("a.md", OFFSET, 0).text


def test_every_page_of_the_site_has_an_edition_of_a_machine_that_lacks_most_of_it(
    tmp_path, monkeypatch
):
    """A figure of the published machine stands in for each that the other lacks."""
    first = "nvidia-h200"
    root = copytree(CHECKOUT / "recordings", tmp_path / "recordings")
    own = ("limits.", "contiguity.", "tensor_layout.", "alignment.")
    second_machine.copied(root, first, root, lambda name: name.startswith(own), 1.5)
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(root))
    monkeypatch.setenv("ANATOMY_MODE", "replay")
    monkeypatch.setattr(svg, "picture", lambda *_: "<svg></svg>")  # drawn by other tests
    pages = list(frontmatter.pages_in(CHECKOUT / "docs"))
    made = building.prepare(
        pages,
        addresses={name: f"{name.removesuffix('.md')}/" for name, _ in pages},
        checkout=CHECKOUT,
        shown_machine=first,
        published=[SLUG],
        here=lambda: None,
        record=lambda *_: None,
    )
    drawn = {name: made.draw(f"{SLUG}/{name}", text, 0) for name, text in pages}
    assert [told for each in drawn.values() for told in each.wrong] == []
    limits, precision = (
        each.text + "".join([*each.printed.values(), *each.pictures])
        for each in (drawn["limits.md"], drawn["axioms/precision.md"])
    )
    here, there = (
        float(re.search(r'title="copy, measured[^>]*>([\d.]+) TB', html)[1])
        for html in (made.draw("limits.md", dict(pages)["limits.md"], 0).text, limits)
    )
    assert here == pytest.approx(1.5 * there, rel=0.01) and "strip-elsewhere" not in limits
    assert "<b>NVIDIA H200</b>: not measured on this machine yet" in precision
    assert 'class="notice gap"' not in precision and 'class="gap-inline"' not in precision


def test_a_machine_is_called_what_its_recordings_say(root, tmp_path):
    several = editions.of_site(root, "own-gpu", [SLUG, "nobody-has-it", SLUG, "toy-gpu"])
    assert [each.name for each in several] == ["own-gpu", GPU, "Toy GPU"]
    both = second_machine.copied(root, SLUG, tmp_path, lambda name: name == BENCH)
    (tmp_path / SLUG).rename(tmp_path / "third-gpu")  # its files now lie, so its slug stands
    assert [e.name for e in editions.of_site(both, "third-gpu", [])] == ["third-gpu"]


# Another machine's figure where one lacks


def test_a_figure_that_is_lacking_is_a_published_machines_under_its_name(root):
    html = shown(root, "show", "tensor_layout.report")
    assert "sliced_offset_view" in html
    assert "<b>Toy GPU</b>: not measured on this machine yet" in html
    assert "<code>pytorch-gpu-anatomy record tensor_layout.report</code>" in html
    assert 'class="notice gap"' not in html
    assert "not measured" not in shown(root, "show", BENCH, op="matmul")


def test_what_nobody_has_is_a_gap_with_its_command(root):
    html = shown(root, "show", BENCH, m=512)
    assert 'class="notice gap"' in html and f"record {BENCH} --m 512" in html


def test_one_figure_never_mixes_machines(root, tmp_path):
    copytree(root, tmp_path, dirs_exist_ok=True)
    files = sorted((tmp_path / SLUG / BENCH).glob("*dtype=bf16*.json"))
    files[0].unlink()
    page = showing(tmp_path)
    calls = [(BENCH, {"dtype": dtype, "m": n, "n": n, "k": n}) for dtype in ("fp16", "bf16")
             for n in (2048, 4096, 8192)]  # fmt: skip
    assert {e.recording.machine for e in page.find_together(calls)} == {synthetic.MACHINE}
    assert {e.recording.machine for e in page.find_together(calls[:3])} == {SLUG}
    assert sum(each.lacking for each in page.find_together(calls)) == 1
    html = shown(tmp_path, "matrix", BENCH, by=("m", "n", "k"), dtype=["fp16", "bf16"],
                 m=[2048, 4096, 8192], quantity="gpu_warm", op="matmul")  # fmt: skip
    assert "<b>Toy GPU</b>: 1 of 6 not measured on this machine yet" in html


def test_shares_are_of_the_ceilings_of_the_machine_whose_figure_it_is(root, tmp_path):
    copytree(root, tmp_path, dirs_exist_ok=True)
    (own,) = (tmp_path / SLUG / BENCH).glob("default.json")
    own.unlink()
    page = showing(tmp_path)
    borrowed, mine = page.find(BENCH), page.find(BENCH, dtype="bf16")
    assert page.ceilings_of(borrowed).machine == synthetic.MACHINE
    assert page.ceilings_of(mine).machine == SLUG == page.ceilings.machine
    columns = {"op": "matmul", "quantity": "gpu_warm", "columns": ["variant", "share"]}
    there = shown(tmp_path, "show", BENCH, **columns)
    alone = shown(root, "show", BENCH, showing=synthetic.showing(root=root), **columns)
    body = re.compile(r"<tbody>.*</tbody>", re.DOTALL)
    assert body.search(there)[0] == body.search(alone)[0]


def judged(root, monkeypatch, machine=SLUG):
    needs = (claims.Need(BENCH), claims.Need("tensor_layout.report"))

    def judge(bench, report):
        return claims.Finding(claims.HOLDS, f"Seen on {bench.machine['slug']}.")

    one = claims.Claim("a-claim", "It does.", needs=needs, judge=judge)
    monkeypatch.setattr(claims, "all_claims", lambda: {"a-claim": one})
    return claims.evaluate(showing(root, machine), "a-claim")


def test_a_claim_is_judged_wholly_on_the_machine_that_has_all_it_reads(root, monkeypatch):
    result = judged(root, monkeypatch)
    assert (result.word, result.machine) == (claims.HOLDS, synthetic.MACHINE)
    assert result.evidence == (
        "Seen on toy-gpu. Judged on toy-gpu: second-gpu lacks 1 of 2 recordings."
    )
    assert judged(root, monkeypatch, synthetic.MACHINE).evidence == "Seen on toy-gpu."


def test_the_ledger_lends_nobody_a_verdict(root, monkeypatch):
    judged(root, monkeypatch)
    there = ledger.results(showing(root))
    assert {each.machine: each.word for each in there} == {
        SLUG: claims.NOT_RECORDED,
        synthetic.MACHINE: claims.HOLDS,
    }
    assert ledger.counted(showing(root), there) == synthetic.MACHINE
    answer = shown(root, "ledger", "answer")
    assert "of 1 claims that were decided on" in answer and "1 hold and 0 fail;" in answer
    assert "The recordings of the Second GPU decide none yet." in answer


def test_inline_numbers_and_limits_bear_the_other_machines_name(root, tmp_path):
    copytree(root, tmp_path, dirs_exist_ok=True)
    for file in (tmp_path / SLUG / "limits.ceilings").glob("*.json"):
        file.unlink()
    text, wrong = inline.replace(showing(tmp_path), f"{OFFSET}\n\n{TIME}\n\n[[limit:copy]]")
    assert not wrong
    offset, time, limit = text.split("\n\n")
    assert "elsewhere" in offset and "Toy" in offset
    assert "elsewhere" not in time and "elsewhere" in limit


def test_why_a_call_could_not_be_measured_stands_above_the_other_machines_figure(root, tmp_path):
    copytree(root, tmp_path, dirs_exist_ok=True)
    why = MeasurementError("The <card> fell off the bus.")
    failures.note(tmp_path, SLUG, "tensor_layout.report", {}, why)
    failures.note(tmp_path, SLUG, BENCH, {"m": 512}, why)
    html = shown(tmp_path, "show", "tensor_layout.report")
    said = "<b>Could not be measured on this machine:</b> The &lt;card&gt; fell off the bus."
    assert said in html and html.index(said) < html.index("sliced_offset_view")
    assert "<b>Toy GPU</b>: not measured" in html
    html = shown(tmp_path, "show", BENCH, m=512)
    assert said in html and 'class="notice gap"' in html
    assert recording.machines(tmp_path) == [SLUG, synthetic.MACHINE]


# The page of machines


def test_the_machines_stand_side_by_side_with_what_recording_them_took(root):
    html = shown(root, "machines", showing=showing(root, published=("toy-gpu", "nobody-has-it")))
    assert html.index(GPU) < html.index("Toy GPU") and "nobody-has-it" not in html
    assert "Second CPU" in html and "Toy CPU" in html
    count = len(list((root / SLUG).glob("*/*.json")))
    assert f">{count}</td>" in html and "<td" in html
    limits = shown(root, "machines", "limits")
    assert "copy" in limits and "TB/s" in limits


def test_a_machine_without_recordings_is_not_among_them(root):
    html = shown(root, "machines", showing=showing(root, "own-gpu"))
    assert "own-gpu" not in html and "Toy GPU" in html
    collecting = showing(Path(), collecting=True)
    assert shown(root, "machines", showing=collecting) == ""
    assert Asked("limits.floors", {}, "page.md:0")[0] in {each.name for each in collecting.asked}
