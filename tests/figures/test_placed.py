"""Operations on the roofline: each says under which roof it is, on hover and in the table."""

import re

import pytest

from anatomy import page
from anatomy.figures.charts.tradeoffs import Plane, Scale, roof_labels
from anatomy.record.showing import using
from anatomy.table.errors import BadParameter
from tests.fakes import synthetic
from tests.site.test_page import Balance, text

BENCH = {"experiment": "contiguity.bench", "op": "matmul", "quantity": "gpu_warm"}
SOUND = BENCH | {"variant": "contiguous"}


def placed(**operations) -> str:
    with using(synthetic.showing()):
        return page.placed(operations)


def test_the_memory_or_the_format_is_the_roof_of_an_operation():
    html = placed(sound=SOUND, few=SOUND | {"flops_per_byte": 1.0})
    Balance(html)
    few, sound = re.findall(r"<title>((?:few|sound): [^<]*)</title>", html)
    assert re.fullmatch(r"few: 1\.00 FLOP/B, \d+ GFLOP/s; [\d.]+% of what HBM allows", few)
    assert re.fullmatch(r"sound: 1370 FLOP/B, 801 TFLOP/s; 100% of the fp16 peak", sound)
    table = text(html[html.index("<tbody>") :])
    for number, told in enumerate((few, sound), start=1):
        name, rest = told.split(": ")
        assert f"{number}. {name} {rest.replace(',', '').replace(';', '')}" in table


def test_a_call_that_moves_more_than_it_must_has_a_second_mark():
    html = placed(sound=SOUND | {"bytes_moved": 1e9})
    Balance(html)
    (told,) = set(re.findall(r"<title>(sound, by the bytes[^<]*)</title>", html))
    flops = 2 * 8192**3 if "8192" in html else 2 * 4096**3
    assert told.startswith("sound, by the bytes that it moves: ") and "of what HBM allows" in told
    assert f"{flops / 1e9:.0f}" in told


def test_marks_have_their_names_beside_them_and_on_a_phone_the_numbers_of_the_table():
    html = placed(sound=SOUND, few=SOUND | {"flops_per_byte": 1.0})
    pictures = re.findall(r"<svg .*?</svg>", html, re.DOTALL)
    desk, phone = (set(re.findall(r"<text[^>]*>([^<]+)</text>", each)) for each in pictures)
    assert {"sound", "few"} <= desk
    assert {"1", "2"} <= phone and not {"sound", "few"} & phone


def test_an_operation_whose_work_nobody_counted_is_refused():
    with pytest.raises(BadParameter, match="counts no operations: give flops_per_byte"):
        placed(none=SOUND | {"op": "layer_norm"})


@pytest.mark.parametrize(("other", "lift"), [(50e12, 9), (450e12, 3)])
def test_a_roof_says_its_rate_above_a_mark_on_it_where_no_other_roof_is_near(other, lift):
    plane = Plane(Scale(0.02, 3e4, True, 600), Scale(1e9, 2e15, True, 440))
    peaks = {"bf16": 800e12, "fp32": other}
    roofs = [
        {"series": name, "peak": peak, "rate": f"{peak / 1e12:.0f} TFLOP/s", "ridge": peak / 4e12,
         "text": f"{peak / 4e12:.3g}"}
        for name, peak in peaks.items()
    ]  # fmt: skip
    first = roof_labels(roofs, plane, [{"at": 3000.0, "value": 800e12}], short=False)[0]
    assert first["lift"] == lift
    assert ("800 TFLOP/s" in first["text"]) == (lift > 3)
