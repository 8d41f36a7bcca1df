"""What days tell readers without a GPU to count is what the installed torch counts on a CPU."""

import re
import runpy

import torch
from torch._inductor import metrics

from tests.fakes.sites import CHECKOUT


def told(day: str, before: str) -> int:
    """The number that a page gives after these words."""
    text = (CHECKOUT / "docs" / "curriculum" / f"{day}.md").read_text(encoding="utf-8")
    found = re.search(rf"{re.escape(before)}\s+\[\[given: (\d+)", text)
    assert found, f"{day} has no number after {before!r}"
    return int(found[1])


def test_the_calls_of_a_layer_and_those_of_its_dropouts():
    seen = runpy.run_path(str(CHECKOUT / "snippets" / "days" / "day_09" / "keys.py"))["Seen"]

    def calls(**dropout: float) -> int:
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **dropout)
        with seen() as counted:
            layer(torch.ones(1, 4, 8)).sum().backward()
        return len(counted.operators)

    assert calls() == told("day_09", "On a CPU the layer makes")
    assert calls() - calls(dropout=0.0) == told("day_09", "2.13, of which")


def test_the_loops_of_a_softmax_by_hand():
    def softmax(x: torch.Tensor) -> torch.Tensor:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    torch.compiler.reset()
    metrics.reset()
    torch.compile(softmax)(torch.randn(64, 64))
    assert metrics.generated_kernel_count == told("day_13", "A softmax by hand counts")
    torch.compiler.reset()
