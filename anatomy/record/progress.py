"""What is being measured, how many are left, and for how long: on standard error, with rich."""

import sys
from collections.abc import Sequence
from statistics import median
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def duration(seconds: float) -> str:
    """A duration as people say it: "4 s", "2 min 5 s", "1 h 10 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def expected_s(last: Sequence[float | None]) -> float | None:
    """Seconds that items will take, from what each took last time, one never measured as long as
    the median of the others; None if none was ever measured."""
    known = [seconds for seconds in last if seconds is not None]
    if not known:
        return None if last else 0.0
    return sum(known) + median(known) * (len(last) - len(known))


class Reporter:
    """Follows a recorder through its items: a bar in a terminal, one plain line each elsewhere."""

    def __init__(self, last: Sequence[float | None], stream: TextIO | None = None) -> None:
        self._last = list(last)  # seconds that each took; None: never measured
        self._done = 0
        self.console = Console(file=stream or sys.stderr, highlight=False)
        self._bar: Progress | None = None

    def __enter__(self) -> "Reporter":
        if self.console.is_terminal and self._last:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=self.console,
                transient=True,
                refresh_per_second=2,  # a busy host would be seen in what is measured
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=len(self._last), left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, what: str) -> None:
        """Say that `what` is measured now."""
        seconds = expected_s(self._last[self._done :])
        left = f"about {duration(seconds)} left" if seconds else ""
        if self._bar:
            self._bar.update(self._task, description=what, left=left)
        else:
            self.line(f"[{self._done + 1}/{len(self._last)}] {what}{left and f', {left}'}")

    def end(self, what: str, how: str) -> None:
        """Say how `what` went, and count it as done."""
        self._done += 1
        if self._bar:
            self._bar.advance(self._task)
        self.line(f"{what}: {how}")

    def line(self, text: str) -> None:
        """Print one line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)
