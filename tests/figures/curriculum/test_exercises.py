"""The exercises of the days, for two machines: what a learner finds on paper, from the figures that
the question prints, is what the fold says; and a measured figure is held against a range with room
for ours and for no mistake of a factor. The machines are the recorded one, and the toy."""

import json
import math
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from typer.main import get_command

from anatomy.cli.app import build
from anatomy.figures.text import inline
from anatomy.record.showing import Showing
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT

CLOSE = 0.05  # what docs/assets/curriculum.js calls right
RECORDED = "nvidia-h200"
SMS = {RECORDED: 132, synthetic.MACHINE: 4}
MEMORY = {132: 150.1e9, 4: 2**33}  # bytes, by the SMs
SHOWN = re.compile(r'<span class="measured"[^>]*>([^<]*)<')
NUMBER = re.compile(r"([\d.,]+)\s?(?:([nµmGTM]|[KMG]i)?(?:FLOP/[sB]|B/s|B|s)\b)?(%?)")
SIZE = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20}
SIZE["Gi"] = 2**30


class Box(NamedTuple):
    """An exercise as a page has it: Markdown of its question and of its fold."""

    kind: str
    page: str
    question: str
    fold: str


def boxes() -> dict[str, Box]:
    """By name; by day, where it has none."""
    found = {}
    for path in sorted((CHECKOUT / "docs" / "curriculum").glob("day_*.md")):
        text = path.read_text(encoding="utf-8")
        for box in re.finditer(r"^!!! (calculate|measure) .*?(?=^!!!|^## )", text, re.M | re.S):
            question, _, fold = box[0].partition("??? answer")
            named = re.search(r"\{ #([\w-]+)", question)
            page = f"curriculum/{path.name}"
            found[named[1] if named else path.stem] = Box(box[1], page, question, fold)
    return found


BOXES = boxes()
APP = get_command(build())


@pytest.fixture(scope="module", params=SMS)
def machine(request, tmp_path_factory) -> tuple[str, Path]:
    """A machine, and where its recordings are; the toy's are as many as the exercises ask for."""
    if request.param == RECORDED:
        return RECORDED, CHECKOUT / "recordings"
    root, asked = tmp_path_factory.mktemp("toy"), set()
    for box in BOXES.values():
        showing = synthetic.showing(root, page=box.page, collecting=True)
        inline.replace(showing, box.question + box.fold)
        asked |= {each.name for each in showing.asked}
    for name in asked:
        synthetic.MAKERS[name](root)
    return synthetic.MACHINE, root


def figures(markdown: str, page: str, machine: tuple[str, Path]) -> list[str]:
    """What a page prints as measured in a piece of it."""
    html, wrong = inline.replace(Showing(root=machine[1], machine=machine[0], page=page), markdown)
    if machine[0] == RECORDED and "gap-inline" in html:
        pytest.skip("it is not recorded there yet")
    assert wrong == [] and "gap" not in html
    return SHOWN.findall(html)


def base(text: str) -> float:
    """The number of a figure, in seconds, bytes or operations."""
    digits, prefix, percent = NUMBER.search(text).groups()
    return float(digits.replace(",", "")) * SIZE.get(prefix, 1) / (100 if percent else 1)


# ---- Calculated.


def waves(sms: int, printed: Sequence[float], fold: Sequence[float]) -> list[float]:
    """Places are taken block by block; a wave is over when none is left."""
    free, count = 0, 0
    for _ in range(1000):
        if not free:
            free, count = sms, count + 1
        free -= 1
    return [count, sms, fold[2], count * fold[2]]


