"""The ledger: every claim with its verdict on every machine, as rows, and as CSV and JSON.

What can be downloaded, what the page shows and what `pytorch-gpu-anatomy claims` prints are these
rows, a claim on one machine each, and nothing else.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anatomy import claims
from anatomy.claims import Result
from anatomy.record import recording
from anatomy.record.showing import Showing
from anatomy.table.errors import RecordingError, UnknownName
from anatomy.table.units import inert

# What a row of the ledger has, in this order.
COLUMNS = (
    *("row", "claim", "statement", "source", "topic", "machine", "verdict", "condition"),
    *("claimed", "claimed_low", "claimed_high", "unit", "measured", "measured_low"),
    *("measured_high", "measures", "cases", "deviation", "evidence", "fresh"),
)
# The file of a machine's committed verdicts, beside its recordings.
COMMITTED = "verdicts.json"
PAGE = "ledger.md"
BY_READING = "by reading"  # under a verdict that a person found in the documents themselves
# Characters of a condition under a verdict: four lines of its column. A longer one is told whole
# with the evidence, and on hover.
MOST_SAID = 75
DOWNLOADS = ("ledger.csv", "ledger.json")


def results(showing: Showing, machines: Iterable[str] | None = None) -> list[Result]:
    """Every claim on every machine, in the order of the ledger and then of the machines, with those
    about the inherited documents themselves at the end.

    By default these are the page's own, which on a GPU host is the one that is measured, and all
    others that claims are judged on. While `showing` collects, only its own is asked, and the list
    is empty.
    """
    if machines is None:
        others = [] if showing.collecting else judged_machines(showing.root)
        machines = dict.fromkeys([showing.machine, *others])
    pages = [showing.on(slug) for slug in machines]
    found = [claims.evaluate(page, name) for name in claims.all_claims() for page in pages]
    # What was measured on a CPU is beside every GPU the same.
    once = {(each.claim.name, each.machine): each for each in found}
    return [] if showing.collecting else sorted(once.values(), key=lambda each: each.claim.trivia)


def counted(showing: Showing, found: Iterable[Result]) -> str:
    """Slug of the machine whose verdicts a page counts: the one shown, or where no recording of it
    decides any, the first published one with such."""
    judged = {each.machine for each in found if each.word in claims.WORDS and each.found}
    shown = (showing.machine, *showing.published)
    return next((slug for slug in shown if slug in judged), showing.machine)


def judged_machines(root: Path) -> list[str]:
    """Slugs of the machines that claims are judged on: GPUs, to each of which CPUs add theirs."""
    # What several GPUs measured is found by the slug of one.
    known = list(dict.fromkeys(map(recording.one_of, recording.machines(root))))
    return [slug for slug in known if not recording.of_a_cpu(slug)] or known


def row(result: Result) -> dict[str, Any]:
    """One row with the columns of `COLUMNS`; numbers in SI units, what is missing None.

    `fresh` is False where a recording behind the verdict is not current, None without any.
    """
    claim, seen = result.claim, result.measured
    low, high = claim.claimed or (None, None)
    recorded = [each.freshness.current for each in result.found if each.recording]
    values = (
        *(claim.row, claim.name, claim.statement, claim.place, claim.topic, result.machine),
        *(result.word, result.condition or None, claim.number or None, low, high),
        claim.unit or (seen.unit if seen else None),
        *((seen.value, seen.low, seen.high) if seen else (None,) * 3),
        *((claim.measures or None, seen.cases) if seen else (None, None)),
        *(result.deviation, result.evidence, all(recorded) if recorded else None),
    )
    return dict(zip(COLUMNS, values, strict=True))


def as_csv(found: Sequence[Result]) -> str:
    """The rows as CSV, lines ended by a newline; what is missing is empty."""
    held = io.StringIO()
    writer = csv.DictWriter(held, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows = map(_written, found)
    writer.writerows({name: inert(value) for name, value in row.items()} for row in rows)
    return held.getvalue()


def as_json(found: Sequence[Result]) -> str:
    """The rows as a JSON list of objects; what is missing is null."""
    rows = list(map(_written, found))
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _written(result: Result) -> dict[str, Any]:
    """A row with its numbers to six digits, as recordings keep them: machines then agree on it."""
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row(result).items()
    }


def link(showing: Showing, result: Result) -> str:
    """Address of the evidence, relative to the page: its row in the ledger, else a recording."""
    if PAGE in showing.pages:
        up = "../" * showing.page.count("/")
        return showing.page_link(f"{up}{PAGE}#{anchor(result)}")
    there = next((each.recording for each in result.found if each.recording), None)
    return showing.raw_link(there) if there else ""


def where(result: Result) -> str:
    """What stands under a verdict: where a claim holds, shortly, or how many of its cases leave it
    open, or that a person read it up."""
    if result.claim.settled:
        return BY_READING
    if result.word == claims.INCONCLUSIVE:
        return "".join(result.short)
    return brief(result, MOST_SAID)


def brief(result: Result, most: int) -> str:
    """The condition in at most so many characters: itself, else as many of its clauses as there is
    room for, and in how many cases it is met. One without clauses is told whole."""
    if not result.short or len(result.condition) <= most:
        return result.condition
    *clauses, count = result.short
    said = ""
    for clause in clauses:
        if len(f"{said}{clause}; {count}") <= most:
            said += f"{clause}; "
    return f"{said or 'in '}{count}"


def anchor(result: Result) -> str:
    """Id of a claim's row on the ledger's page."""
    return f"claim-{result.claim.name}-{result.machine}"


def counts(found: Iterable[Result]) -> dict[str, int]:
    """How many results have each verdict, in the order of `claims.ALL_WORDS`, none left out."""
    counted = Counter(result.word for result in found)
    return {word: counted[word] for word in claims.ALL_WORDS}


def verdicts(found: Iterable[Result]) -> dict[str, str]:
    """Verdict by claim, of the results of one machine that have one."""
    return {each.claim.name: each.word for each in found if each.word in claims.WORDS}


def committed(root: Path, machine: str) -> dict[str, str]:
    """The verdicts that were committed for a machine, by claim; without any, a RecordingError."""
    path = root / machine / COMMITTED
    mend = f"Write it: pytorch-gpu-anatomy claims --machine {machine} --write"
    file = f"{machine}/{COMMITTED}"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordingError(f"There is no {file} to check against. {mend}") from None
    except (OSError, ValueError) as error:
        raise RecordingError(f"{file} can't be read: {error}. {mend}") from None
    if not isinstance(data, dict) or not set(data.values()) <= set(claims.WORDS):
        raise RecordingError(f"{file} holds something else than verdicts. {mend}")
    return data


def commit(root: Path, machine: str, now: Mapping[str, str]) -> Path:
    """Write a machine's verdicts, one a line; returns the file."""
    path = root / machine / COMMITTED
    text = json.dumps(dict(sorted(now.items())), indent=1, ensure_ascii=False) + "\n"
    try:
        recording.write_whole(path, text)
    except OSError as error:
        why = f"could not be written: {error.strerror}. It is as it was."
        raise RecordingError(f"{machine}/{COMMITTED} {why}") from None
    return path


