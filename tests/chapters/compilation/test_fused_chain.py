"""Whether the CPU or the GPU paces a fused chain."""

import pytest

from anatomy import claims
from tests.chapters.compilation import compilation_rows
from tests.claims.test_claims import edited, verdict


@pytest.mark.parametrize(
    ("asking", "word"), [(0.9, claims.HOLDS), (0.4, claims.FAILS), (0.6, claims.INCONCLUSIVE)]
)
def test_the_fused_chain_waits_for_a_cpu_that_asks_for_most_of_its_time(tmp_path, asking, word):
    def edit(row):
        row["enqueue_s"] = asking * row["median_s"]

    compilation_rows.breaks(tmp_path)
    edited(tmp_path, "compilation.breaks", edit)
    assert verdict("fused-chain-waits-for-the-cpu", root=tmp_path).word == word
