"""What comes of a claim on one machine: its word, its number, and the recordings behind it."""

import json
from math import log

import pytest

from anatomy import claims
from anatomy.claims import Claim, Finding, Measured, Need, Result, Unmeasured
from anatomy.claims.table import Table
from anatomy.figures.charts import figures
from anatomy.record import recording
from anatomy.record.showing import Showing, using
from anatomy.table.errors import AnatomyError, RecordingError
from tests.fakes import synthetic

LAYOUT, ON_CPU = Need("tensor_layout.report"), Need("tensor_layout.report", {"device": "cpu"})
CHECKED = Need("tensor_layout.check")


@pytest.fixture
def root(tmp_path):
    """Two recordings of the toy GPU, and one of a CPU."""
    synthetic.check(tmp_path)
    made = synthetic.layouts(tmp_path, device="cpu")
    data = recording.load(made).data
    data["machine"] |= {"slug": "cpu-toy", "gpu": None, "card": None}
    made.unlink()
    recording.save(data, tmp_path)
    synthetic.layouts(tmp_path)
    return tmp_path


def came(monkeypatch, root, judge, *needs: Need, **given) -> Result:
    """What comes of a claim called `one` with this judge."""
    one = Claim("one", "It is so.", needs=needs, judge=judge)
    monkeypatch.setitem(claims._declared, "one", one)
    return claims.evaluate(Showing(root, synthetic.MACHINE, **given), "one")


def holds(*tables: Table) -> Finding:
    return Finding(claims.HOLDS, "Seen.")


def test_a_finding_comes_with_its_number_and_where_it_holds(monkeypatch, root):
    number = Measured.counted(2.0)
    where = Finding(claims.IN_PART, "Seen.", number, "for a", ("1 of 2",))
    result = came(monkeypatch, root, lambda table: where, LAYOUT)
    assert (result.word, result.evidence) == (claims.IN_PART, "Seen.")
    assert (result.measured, result.condition, result.short) == (number, "for a", ("1 of 2",))
    assert [each.recording.experiment for each in result.found] == ["tensor_layout.report"]


def test_a_page_calls_variants_what_it_likes_under_the_verdict_too(monkeypatch, root):
    where = (
        "always for slow_view; never for any other view of the whole matrix; 7 of 13 cases in all"
    )
    found = Finding(
        claims.IN_PART, "slow_view 2×.", None, where, ("always for slow_view", "7 of 13")
    )
    result = came(monkeypatch, root, lambda table: found, LAYOUT)
    with using(Showing(root, synthetic.MACHINE)):
        html = figures.claims([result], {"slow_view": "A.t()"})
    assert "A.t() 2×." in html and "slow_view" not in html
    assert ">always for A.t(); 7 of 13<" in html and '="always for A.t(); never' in html


def test_a_judge_is_given_the_tables_of_its_needs_in_their_order(monkeypatch, root):
    def judge(check, layout):
        assert {"alignment"} <= set(check.rows[0]) and {"strides"} <= set(layout.rows[0])
        assert layout.params["device"] == "cuda:0" and layout.machine["gpu"] == "Toy GPU"
        return holds()

    assert came(monkeypatch, root, judge, CHECKED, LAYOUT).word == claims.HOLDS


@pytest.mark.parametrize(
    ("needs", "machine"),
    [
        ((LAYOUT,), "toy-gpu"),
        ((LAYOUT, CHECKED), "toy-gpu"),
        ((ON_CPU,), "cpu-toy"),  # and not the one that is shown
        ((ON_CPU, Need("tensor_layout.check", {"m": 7})), "cpu-toy"),
        ((LAYOUT, ON_CPU), "toy-gpu"),
        ((ON_CPU, LAYOUT), "toy-gpu"),
        ((Need("tensor_layout.check", {"m": 7}),), "toy-gpu"),
        ((), "toy-gpu"),
    ],
)
def test_a_result_is_of_the_machine_shown_or_of_the_cpu_if_all_of_it_is(
    monkeypatch, root, needs, machine
):
    assert came(monkeypatch, root, holds, *needs).machine == machine


def test_a_claim_is_judged_once_for_each_machine(monkeypatch, root):
    calls = []

    def judge(table):
        calls.append(table.machine["slug"])
        return holds()

    known: dict = {}
    for _ in range(2):
        came(monkeypatch, root, judge, LAYOUT, known=known)
    assert calls == ["toy-gpu"]


def test_while_a_page_is_only_asked_what_it_shows_nothing_is_judged_or_kept(monkeypatch, root):
    known: dict = {}
    noted = came(monkeypatch, root, holds, LAYOUT, known=known, collecting=True)
    assert (noted.word, noted.evidence) == (claims.NOT_RECORDED, "")
    assert [each.name for each in noted.found] == ["tensor_layout.report"]
    assert came(monkeypatch, root, holds, LAYOUT, known=known).word == claims.HOLDS


