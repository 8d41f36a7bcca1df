"""Figures that are read together are of one machine, where another stands in for some of them."""

import re
from pathlib import Path
from shutil import copytree

import pytest

from anatomy import page
from anatomy.figures.curriculum import calculations
from anatomy.figures.text import inline
from anatomy.record.showing import Asked, Showing, using
from anatomy.table import chapters
from tests.fakes import second_machine, synthetic
from tests.fakes.second_machine import GPU, SLUG

BENCH = "contiguity.bench"
TIME = f"[[{BENCH}.matmul.gpu_warm.contiguous.median_s]]"
OFFSET = "[[tensor_layout.report.sliced_offset_view.offset_bytes]]"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The toy machine whole, and a second one, half as fast, without its layouts."""
    root = copytree(synthetic.shared(), tmp_path_factory.mktemp("two"), dirs_exist_ok=True)
    wanted = {BENCH, "limits.ceilings"}
    return second_machine.copied(root, synthetic.MACHINE, root, wanted.__contains__, 2.0)


def showing(root, machine=SLUG, **more) -> Showing:
    return Showing(root, machine, published=(synthetic.MACHINE,), page="page.md", **more)


def test_one_paragraph_never_compares_two_machines(root):
    there = showing(root, shown=[Asked("tensor_layout.report", {}, "")])
    apart = f"{TIME}\n\n[[limit:copy]]"
    text, wrong = inline.replace(
        there, f"{TIME} {OFFSET} [[machine:gpu]] [[limit:copy]]\n\n{apart}"
    )
    together, time, limit = text.split("\n\n")
    assert not wrong and together.count('class="tag elsewhere"') == 3 and "Toy GPU <" in together
    assert "elsewhere" not in time + limit
    toys, own = (float(re.search(r">([\d.]+) µs", each)[1]) for each in (together, time))
    assert own == pytest.approx(2 * toys, rel=0.01)
    sources = {each.recording.machine for each in there.looked_up() if each.name == BENCH}
    assert sources == {SLUG, synthetic.MACHINE}


def test_a_question_and_its_answer_are_of_one_machine(root):
    box = f'!!! calculate "How long?"\n\n    At {TIME}.\n\n    ??? answer\n        {OFFSET}\n'
    text, wrong = inline.replace(showing(root), f"{TIME}\n\n{box}\nThen {TIME}.")
    before, _, at, fold, after = text.split("\n\n")[:5]
    assert not wrong and "elsewhere" in at and "elsewhere" in fold
    assert "elsewhere" not in before + after


def test_a_machine_is_named_by_what_it_recorded_itself(root):
    calls = [Asked("tensor_layout.report", {}, ""), Asked(BENCH, {}, "")]
    pages = [showing(root, shown=shown) for shown in (calls, calls[:1])]
    assert [inline.render(each, "machine:gpu") for each in pages] == [GPU, "Toy GPU"]


def test_a_paragraph_is_mixed_where_no_machine_has_all_of_it(root, tmp_path):
    copytree(root, tmp_path, dirs_exist_ok=True)
    for file in (tmp_path / synthetic.MACHINE / BENCH).glob("*.json"):
        file.unlink()
    text, wrong = inline.replace(showing(tmp_path), f"{OFFSET} / {TIME}")
    offset, time = text.split(" / ")
    assert not wrong and "elsewhere" in offset
    assert "elsewhere" not in time and "µs" in time


def test_a_wrong_name_in_a_mixed_paragraph_is_told_once(root):
    _, wrong = inline.replace(showing(root), f"{OFFSET} {TIME} [[limit:cpoy]]")
    assert len(wrong) == 1 and "Did you mean 'copy'" in wrong[0]


def test_an_answer_is_calculated_from_one_machines_numbers(root, monkeypatch):
    chapters.load("calculations")  # once a process: they must not be lost
    monkeypatch.setattr(calculations, "DECLARED", {})
    offset = OFFSET.strip("[]")

    @calculations.calculation("one", unit="s", time=TIME.strip("[]"), offset=offset)
    def one(time: float, offset: float) -> float:
        """The time."""
        return time + 0 * offset

    toys = inline.render(showing(root, synthetic.MACHINE), "calculated: one")
    there = inline.render(showing(root), "calculated: one")
    number = re.compile(r">([\d.]+ µs)<")
    assert number.search(toys)[1] == number.search(there)[1] and "Toy GPU" in there


def test_a_caption_is_of_the_machine_of_its_figure(root):
    with using(showing(root)):
        html = page.show("tensor_layout.report", caption=f"Beside {TIME}.")
        own = page.show(BENCH, op="matmul", caption=f"Beside {TIME}.")
    times = [float(re.search(r"Beside .*?>([\d.]+) µs", each)[1]) for each in (html, own)]
    assert times[1] == pytest.approx(2 * times[0], rel=0.01)
