"""What differs between two machines' recordings, or those before and after a change: figures, the
verdicts on claims, and what explains these.

The causes are written by hand in `causes.toml`, which says how.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from anatomy import claims
from anatomy.claims import Result, ledger
from anatomy.judge import shifts
from anatomy.judge.shifts import Shift
from anatomy.record.exchange.pairs import Paired, Side, paired
from anatomy.record.recording import Recording
from anatomy.record.showing import Showing
from anatomy.table.errors import AnatomyError, RecordingError

CAUSES = Path(__file__).with_name("causes.toml")
NOT_KNOWN, NOT_KNOWN_YET = "not known", "not known yet"
JOINED = " and "  # of the two slugs


@dataclass(frozen=True)
class Difference:
    """One claim with two verdicts."""

    old: Result
    new: Result

    @property
    def name(self) -> str:
        """The claim's id."""
        return self.new.claim.name


@dataclass(frozen=True)
class Figure:
    """One figure of a call that both sides have recorded."""

    old: Recording
    new: Recording
    shift: Shift


@dataclass(frozen=True)
class Compared:
    """Two sides held against each other."""

    old: Side
    new: Side
    recordings: Paired
    figures: list[Figure]
    rows_left: Mapping[str, int]  # how many rows are not compared, by why
    verdicts: list[Difference]
    judged: int  # claims with a verdict on both sides

    @property
    def moved(self) -> bool:
        """Whether a figure was shown to have moved, or a verdict is another one."""
        words = {each.shift.word for each in self.figures}
        return bool(self.verdicts) or shifts.MOVED in words


def compared(old: Side, new: Side, page: Showing | None = None) -> Compared:
    """Every figure and verdict of two sides; a `page` as for `judged`. RecordingError where they
    have no call in common."""
    one, other = (judged(each, page) for each in (old, new))
    read = [each.recording for result in (*one.values(), *other.values()) for each in result.found]
    both = paired(old, new, {each.path: each for each in read if each})
    if not both.both:
        raise RecordingError(
            f"{old.machine} and {new.machine} have no recording of the same call, so there is "
            "nothing to hold against each other."
        )
    figures, left = [], Counter()
    for before, now in both.both:
        found = shifts.shifts(before.rows, now.rows, now.experiment)
        figures += [Figure(before, now, each) for each in found.figures]
        left["only in the old one"] += len(found.only_old)
        left["only in the new one"] += len(found.only_new)
        left["do other work"] += len(found.other_work)
    count = len(one.keys() & other.keys())
    return Compared(old, new, both, figures, left, differing(one, other), count)


def judged(side: Side, page: Showing | None = None) -> dict[str, Result]:
    """Every claim that one machine's own recordings decide or leave open, by its id, and none that
    can't be measured on it; a `page` of the same recordings shares what it has read."""
    found = ledger.results(page or Showing(side.root, side.machine), [side.machine])
    # One that was judged on another machine's says nothing of this one.
    own = (each for each in found if each.machine == side.machine)
    words = set(claims.WORDS) - {claims.NOT_MEASURABLE}
    return {each.claim.name: each for each in own if each.word in words}


def differing(old: Mapping[str, Result], new: Mapping[str, Result]) -> list[Difference]:
    """The claims that are judged on both sides with two verdicts, in the order of the ledger."""
    both = ((old[name], new[name]) for name in old if name in new)
    return [Difference(*pair) for pair in both if pair[0].word != pair[1].word]


def cause(name: str, machines: Sequence[str]) -> str:
    """What explains the two verdicts on a claim on two machines: a text for a page."""
    return causes().get(JOINED.join(sorted(machines)), {}).get(name, NOT_KNOWN_YET)


@cache
def causes(file: Path = CAUSES) -> dict[str, dict[str, str]]:
    """All causes by pair of machines and claim; AnatomyError where the file holds anything else."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AnatomyError(f"{file.name} can't be read: {error}.") from None
    for pair, entries in found.items():
        slugs = pair.split(JOINED)
        if len(slugs) != 2 or slugs != sorted(slugs) or not isinstance(entries, dict):
            raise AnatomyError(
                f"{file.name}: the table {pair!r} must be named by two machines in order, such as "
                f"'nvidia-a100{JOINED}nvidia-h200'."
            )
        for name, text in entries.items():
            if not isinstance(text, str) or not text.strip():
                raise AnatomyError(f"{file.name}: the cause of {name} must be a sentence.")
    return found


def stray(pair: str, differing: Iterable[Difference]) -> list[str]:
    """The claims that a pair of machines has a cause for and no two verdicts on."""
    known = {each.name for each in differing}
    return [name for name in causes().get(pair, {}) if name not in known]
