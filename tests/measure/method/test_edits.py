"""What an edit of the measuring room costs: all recordings if it is of the method, else none."""

import os

import pytest

from tests.measure.method import edits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="edited rooms are run in forks")


def test_no_edit_of_the_method_goes_unseen():
    found = edits.sights()
    assert len(found) - len(list(edits.constant_edits())) >= 60
    assert {edit.what: by for edit, by in found} == {edit.what: edit.seen for edit, _ in found}
    assert len({edit.what for edit, _ in found}) == len(found)


def test_every_constant_of_the_room_is_among_the_edits():
    tried = {edit.constant for edit in edits.constant_edits()}
    constants = {name for name in edits.as_it_is().constants if name.isupper()}
    beneath = {"ALLOWED", "SAME_ANSWER", "THROTTLE_FIELDS", "_UNION_MEMBERS"}
    assert tried == constants - beneath and len(tried) >= 40


def test_no_harmless_edit_costs_a_recording():
    found = edits.costs()
    assert len(found) >= 40
    assert [edit.what for edit, when in found if not when] == []
    at_once = [edit for edit, when in found if when == edits.AT_ONCE]
    assert len(at_once) >= 20, "words and places are free without running anything"


def test_an_edit_that_no_longer_applies_is_an_error():
    gone = edits.Edit("an edit", [("clock.py", "there is no such text", "")])
    with pytest.raises(AssertionError, match=r"an edit: clock\.py has no one"):
        edits.edited(gone)