def test_what_is_missing_is_counted(monkeypatch, root):
    gone = Need("tensor_layout.check", {"m": 7}), Need("tensor_layout.report", {"m": 7})
    result = came(monkeypatch, root, holds, LAYOUT, *gone)
    assert (result.word, result.measured, result.condition) == (claims.NOT_RECORDED, None, "")
    assert result.evidence == "2 of the 3 recordings that it reads are missing."


def refuses(*tables: Table) -> Finding:
    raise RecordingError("It has no such row.")


def divides(*tables: Table) -> Finding:
    return 1 / 0


def stale(root, name: str) -> None:
    """Say that other code measured a recording."""
    (file,) = (root / synthetic.MACHINE / name).glob("*.json")
    data = json.loads(file.read_text())
    data["code"]["hash"] = data["code"]["hash"][::-1]
    recording.save(data, root)


@pytest.mark.parametrize("breaks", [refuses, divides])
def test_a_claim_that_breaks_on_an_old_recording_has_none_that_it_can_read(
    monkeypatch, root, breaks
):
    stale(root, "tensor_layout.check")
    assert came(monkeypatch, root, holds, LAYOUT, CHECKED).word == claims.HOLDS
    result = came(monkeypatch, root, breaks, LAYOUT, CHECKED)
    assert result.word == claims.NOT_RECORDED and "too old for it" in result.evidence


def test_a_claim_that_breaks_on_current_recordings_is_an_error(monkeypatch, root):
    with pytest.raises(RecordingError, match=r"^It has no such row\.$"):
        came(monkeypatch, root, refuses, LAYOUT)
    with pytest.raises(AnatomyError, match=r"^The claim one could not be .*: ZeroDivisionError: "):
        came(monkeypatch, root, divides, LAYOUT)


def test_what_cannot_be_measured_is_a_verdict_even_of_an_old_recording(monkeypatch, root):
    def judge(table):
        raise Unmeasured("needs sm_89")

    stale(root, "tensor_layout.report")
    result = came(monkeypatch, root, judge, LAYOUT)
    assert (result.word, result.evidence) == (claims.NOT_MEASURABLE, "needs sm_89")


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        ({}, None),
        ({"judge": holds, "verdict": claims.FAILS}, None),  # a measurement settles it
        ({"verdict": claims.FAILS}, Finding(claims.FAILS, "By reading: it says so.")),
        (
            {"verdict": claims.IN_PART},
            Finding(claims.IN_PART, "By reading: it says so.", condition="it says so"),
        ),
    ],
)
def test_a_reading_settles_what_no_measurement_can(given, finding):
    assert Claim("one", "It is so.", because="it says so", **given).settled == finding


@pytest.mark.parametrize(
    ("claimed", "value", "deviation"),
    [
        ((2.0, 4.0), 3.0, 1.0),
        ((2.0, 4.0), 0.5, 0.25),
        ((2.0, 4.0), 8.0, 2.0),
        ((0.5, 0.5), 0.25, 0.5),
        ((0.0, 4.0), 3.0, None),  # there is no factor to 0, or to what is negative
        ((2.0, 4.0), 0.0, None),
        ((2.0, 4.0), -1.0, None),
        (None, 3.0, None),
        ((2.0, 4.0), None, None),
    ],
)
def test_a_deviation_is_the_factor_to_the_nearest_end_of_what_was_claimed(
    claimed, value, deviation
):
    claim = Claim("one", "It is so.", claimed=claimed, unit="x")
    number = None if value is None else Measured.counted(value)
    result = Result(claim, claims.HOLDS, "", (), number)
    assert result.deviation == deviation
    assert result.distance == pytest.approx(abs(log(deviation or 1.0)))


def test_a_docstring_tells_the_claim_and_then_its_test(monkeypatch):
    monkeypatch.setattr(claims, "_declared", {})

    @claims.claim(LAYOUT, topic="layouts")
    def told(table):
        """It is so.

        The first.

        The second.

        The third.
        """

    one = claims._declared["told"]
    assert (one.statement, one.test, one.row) == ("It is so.", "The first.", None)
    assert (one.needs, one.judge, one.topic) == ((LAYOUT,), told, "layouts")


def test_a_statement_is_given_once_by_the_seed_or_by_the_claim(monkeypatch):
    monkeypatch.setattr(claims, "_declared", {})

    def slice_doubles_fp16():
        """It does.

        By its ratio."""

    with pytest.raises(AnatomyError, match="slice-doubles-fp16 needs one statement"):
        claims.claim(topic="alignment")(slice_doubles_fp16)
    claims.claim()(slice_doubles_fp16)
    assert claims._declared["slice-doubles-fp16"].row == 37
