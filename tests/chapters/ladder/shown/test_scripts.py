"""The ladder's scripts run by themselves: what their own tables hold each way against."""

import runpy
from pathlib import Path

import pytest

import anatomy
from anatomy.chapters.ladder import rungs

FOLDER = Path(__file__).parents[4] / "snippets" / "ladder"
# Transformer Engine is not installed here.
ALONE = ("0_baseline", "1_cublas", "2_sdpa", "3_compile", "5_fastest")


@pytest.mark.parametrize("rung", ALONE)
def test_a_script_holds_each_way_against_the_limit_of_its_own_number_format(rung, monkeypatch):
    """A loss is a float32 whatever the products are in: by default all would be held against that
    limit, and steps in 16 bits called impossible.
    """
    given = {}
    monkeypatch.setattr(anatomy, "compare", lambda calls, **rest: given.update(rest, calls=calls))
    runpy.run_path(str(FOLDER / f"{rung}.py"), run_name="__main__")
    assert given["flops"] > 0 and given["quantity"] == "step_wall"
    formats = {way.name: way.products for way in rungs.TRAINING if way.rung.script == rung}
    limits = given.get("limit", "matmul fp32")
    for way in given["calls"].keys() & formats:
        limit = limits if isinstance(limits, str) else limits[way]
        assert limit == f"matmul {formats[way]}"
    assert given["calls"].keys() & formats
