"""The outline of the curriculum, its lists, and answers that are calculated."""

import re

import pytest

from anatomy.figures.curriculum import calculations, lists, outline
from anatomy.figures.curriculum.calculations import calculation
from anatomy.figures.text import frontmatter, inline, listings
from anatomy.table import chapters
from anatomy.table.errors import BadParameter, UnknownName
from tests.fakes import synthetic

ROW = "contiguity.bench.matmul.gpu_warm.contiguous.median_s"


def pages(**fronts: str) -> dict[str, str]:
    return {f"{name}.md": f"---\n{front}\n---\n" for name, front in fronts.items()}


def listed(asked: str, **fronts: str) -> str:
    """A list as a page in the folder curriculum/ shows it."""
    texts = pages(**{f"curriculum/{name}": front for name, front in fronts.items()})
    given = {"fronts": frontmatter.read_all(texts.items())[0], "page": "curriculum/index.md"}
    return lists.days(synthetic.showing(**given), asked, "")


def test_there_are_seventy_days_in_five_phases_of_two_weeks():
    assert [len(phase.parts) for phase in outline.parts("phase")] == [2] * 5
    assert [len(week.parts) for week in outline.parts("week")] == [7] * 10
    days = outline.parts("day")
    assert [day.number for day in days] == list(range(1, 71))
    assert len({day.title for day in days}) == 70
    assert all(day.on in ("CPU", "1 GPU", "4 GPUs", "8 GPUs") for day in days)
    assert days[14].within == 3 and outline.numbered("week", 3).within == 2  # Day 15 opens Phase II


def test_a_day_says_its_number_and_the_outline_tells_the_rest():
    texts = pages(b="day: 2", a="day: 8", week="week: 1", phase="phase: 1\nnav: Both weeks")
    fronts, wrong = frontmatter.read_all(texts.items())
    assert wrong == [] and fronts["b.md"].title == outline.numbered("day", 2).name
    first, second = (outline.numbered("week", number).name for number in (1, 2))
    days = [
        {outline.numbered("day", number).name: f"{page}.md"}
        for number, page in ((2, "b"), (8, "a"))
    ]
    assert listings.navigation(texts, fronts) == (
        [
            {
                "Curriculum": [
                    {"Both weeks": "phase.md"},
                    {first: [{"The week": "week.md"}, days[0]]},
                    {second: [days[1]]},
                ]
            }
        ],
        [],
    )


def test_no_two_pages_of_the_curriculum_stand_in_one_place():
    kinds = (("phase", 5), ("week", 10), ("day", 70))
    orders = [outline.place(kind, n)["order"] for kind, many in kinds for n in range(1, many + 1)]
    assert len(set(orders)) == 85 and min(orders) > outline.FIRST_ORDER


@pytest.mark.parametrize("kind", ["phase", "week", "day"])
def test_a_number_beyond_the_curriculum_is_told_with_its_line(kind):
    _, (wrong,) = frontmatter.read_all([("a.md", f"---\ndescription: a\n{kind}: 99\n---\n")])
    assert wrong.startswith("a.md:3: ") and f"{kind} 99: the curriculum has {kind}s 1 to" in wrong


def test_what_is_written_is_linked_and_what_is_not_says_so():
    html = listed("week 1", day_02="day: 2")
    written, missing = (re.search(rf'<li data-day="{n}".*?</li>', html)[0] for n in (2, 3))
    assert '<a href="day_02.md">' in written and "not written" not in written
    assert "<a" not in missing and "not written yet" in missing
    assert html.count("not written yet") == 6
    assert listed("week 2", day_02="day: 2").count("not written yet") == 1, "once for a whole week"


