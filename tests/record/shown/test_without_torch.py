"""A site is built from recordings where there is no torch, as the README's first command does."""

import subprocess
import sys

from anatomy.chapters.harnesses import interleaved
from anatomy.chapters.limits import figures, sustained
from anatomy.measure import blocks
from tests.fakes.sites import CHECKOUT

WITHOUT = """
import sys
sys.modules["torch"] = None  # any import of it fails
from anatomy import page
from anatomy.chapters.harnesses.interleaved import interleaved
from anatomy.claims import all_claims
from anatomy.figures.text import facts
assert facts.references() and all_claims() and dir(page)
"""


def test_all_that_pages_call_is_there_without_torch():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert figures.IN_A_ROW == sustained.IN_A_ROW
    assert list(map(list, interleaved.ORDERS)) == blocks.balanced_orders(3, seed=0)
