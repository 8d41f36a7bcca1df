"""Two machines' verdicts and figures held together, and the causes that are written for them."""

import pytest

from anatomy.claims import FAILS, HOLDS, all_claims, differences, ledger
from anatomy.judge import shifts
from anatomy.record import recording
from anatomy.record.exchange.pairs import Side, sides
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError, UnknownName
from tests.fakes import synthetic, two_machines

CHECKOUT_RECORDINGS = recording.default_root()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return two_machines.made(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def found(root):
    return differences.compared(Side(root, synthetic.MACHINE), Side(root, two_machines.OTHER))


def test_verdicts_that_differ_are_those_of_the_ledger(found, root):
    named = {each.name: each for each in found.verdicts}
    mine = named["slice-doubles-fp16"]
    assert (mine.old.word, mine.new.word) == (HOLDS, FAILS)
    assert (mine.old.machine, mine.new.machine) == (synthetic.MACHINE, two_machines.OTHER)
    words = [differences.judged(side) for side in (found.old, found.new)]
    both = words[0].keys() & words[1].keys()
    assert found.judged == len(both)
    assert set(named) == {name for name in both if words[0][name].word != words[1][name].word}


def test_figures_are_of_the_calls_that_both_have(found, root):
    calls = {(each.new.experiment, *each.new.params.values()) for each in found.figures}
    others = recording.all_recordings(root, two_machines.OTHER)
    assert calls == {(each.experiment, *each.params.values()) for each in others}
    assert found.moved and found.recordings.only_old and not found.recordings.only_new
    sliced = [
        each.shift
        for each in found.figures
        if each.shift.row.get("variant") == "sliced_offset_view" and each.shift.column == "ratio"
    ]
    moved = {each.row["op"] for each in sliced if each.word == shifts.MOVED}
    assert moved == {"matmul"}
    times = [e.shift for e in found.figures if e.shift.column == "median_s"]
    assert shifts.middle(times) == pytest.approx(1.5)


def test_a_machine_against_itself_has_not_moved(root):
    side = Side(root, two_machines.OTHER)
    found = differences.compared(side, side)
    assert not found.moved and not found.verdicts and found.figures


def test_a_recording_that_can_not_be_used_is_one_error_that_names_it(tmp_path):
    two = two_machines.made(tmp_path)
    both = Side(two, synthetic.MACHINE), Side(two, two_machines.OTHER)
    with pytest.raises(RecordingError, match="no recording of the same call"):
        differences.compared(both[0], Side(two, "nobody"))
    next((two / two_machines.OTHER / "contiguity.bench").glob("*.json")).write_text("{")
    with pytest.raises(RecordingError, match=r"other-gpu/contiguity\.bench/.* breaks off"):
        differences.compared(*both)


def test_which_machines_of_two_folders_are_held_together(root, tmp_path):
    copied = two_machines.made(tmp_path / "b")
    same = [(a.machine, b.machine) for a, b in sides(root, copied)]
    assert (two_machines.OTHER, two_machines.OTHER) in same and len(same) >= 2
    ((one, other),) = sides(root, copied, [synthetic.MACHINE, two_machines.OTHER])
    assert (one.machine, other.machine) == (synthetic.MACHINE, two_machines.OTHER)
    assert (one.root, other.root) == (root, copied)
    with pytest.raises(UnknownName, match="nonesuch"):
        sides(root, copied, ["nonesuch"])
    for slug in recording.machines(copied):
        if slug != two_machines.OTHER:
            (copied / slug).rename(copied / f"else-{slug}")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadParameter, match="no machine in common"):
        sides(copied, empty)


def test_a_cause_is_found_whichever_machine_is_first(monkeypatch, found):
    told = {"other-gpu and toy-gpu": {"slice-doubles-fp16": "Other kernels.", "made-up": "No."}}
    monkeypatch.setattr(differences, "causes", lambda: told)
    for machines in (("toy-gpu", "other-gpu"), ("other-gpu", "toy-gpu")):
        assert differences.cause("slice-doubles-fp16", machines) == "Other kernels."
        assert differences.cause("another", machines) == differences.NOT_KNOWN_YET
    assert differences.cause("slice-doubles-fp16", ("a", "b")) == differences.NOT_KNOWN_YET
    assert differences.stray("other-gpu and toy-gpu", found.verdicts) == ["made-up"]


@pytest.mark.parametrize(
    "text", ["[a]\nb='c'", "['z and a']\nb='c'", "['a and z']\nb=''", "['a and z']\nb=1", "= ="]
)
def test_causes_that_are_no_causes_are_one_error(tmp_path, text):
    file = tmp_path / "causes.toml"
    file.write_text(text)
    with pytest.raises(AnatomyError, match=r"causes\.toml"):
        differences.causes(file)


def test_every_cause_that_is_written_is_of_a_claim_that_differs():
    known = ledger.judged_machines(CHECKOUT_RECORDINGS)
    for pair, entries in differences.causes().items():
        slugs = pair.split(differences.JOINED)
        assert set(slugs) <= set(known), f"causes.toml: {pair}: one of them is not recorded here"
        assert set(entries) <= set(all_claims()), f"causes.toml: {pair}: there is no such claim"
        one, other = (differences.judged(Side(CHECKOUT_RECORDINGS, slug)) for slug in slugs)
        stray = differences.stray(pair, differences.differing(one, other))
        assert not stray, f"causes.toml: {pair}: the verdict does not differ on {', '.join(stray)}"
