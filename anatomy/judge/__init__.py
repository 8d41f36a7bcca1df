"""What may be said of a table, from what clocks, counters and checks said: pure, and on reading.

A recording keeps block medians, counts, and what an experiment knows of each row. Times and their
intervals, the noise floor, ratios, verdicts, regimes, what is impossible and pay-back follow from
these when it is read, so a better statistic, another threshold or a mended datasheet costs no
measurement. Such columns in an older file are unread wherever the row keeps what they follow from.

They come from `anatomy.judge.comparisons` for rows that `compare` returned, from
`anatomy.judge.merging` where several fresh processes measured them, from `anatomy.judge.occasions`
where several days or hosts did, and from what a topic declares with `anatomy.judge.rules`. Not
judged on reading is what no row keeps the sources of: errors against a reference, the regime of an
older recording, the diagnosis of `bottlenecks.confusion`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anatomy.judge import comparisons, merging, occasions, pace, replication, rules
from anatomy.judge.comparisons import Circumstances, Row

__all__ = ["Circumstances", "following", "judged", "kept", "noise_floors"]

# What rows of several processes have beside the columns of a comparison.
PROCESSES = ("run_medians_s", "run_ratios", "interval")
# What says how rows stand, and is never read from them.
STANDING = ("paced_by", *occasions.COLUMNS)


def judged(rows: Sequence[Mapping[str, Any]], known: Circumstances | None = None) -> list[Row]:
    """`rows`, all of one recording or comparison, with all that follows from what they keep.

    What they say themselves of the columns that follow is unread. A MeasurementError is raised
    where blocks that were measured together do not pair up.
    """
    follows = following(rows, known or Circumstances())
    return [{**row, **more} for row, more in zip(rows, follows, strict=True)]


def kept(rows: Sequence[Mapping[str, Any]], known: Circumstances | None = None) -> list[Row]:
    """`rows` without the columns that `judged` gives them: what a recording keeps. Ends that a row
    without blocks has of its own stay, though earlier occasions widen them."""
    follows = following(rows, replace(known or Circumstances(), earlier=()))
    return [
        {name: value for name, value in row.items() if name not in more}
        | ({"note": note} if (note := comparisons.own_note(row)) else {})
        for row, more in zip(rows, follows, strict=True)
    ]


def noise_floors(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The noise floor of each comparison in a table, by "op quantity"."""
    floors: dict[str, float] = {}
    for row in rows:
        if row.get("noise_floor") is not None:
            named = " ".join(str(row[part]) for part in ("op", "quantity") if row.get(part))
            # Several comparisons may share an op: what holds for all of them is the largest.
            floors[named] = max(row["noise_floor"], floors.get(named, 0.0))
    return floors


def following(rows: Sequence[Mapping[str, Any]], known: Circumstances) -> list[Row]:
    """For each row the columns that follow from what it, the others, and earlier occasions keep; as
    for `judged`."""
    processes = max((len(row.get("run_blocks") or ()) for row in rows), default=0)
    whole = [{n: value for n, value in row.items() if n not in STANDING} for row in rows]
    # What a row says itself of these is unread, whatever it is.
    found: list[Row] = [dict.fromkeys(n for n in STANDING if n in row) for row in rows]
    last = (pace.of_the_rest, occasions.judged)
    if processes > 1:
        judges = last
        for place, columns in enumerate(_of_processes(whole, known, processes)):
            whole[place] |= columns
            found[place] |= columns
    else:
        of_topic = [each for each in rules.rules() if known.experiment in each.experiments]
        early, late = ([r.judge for r in of_topic if r.early is when] for when in (True, False))
        # A topic's rules read the intervals of comparisons, and time other rows.
        first = (comparisons.judged, *early, pace.of_comparisons, occasions.judged)
        judges = (*first, *late, *last)
    for judge in judges:
        for place, columns in judge(whole, known):
            whole[place] |= columns
            found[place] |= columns
    return found


def _of_processes(rows: Sequence[Mapping], known: Circumstances, processes: int) -> list[Row]:
    """The same of rows that several processes measured: each is judged alone, then merged."""
    tables = [[_share_of(row, number) for row in rows] for number in range(processes)]
    one = replace(known, earlier=())
    judged_tables = [following(table, one) for table in tables]
    found = []
    for place, row in enumerate(rows):
        parts = [each[place] for each in judged_tables]
        columns = {name for part in parts for name in part}
        if not columns:
            found.append({})
            continue
        whole = [table[place] | part for table, part in zip(tables, parts, strict=True)]
        one = merging.merged_row(whole)
        if one.get("note") or row.get("verdict") == "impossible":
            columns.add("note")
            notes = filter(None, (one.get("note"), comparisons.own_note(row)))
            one["note"] = "; ".join(notes) or None
        columns |= {*PROCESSES}
        found.append({name: one[name] for name in one if name in columns})
    return found


def _share_of(row: Mapping[str, Any], number: int) -> Row:
    """A row as the process of this number, from 0, would have returned it."""
    beside = (*PROCESSES, "runs", "run_blocks", "note")
    own = {name: value for name, value in row.items() if name not in beside}
    if row.get("run_blocks"):
        own["blocks_s"] = replication.blocks_of(row)[number]
    return own
