"""Dispatch keys of calls on a GPU; skipped without one."""

import pytest
import torch

from anatomy.chapters.dispatch import calls
from anatomy.chapters.dispatch.keys import keys_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
WHERE = torch.device("cuda", 0)


def test_an_addition_stops_at_autograd_and_at_its_kernel():
    x = torch.ones(1, device=WHERE)
    said = "AutogradCUDA, (ADInplaceOrView), (BackendSelect), CUDA"
    assert keys_of("aten::add.Tensor", x, x) == said
    with torch.autocast("cuda", torch.bfloat16):
        assert keys_of("aten::add.Tensor", x, x) == f"(AutocastCUDA), {said}"
        assert keys_of("aten::mm", x).startswith("AutocastCUDA, AutogradCUDA")


@pytest.mark.parametrize("make", [calls.additions, calls.matmuls])
def test_every_way_computes_its_result_on_the_gpu(make):
    x, ways = make(WHERE)
    for name, way in ways.items():
        found, exact = way.loop(x, 3)(), way.exact()
        torch.testing.assert_close(found.double(), exact, rtol=2**-6, atol=1e-2, msg=name)