def test_the_whole_curriculum_names_every_day_and_each_phase_is_a_heading():
    text = listed("all", phase_1="phase: 1", week_1="week: 1")
    assert re.findall(r'data-day="(\d+)"', text) == [str(n) for n in range(1, 71)]
    assert text.count("## ") == 5 and '## <a href="phase_1.md">Phase I: Foundations</a>' in text
    assert text.count("<a ") == 2 and text.count("not written yet") == 10
    assert text.index("Phase I:") < text.index("??? note") < text.index("Phase II:"), (
        "to come: folded"
    )
    phase = listed("phase 5")
    assert phase.count("## ") == 2 and "8 GPUs" in phase


def test_a_day_in_a_sentence_is_its_place_and_a_link_where_it_is_written():
    assert listed("day 2", day_02="day: 2") == '<a href="day_02.md">day 2</a>'
    assert listed("Day 3", day_02="day: 2") == "Day 3"


@pytest.mark.parametrize(
    ("asked", "says"), [("week", "ask for"), ("week 11", "weeks 1 to 10"), ("weak 1", "ask for")]
)
def test_a_list_of_nothing_is_refused(asked, says):
    with pytest.raises(BadParameter, match=says):
        listed(asked)


@pytest.fixture
def none_declared(monkeypatch):
    """The chapters' own are loaded once a process, and must not be lost."""
    chapters.load("calculations")
    monkeypatch.setattr(calculations, "DECLARED", {})


@pytest.fixture
def declared(none_declared):
    @calculation(unit="s", one="limit:copy", sms="machine:sm_count", each=ROW)
    def two(one: float, sms: float, each: float) -> float:
        """Some time."""
        return each * sms + 0 * one

    return two


def test_an_answer_is_calculated_for_the_machine_shown(declared):
    showing = synthetic.showing()
    html = inline.render(showing, "calculated: two | us.1")
    each = inline.pick(
        showing.find("contiguity.bench"),
        [(None, w) for w in ("matmul", "gpu_warm", "contiguous")],
        None,
    )
    assert f">{declared(1, 4, each['median_s']) * 1e6:.1f} µs<" in html  # the toy has 4 SMs
    assert 'class="measured"' in html and "Some time. Here one = " in html
    assert re.search(r">[\d.]+ (µs|ms)<", inline.render(showing, "calculated: two"))


@pytest.mark.parametrize(
    ("sms", "text"),
    [(49, "49 FMAs"), (2.46, "2.46 FMAs"), (1e4, "10,000 FMAs"), (123_456.7, "123,000 FMAs")],
)
def test_what_is_counted_reads_as_a_whole_number(none_declared, sms, text):
    @calculation("some", unit="FMAs", count="machine:sm_count")
    def some(count: float) -> float:
        """As many."""
        return count / 4 * sms

    assert f">{text}<" in inline.render(synthetic.showing(), "calculated: some")


def test_an_answer_without_its_recording_is_a_gap_and_a_wrong_name_an_error(declared, tmp_path):
    assert "gap-inline" in inline.render(synthetic.showing(root=tmp_path), "calculated: two")
    collecting = synthetic.showing(collecting=True)
    assert inline.render(collecting, "calculated: two") == ""
    assert {each.name for each in collecting.asked} == {"limits.ceilings", "contiguity.bench"}
    with pytest.raises(UnknownName, match="Did you mean 'two'"):
        inline.render(synthetic.showing(), "calculated: tow")


def test_a_calculation_says_where_its_arguments_come_from(declared):
    with pytest.raises(BadParameter, match="or an argument's source"):
        calculation("three", unit="s")(declared)


def test_what_to_expect_is_wider_than_the_interval():
    text = re.sub(r"<[^>]*>", "", inline.render(synthetic.showing(), f"{ROW} | expect"))
    low, high = (float(n) for n in re.findall(r"[\d.]+(?= µs)", text))
    median = float(
        re.match(
            r"[\d.]+", re.sub(r"<[^>]*>", "", inline.render(synthetic.showing(), f"{ROW} | us"))
        )[0]
    )
    assert 0.7 < low / median < 0.9 and 1.1 < high / median < 1.3
