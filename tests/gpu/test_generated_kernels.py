"""What the compiler makes on a GPU: kernels by a profiler, and the code of one of them."""

import pytest
import torch

from anatomy.chapters.capture import capture
from anatomy.chapters.fusion import fusion, judged
from anatomy.chapters.fusion.patterns import COMBINED

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
QUICK = {"iters": 2, "budget_s": 0.2}


def counts(table) -> dict[tuple[str, str], int]:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    found = {place: each["launched"] for place, each in judged.launched(rows, None)}
    return {(rows[n]["op"], rows[n]["variant"]): count for n, count in found.items()}


def test_the_recorded_code_is_a_triton_kernel_and_its_launch():
    code = capture.code().set_index("variant").generated
    assert code["kernel"].startswith("def triton_poi_") and "/" not in code["call"]
    assert [code["kernel"].count(each) for each in ("tl.load(", "cos(", "tl.store(")] == [1, 2, 1]
    assert ".run(" in code["call"] and "return (" in code["call"]


def test_a_compiled_chain_is_one_kernel_and_an_eager_one_as_many_as_operations():
    found = counts(fusion.chains(**QUICK, scale=2**-6))
    for op in ("multiplications", "cosines"):
        assert [found[op, f"eager, {n}"] for n in (1, 8, 32)] == [1, 8, 32]
        assert [found[op, f"compiled, {n}"] for n in (1, 8, 32)] == [1, 1, 1]


def test_every_pattern_lists_its_kernels():
    found = counts(fusion.patterns(**QUICK, scale=2**-2))
    assert all(found[op, way] >= 1 for op in fusion.PATTERNS for way in ("eager", "compiled"))
    assert found["gate, full w and b", "eager"] == 4
    assert [found[COMBINED, way] for way in ("eager", "compiled")] == [2, 1]


def test_a_template_is_found_and_takes_what_follows():
    found = counts(fusion.matmuls(**QUICK, scale=0.25))
    assert found["relu(a @ b + bias)", "Triton template"] == 1