def every_eighth(sms: int, printed: Sequence[float], fold: Sequence[float]) -> list[float]:
    sectors = {4 * each // 32 for each in range(0, 2**12, 8)}
    return [len(sectors) * 32 / 2**14 * 2**30 / printed[0]]


def passes(sms: int, printed: Sequence[float], fold: Sequence[float]) -> list[float]:
    once, again = (16 * 2**20 / rate for rate in printed[-2:])
    return [once + 8 * sms * again, 8 * sms * once]


# By hand, from what the question prints: the figures of the fold, as far as they are its answer.
LEARNER: dict[str, Callable[..., list[float]]] = {
    "d02-thousand": waves,
    "d02-little": lambda sms, printed, _: [printed[0] * printed[1] / 128 / sms],
    "d03-elements": lambda _, printed, __: [printed[1] / (12 / printed[0])],
    "d04-passes": passes,
    "d05-gib": every_eighth,
    "d06-bf16": lambda _, printed, __: [printed[0] * n / 2 for n in (4, 8)],
    "d07-batch": lambda _, printed, __: [printed[0] / printed[1]],
    "d08-blocks": lambda _, printed, __: [math.ceil(12 * (printed[0] / 0.002) ** 2)],
    "d09-views": lambda _, __, fold: [8 * 32 * fold[1]],
    "d10-full": lambda sms, printed, _: [MEMORY[sms] / printed[0]],
    "d11-epoch": lambda _, printed, __: [10_000 * printed[0]],
    "d12-paid": lambda _, printed, __: [printed[0] / (printed[1] - printed[2])],
    "d13-gate": lambda _, printed, __: [n * 2**26 / printed[0] for n in (40, 16)],
}


@pytest.mark.parametrize("name", LEARNER)
def test_what_is_found_on_paper_is_what_the_fold_says(name, machine):
    box = BOXES[name]
    printed = [base(each) for each in figures(box.question, box.page, machine)]
    fold = [base(each) for each in figures(box.fold, box.page, machine)]
    found = LEARNER[name](SMS[machine[0]], printed, fold)
    assert fold[: len(found)] == pytest.approx(found, rel=CLOSE)


def test_every_calculation_of_the_days_is_checked_here():
    asked = {name for name, box in BOXES.items() if box.kind == "calculate"}
    assert asked == {*LEARNER, "day_01"}


def test_half_the_width_is_a_quarter_of_the_operations_and_half_the_bytes():
    """The exercise of Day 1, whose answer is in words."""

    def layer(width: int) -> tuple[int, int]:
        x, w = (torch.empty(n, width, dtype=torch.bfloat16, device="meta") for n in (8192, width))
        with FlopCounterMode(display=False) as counter:
            out = x @ w
        return counter.get_total_flops(), out.nbytes

    (flops, moved), (wide_flops, wide_moved) = layer(2048), layer(4096)
    assert (wide_flops / flops, wide_moved / moved) == (4, 2)
    assert re.search(r"Four times fewer operations.*half the bytes", BOXES["day_01"].fold, re.S)


# ---- Measured.


def row(machine: tuple[str, Path], experiment: str, **which: Any) -> dict[str, Any]:
    """A row of the recording that a page shows, with the median of its blocks as `time`."""
    (file,) = (machine[1] / machine[0] / experiment).glob("default.json")
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    found = next(each for each in rows if which.items() <= each.items())
    return found | {"time": statistics.median(found["blocks_s"])}


def rate(of: dict[str, Any], what: str = "bytes") -> float:
    return of[what] / of["time"]


def ridge(machine: tuple[str, Path]) -> float:
    one, most = (row(machine, "roofline.intensity", variant=n) for n in ("1 FMA", "1024 FMAs"))
    return rate(most, "flops") / rate(one)


def share(machine: tuple[str, Path]) -> float:
    relu = row(machine, "roofline.operations", variant="relu")
    return rate(relu) / rate(row(machine, "limits.ceilings", limit="copy"))


# What a reader takes from the table, by the question: of a time the median.
READER: dict[str, Callable[[tuple[str, Path]], float]] = {
    "d01-run": lambda on: row(
        on, "roofline.first_layer", op="large layer", variant="eager bf16")["time"],
    "d02-mine": lambda on: row(on, "occupancy.staircase", variant="1 block")["time"],
    "d03-mine": lambda on: row(
        on, "launches.rates", quantity="step_wall", variant="PyTorch op")["time"],
    "d04-own": lambda on: row(on, "memory_ladder.latency", variant="4.00 KiB")["time"] / 16_384,
    "d05-own": lambda on: rate(row(on, "coalescing.strides", variant="stride 8")),
    "d06-ridge": ridge,
    "d07-own": share,
    "d08-mine": lambda on: row(
        on, "timing.ways", op="addition", variant="perf_counter, a wait a call")["time"],
    "d09-mine": lambda on: row(on, "dispatch.calls", op="one call", variant="torch.add")["time"],
    "d10-mine": lambda on: row(on, "allocator.costs", op="1 GiB", variant="cached")["time"],
    "d11-mine": lambda on: row(
        on, "profiling.overhead", op="small step", variant="CPU")["time"],
    "d12-own": lambda on: row(
        on, "capture.calls", op="small input", variant="compile")["time"],
    "d13-own": lambda on: row(
        on, "fusion.patterns", op="x.cos().cos()", variant="compiled")["time"],
}  # fmt: skip

# Hosts differ by more than a factor of two in these, and no range is narrower than our interval.
OF_THE_HOST = {f"d{day:02}-mine" for day in (3, 8, 9, 10, 11)} | {"d12-own"}


@pytest.mark.parametrize("name", [name for name, box in BOXES.items() if box.kind == "measure"])
def test_a_range_has_room_for_our_figure_and_for_no_mistake(name, machine):
    box = BOXES[name]
    low, high = (base(end) for end in figures(box.fold, box.page, machine)[0].split(" to "))
    ours = READER[name](machine)
    assert 1.05 * low < ours < high / 1.05
    most = 4 if name in OF_THE_HOST else 2
    assert ours / most < low and high < most * ours


@pytest.mark.parametrize("name", [name for name, box in BOXES.items() if box.kind == "measure"])
def test_the_commands_of_an_exercise_are_understood_and_one_needs_no_gpu(name):
    question = BOXES[name].question
    typed = [words.split() for words in re.findall(r"pytorch-gpu-anatomy ([^`\n]+)", question)]
    for shown in re.findall(r'command\("([\w.]+)"', question):
        more = re.search(r"`(--device cpu[^`]*)`", question)
        typed += [[shown], [shown, *(more[1].split() if more else ())]]
    for word, *options in typed:
        APP.get_command(None, word).make_context(word, options)
    scripts = re.findall(r"snippets/\S+\.py", question)
    assert all((CHECKOUT / script).exists() for script in scripts)
    alone = (
        scripts
        or "python -m timeit" in question
        or "import torch" in question
        or "take the" in question
    )
    assert typed and (alone or any("cpu" in words for words in typed))
