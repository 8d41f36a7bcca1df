"""A day of the curriculum for tests, on the toy machine's recordings."""

from tests.fakes import synthetic
from tests.fakes.sites import Project

HOME = "---\ntitle: Home\nsection: /\norder: 1\n---\n\n# Home\n\n[[days: all]]\n"
WEEK = """\
---
week: 1
---

# The week

<p class="week-score" data-week="1">Scores need JavaScript.</p>

[[days: week 1]]
"""
ROW = "contiguity.bench.matmul.gpu_warm.sliced_offset_view"
DAY = """\
---
day: 2
---

# How much does a slice cost?

It costs. [[claim:slice-doubles-fp16 | verdict]]
{ .lead }

!!! outcomes "After today you can"
    - say what a slice costs

## What do you remember? { data-minutes="10" }

??? recall "What is a stride?"
    A distance.

## Predict first { data-minutes="20" }

!!! predict "How many times as long does the sliced matmul take?"

    Write down a number.
    { #d02-slice data-unit="×" }

    ??? answer "What was measured"
        It is [[ROW.ratio | speed]].

!!! predict "How long is that?"

    In milliseconds.
    { #d02-time data-unit="ms" }

    ??? answer "What was measured"
        [[ROW.median_s]]

!!! predict "Does it hold?"

    Say which.
    { #d02-holds }

    - **a** it does
    - **b** it does not

    ??? answer "What was measured"
        [[when claim:slice-doubles-fp16 is holds]]

        **a**{ .right } It does.

        [[when fails, holds in part, inconclusive]]

        **b**{ .right } It does not.

        [[end]]

## The experiment { data-minutes="60" }

[Your guess](#d02-slice){ .guess }

!!! takeaway "Takeaway"
    Slices cost. [[claim:slice-doubles-fp16 | verdict]]

!!! misconception "Views are free"
    They are not.

## Exercises { data-minutes="60" }

!!! calculate "1. How long do two take?"

    Write it down.
    { #d02-two data-unit="µs" }

    ??? answer "The answer"
        [[ROW.median_s | us]]

!!! measure "2. Measure it"

    Run it.
    { #d02-mine data-unit="µs" }

    ??? answer "What to expect"
        [[ROW.median_s | expect]]

!!! build "3. Build it"

    Write it.

    ??? answer "One solution"
        It is in the folder.
""".replace("ROW", ROW)


def project(folder, day: str = DAY) -> Project:
    """A site of a home page, the week and this one day."""
    pages = {"index": HOME, "curriculum/week_1": WEEK, "curriculum/day_02": day}
    return Project(folder, synthetic.shared(), names_pages=False).write(**pages)