def changes(before: Mapping[str, str], now: Sequence[Result]) -> list[str]:
    """One sentence for each claim of a machine whose verdict is not the committed one."""
    sentences = []
    for result in now:
        name, word, then = result.claim.name, result.word, before.get(result.claim.name)
        if word != then and (then is not None or word in claims.WORDS):
            was = f"was {then!r}" if then else "had no verdict"
            sentences.append(f"{name}: {was}, is {word!r}. {result.evidence}")
    gone = [name for name in before if name not in {result.claim.name for result in now}]
    return sentences + [
        f"{name}: was {before[name]!r}, and there is no such claim now." for name in gone
    ]


def wanted(
    found: Iterable[Result], verdict: str | None = None, topic: str | None = None
) -> list[Result]:
    """The results with one verdict (`-` may stand for a space), of one topic, or all."""
    found = list(found)
    verdict = verdict and verdict.replace("-", " ")
    if verdict is not None and verdict not in claims.ALL_WORDS:
        raise UnknownName("verdict", verdict, claims.ALL_WORDS)
    topics = {result.claim.topic for result in found}
    if topic is not None and topic not in topics:
        raise UnknownName("topic", topic, topics)
    of_topic = [each for each in found if topic in (None, each.claim.topic)]
    return [each for each in of_topic if verdict in (None, each.word)]
