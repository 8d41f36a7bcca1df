"""A site is built from recordings where there is no torch, as the README's first command does."""

import os
import subprocess
import sys

from anatomy.chapters.harnesses import interleaved
from anatomy.chapters.limits import figures, sustained
from anatomy.measure import blocks
from tests.fakes.sites import CHECKOUT

WITHOUT = """
import sys
sys.modules["torch"] = None  # any import of it fails
"""
CALLED = """
from anatomy import page
from anatomy.chapters.harnesses.interleaved import interleaved
from anatomy.claims import all_claims
from anatomy.figures.text import facts
assert facts.references() and all_claims() and dir(page)
"""
# Charts are left out: whoever draws them is in a room that may not know torch.
DRAWN = """
from pathlib import Path
from anatomy.figures.charts import svg
from anatomy.figures.text import frontmatter
from anatomy.site import building
svg.picture = lambda *_: "<svg ></svg>"
pages = dict(frontmatter.pages_in(Path("docs")))
what = {"addresses": {name: name for name in pages}, "shown_machine": "nvidia-h200"}
where = {"checkout": Path.cwd(), "project": Path(sys.argv[1])}
site = building.prepare(pages.items(), **what, **where, here=lambda: None, record=None)
texts = {name: (text, 0) for name, text in pages.items()}
site.draw_ahead(texts)
wrong = [each for name, text in texts.items() for each in site.page(name, *text)[1]]
sys.exit("\\n".join(wrong) or 0)
"""


def run(code: str, *arguments) -> subprocess.CompletedProcess:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ANATOMY_")}
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    how = {"cwd": CHECKOUT, "env": plain | {"ANATOMY_MODE": "replay"}}
    return subprocess.run(command, capture_output=True, text=True, **how)


def test_all_that_pages_call_is_there_without_torch():
    done = run(CALLED)
    assert done.returncode == 0, done.stderr
    assert figures.IN_A_ROW == sustained.IN_A_ROW
    assert list(map(list, interleaved.ORDERS)) == blocks.balanced_orders(3, seed=0)


def test_every_block_and_reference_of_every_page_comes_to_its_figures_without_torch(tmp_path):
    done = run(DRAWN, tmp_path)
    assert done.returncode == 0, done.stderr
