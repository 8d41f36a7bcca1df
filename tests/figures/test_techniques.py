"""The overview of techniques: the ends of each map, what it costs, and what is left out."""

import json
import re
from types import SimpleNamespace

import pytest

from anatomy import page
from anatomy.figures import worths
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.figures.text import frontmatter, inline
from anatomy.figures.worths import Case, Worth
from anatomy.record import recording, showing
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT

TECHNIQUES = [
    each for front in frontmatter.in_folder(CHECKOUT / "docs").values() for each in front.techniques
]


@pytest.fixture
def root(tmp_path):
    for each in TECHNIQUES:
        for name, params in map(inline.called, each.reads):
            synthetic.MAKERS[name](tmp_path, **params)
    return tmp_path


def lines(root) -> dict[str, list[str]]:
    """The cells of each technique, without their markup."""
    with showing.using(synthetic.showing(root=root)):
        markup = page.techniques(caption="Compare `best` with worst.")
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", markup, re.DOTALL)[1:]:
        cells = [re.sub(r"<[^>]+>", " ", each) for each in re.split(r"</t[hd]>", row)]
        name, *rest = [" ".join(each.split()) for each in cells[:-1]]
        found[name] = rest
    return found


def edit(root, name: str, change) -> None:
    for file in (root / synthetic.MACHINE / name).glob("*.json"):
        data = json.loads(file.read_text())
        for row in data["rows"]:
            change(row)
        data["rows"] = synthetic.as_said(data["rows"])
        recording.save(data, root)


def test_each_technique_has_its_ends_in_order_and_its_verdict(root):
    found = lines(root)
    assert list(found) == [each.name for each in TECHNIQUES]
    for name, (best, worst, _, _, promised) in found.items():
        first, last = (float(text.partition("×")[0]) for text in (best, worst))
        assert first >= last > 0, name
        assert promised == "—" or re.search("holds|fails|inconclusive", promised), name
    assert found["channels_last"][4].startswith("1.1-1.3×")


def test_the_best_is_the_smallest_ratio_and_says_where(root):
    def quick(row):
        if row.get("op") == "training bf16 N=32" and row["variant"] == "channels_last":
            row |= {"ratio": 0.01, "ratio_low": 0.0099, "ratio_high": 0.0101}

    edit(root, "channels_last.network", quick)
    best = lines(root)["channels_last"][0]
    assert best.startswith("100") and "training bf16 N=32" in best


def test_a_cell_whose_ordinary_way_was_host_paced_says_so(root):
    def asked(seconds):
        def change(row):
            if row.get("role") == "control":
                row |= {"enqueue_s": seconds, "busy_s": 1e-6 / seconds}

        return change

    for seconds, tagged in ((1.0, True), (1e-6, False)):
        edit(root, "channels_last.network", asked(seconds))
        best, worst = lines(root)["channels_last"][:2]
        assert best.endswith("host-paced") == worst.endswith("host-paced") == tagged


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([(0.9, True), (1.1, False), (14, True)], "GPU-bound median: 1.1×"),
        ([(0.9, True), (14, True)], "host-bound in every case"),
        ([(0.9, False), (1.2, False), (14, False)], "GPU-bound median: 1.2×"),
    ],
)
def test_beside_a_technique_stands_the_median_of_its_cases_on_the_gpu(cases, said):
    worth = Worth("graphs", [Case(*each, True) for each in cases], None)
    assert worth.on_the_gpu == said
    short = said.replace("GPU-bound median", "median")
    longer = worth._replace(name="graphs of the whole training step")
    for width, drawn, one in (680, said, worth), (330, said, worth), (330, short, longer):
        sheet = Canvas(width)
        worths._drawn(sheet, [one])
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", sheet.svg("wide"))
        assert "14" in texts and drawn in texts


def test_a_promise_that_two_techniques_share_counts_once_among_the_verdicts():
    said = ("graphs", "holds"), ("formats", "fails"), ("formats", "fails"), ("fusion", "holds")
    results = [SimpleNamespace(claim=SimpleNamespace(name=name), word=word) for name, word in said]
    assert worths._verdicts(results) == "holds: 2 of 3, fails: 1 of 3"


def test_too_few_blocks_are_left_out(root):
    def few(row):
        if row.get("role") == "variant" and row.get("blocks_s"):
            row["blocks_s"] = row["blocks_s"][:3]

    edit(root, "channels_last.network", few)
    assert lines(root)["channels_last"][:2] == ["—", "—"]


def test_another_control_gives_other_speed_ups(root):
    found = lines(root)
    over = [
        found[f"mixed precision, over {name}"][0].partition(" ")[0] for name in ("fp32", "TF32")
    ]
    assert over[0] != over[1]


def test_memory_and_first_calls_are_ranges_of_what_was_counted(root):
    found = lines(root)
    assert re.match(r"[\d.]+× to [\d.]+× peak", found["activation checkpointing"][2])
    assert re.match(r"[\d.]+ m?s", found["CUDA graphs"][3])

    def dear(row):
        row["setup_s"] = 500.0

    edit(root, "compilation.layers", dear)
    assert lines(root)["torch.compile"][3].endswith(" to 500 s")
    assert found["activation checkpointing"][3] == "—"
    edit(root, "checkpointing.frontier", lambda row: row.update(total_peak_bytes=None))
    assert lines(root)["activation checkpointing"][2] == "—"


def test_without_recordings_it_is_a_table_of_gaps(tmp_path):
    found = lines(tmp_path)
    assert found["torch.compile"][:4] == ["—"] * 4
    assert "not recorded" in found["torch.compile"][4]
