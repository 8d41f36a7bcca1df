"""What softmax takes at the least, from its scores and what the SMs give."""

import re

import pytest

from anatomy.chapters.attention.references import least_s
from anatomy.figures.text import inline
from anatomy.record import recording
from tests.chapters.attention import attention_rows
from tests.fakes import synthetic

MACHINE = {"capability": "9.0", "sm_count": 132, "max_sm_clock_mhz": 1980}


def test_each_score_is_one_exponential():
    heads, tokens, width = 8, 8192, 64
    flops = 4 * heads * tokens**2 * width  # of both matmuls, without a mask
    scores = heads * tokens**2
    assert least_s({"flops": flops}, width, MACHINE) == pytest.approx(scores / (16 * 132 * 1980e6))


def test_of_another_generation_nothing_is_said():
    assert least_s({"flops": 1e9}, 64, MACHINE | {"capability": "10.0"}) is None


def test_a_page_refers_to_it_by_the_call(tmp_path):
    file, sequence = attention_rows.backends(tmp_path), attention_rows.SEQUENCES[-1]

    def said() -> str:
        return inline.render(synthetic.showing(root=tmp_path), f"exponentials:forward N={sequence}")

    data = recording.load(file).data
    del data["machine"]["max_sm_clock_mhz"]
    recording.save(data, tmp_path)
    assert "of Toy GPU is not known" in said(), "its clock was not recorded"
    data["machine"] |= MACHINE
    recording.save(data, tmp_path)
    assert re.search(r">[\d.]+ (?:n|µ|m)?s<", said()) and "16 a clock of each SM" in said()
