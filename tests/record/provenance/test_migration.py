"""Every recording carries the hash of the code at the commit that measured it."""

import pytest

from tests.record.provenance.migration import history_is_here, shown


def test_recordings_carry_the_hash_of_the_code_that_measured_them():
    if not history_is_here():
        pytest.skip("this clone lacks the history that it would be shown from")
    found = list(shown())
    assert found
    assert not {str(each.recording.path): each.faults for each in found if each.faults}
