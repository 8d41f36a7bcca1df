"""The page on several GPUs in headless Chromium: the calculator says what its table says, and of a
reader's own model what the fit says."""

import re

import pytest

from anatomy.chapters.distributed.scaling import Fit


@pytest.fixture(scope="module")
def address(built, serve):
    return serve(built.site)


@pytest.fixture
def calculator(opened):
    return opened("axioms/distributed/").locator(".several-gpus")


def test_the_calculator_follows_what_is_typed(calculator):
    names = ("start-s", "rate", "share", "most")
    start_s, rate, share, most = (float(calculator.get_attribute(f"data-{n}")) for n in names)
    fit = Fit(start_s, rate, 2)
    told = calculator.get_by_role("status")
    before = told.text_content()
    for field in calculator.locator("input").all():
        assert field.evaluate("it => it.validity.valid"), "what it begins with can be kept"
    for name, value in (("million weights", "7000"), ("your step", "900"), ("GPUs of one", "8")):
        calculator.get_by_label(name).fill(value)
    all_reduce_s = fit.seconds(4 * 7e9, 8)
    seen = {}
    for name in ("all-reduce", "step", "exposed", "efficiency", "least"):
        text = told.locator(f"[data-{name}]").text_content()
        seen[name] = float(re.match(r"[\d.]+", text)[0]) * (1e-3 if text.endswith(" ms") else 1)
    assert seen["all-reduce"] == pytest.approx(all_reduce_s, rel=0.01)
    for time, efficiency, part in (("step", "efficiency", share), ("exposed", "least", most)):
        whole = 0.9 + part * all_reduce_s
        assert seen[time] == pytest.approx(whole, rel=0.01)
        assert seen[efficiency] == pytest.approx(100 * 0.9 / whole, abs=1)
    assert told.text_content() != before
    kept = [told.locator(f"[data-{name}]").text_content() for name in ("ddp", "fsdp")]
    assert kept == ["140 GB", "14 GB"]
    calculator.get_by_label("million weights").fill("1.5")
    assert "?" not in told.locator("b").all_text_contents()
    calculator.get_by_label("GPUs of one").fill("0")
    assert set(told.locator("b").all_text_contents()) == {"?"}, "no answer of before stays"
