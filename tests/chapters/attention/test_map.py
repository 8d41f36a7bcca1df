"""Which lengths a map of attention has, and that PyTorch tells why a backend is refused."""

import pytest
import torch

from anatomy.chapters.attention import attention, requirements
from anatomy.parts.sizes import sequences


@pytest.mark.parametrize(
    ("longest", "step", "lengths"),
    [
        (32768, 4, [128, 512, 2048, 8192, 32768]),
        (1024, 2, [128, 256, 512, 1024]),
        (1000, 4, [250, 1000]),
        (64, 4, [64]),
    ],
)
def test_lengths_rise_to_the_longest(longest, step, lengths):
    assert sequences(longest, step) == lengths


@pytest.mark.parametrize(
    ("longest", "full", "lengths"),
    [
        (32768, False, [128, 512, 2048, 4096, 8192, 16384, 32768]),
        (2048, False, [128, 512, 2048]),
        (1024, True, [128, 256, 512, 1024]),
        (64, False, [64]),
    ],
)
def test_a_map_is_finer_where_the_power_is_fitted(longest, full, lengths):
    assert requirements.lengths(longest, full) == lengths


def test_the_backend_of_other_makers_hides_no_reason(monkeypatch):
    state = [True]
    monkeypatch.setattr(torch._C, "_get_overrideable_sdp_enabled", lambda: state[-1])
    monkeypatch.setattr(torch._C, "_set_sdp_use_overrideable", state.append)
    with pytest.raises(RuntimeError, match="inside"), attention._reasons_told():
        assert state == [True, False]
        raise RuntimeError("inside")
    assert state == [True, False, True]
    monkeypatch.delattr(torch._C, "_set_sdp_use_overrideable")
    with attention._reasons_told():
        assert state == [True, False, True]
