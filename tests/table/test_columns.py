"""Columns are declared once, and every recording returns declared ones alone."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from anatomy import judge
from anatomy.judge import rows
from anatomy.record import recording, signatures
from anatomy.table import columns, units
from anatomy.table.errors import AnatomyError

CHECKOUT = Path(__file__).resolve().parents[2]
RECORDINGS = CHECKOUT / "recordings"
PATTERNS = (columns.SHARED, *columns.TOPICS)
# Names that got a second meaning before columns were declared. One is renamed when its experiment
# is next recorded, and then goes from here; no new one may come.
TWO_MEANINGS = {
    *("before", "direction", "error", "found", "gradients", "graphs", "kernel_s", "kind"),
    *("largest", "lengths", "low_s", "high_s", "mask", "part", "shape", "uses", "width"),
}


@cache
def recorded() -> list[recording.Recording]:
    return recording.all_recordings(RECORDINGS)


def test_every_recorded_figure_lies_in_its_interval():
    seen = 0
    for one in recorded():
        for row in (rows.derived(row, None) for row in one.rows):
            for column, ends in columns.intervals().items():
                value, low, high = (row.get(name) for name in (column, *ends))
                if not any(map(units.missing, (value, low, high))):
                    assert low <= value <= high, (one.path, row.get("op"), column)
                    seen += 1
    assert seen > 10_000


def package(folder: Path, **files: str) -> Path:
    """A package that declares columns: `shared`, or a topic, -> the text of its file."""
    for topic, text in files.items():
        place = "table/declared" if topic == "shared" else f"chapters/{topic}/columns"
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / f"{topic}.toml").write_text(text)
    return folder


def problems(package: Path = columns.PACKAGE) -> list[str]:
    """What is wrong with the declarations, one sentence each; empty where all is well."""
    every = columns.declared(package)
    by_name: dict[str, list[columns.Column]] = {}
    for column in every:
        by_name.setdefault(column.name, []).append(column)
    return [wrong for found in by_name.values() for wrong in _clashes(found)] + [
        f"{column.topic or 'shared'}: {column.name} {wrong}."
        for column in every
        for wrong in _faults(column, by_name)
    ]


def _clashes(found: list[columns.Column]) -> list[str]:
    """What is wrong with several declarations of one name."""
    if len(found) == 1:
        return []
    name, wrong = found[0].name, []
    if len([column for column in found if not column.of]) > 1:
        places = ", ".join(column.topic or "shared" for column in found)
        wrong.append(
            f"{name} is declared twice ({places}): where it means the same, declare it once among "
            "the shared columns; else give one of them another name."
        )
    experiments = [each for column in found for each in column.of]
    if len(experiments) > len(set(experiments)):
        wrong.append(f"{name} has two meanings in one experiment.")
    # What prints a value knows its name, and not always the experiment that it is of.
    printed = ("unit", "heading", "shown", "aside")
    if any(len({getattr(each, field) for each in found} - {"", "1"}) > 1 for field in printed):
        wrong.append(f"{name} is printed in several ways: its unit, heading or place differ.")
    return wrong


def _faults(column: columns.Column, by_name: dict[str, list[columns.Column]]) -> list[str]:
    """What is wrong with one declaration."""
    ends_in, kind, aside = columns.unit_of(column.name), column.kind, column.aside
    lost = [name for name in column.interval if name not in by_name]
    faults = {
        "has no sentence that says what it means": not column.meaning.endswith("."),
        f"is of the kind {kind!r}, none of {', '.join(columns.KINDS)}": kind not in columns.KINDS,
        "is a number without a unit; a ratio has unit 1, what is counted is a count": (
            kind == columns.NUMBER and not column.unit
        ),
        f"has the unit {column.unit}, and its name says {ends_in}": (
            ends_in and kind != columns.TEXT and column.unit != ends_in
        ),
        f"lies aside in {aside!r}, which is neither {columns.ALWAYS} nor {columns.TERMINAL}": (
            aside not in ("", columns.ALWAYS, columns.TERMINAL)
        ),
        f"has a unit, and so can't be shown as {column.shown}": column.shown and column.unit != "1",
        "has words and is no text": column.words and kind != columns.TEXT,
        "tells rows apart, and so is neither a result nor to be compared": (
            column.identifies and (column.judged or column.interval or column.must_match)
        ),
        f"has an interval of columns that are not declared: {', '.join(lost)}": lost,
    }
    return [fault for fault, there in faults.items() if there]


def test_the_declarations_are_sound():
    assert problems() == []


def test_every_recorded_column_is_declared_for_its_experiment():
    lost = {}
    for each in recorded():
        names = {name for row in each.data["rows"] for name in row}
        if unknown := columns.undeclared(each.experiment, sorted(names)):
            lost[each.experiment] = unknown
    assert not lost, f"declare them in anatomy/chapters/TOPIC/columns.toml: {lost}"


def test_every_declared_column_is_returned_by_some_experiment():
    returned = {name for each in recorded() for row in each.data["rows"] for name in row}
    written = texts_of("chapters") | texts_of("measure") | texts_of("parts")
    read = {c.name for c in columns.declared() if c.of_recording} | derived()
    # Merging the tables of several processes makes these.
    merged = {*judge.PROCESSES}
    idle = {c.name for c in columns.declared()} - returned - written - read - merged
    assert not idle, f"no experiment returns {sorted(idle)}: take their declarations out"


def derived() -> set[str]:
    """Columns that rows get when they are read."""
    from anatomy import judge
    from anatomy.judge import rows, rules

    ruled = {name for each in rules.rules() for name in each.columns}
    row = {"median_s": 1.0, "low_s": 0.9, "high_s": 1.1, "bytes": 1, "limit": "copy"}
    row |= {f"ratio{over}{end}": 1.0 for over in ("", "_before") for end in ("", "_low", "_high")}
    return {*rows.derived(row, None), *judge.PROCESSES, *judge.STANDING, *ruled} - set(row)


def texts_of(folder: str) -> set[str]:
    """Texts and names of keywords in the code of a folder: how rows get their columns.

    Claims and judgements read rows, and so name columns that nothing need return.
    """
    found = set()
    for file in (columns.PACKAGE / folder).rglob("*.py"):
        if re.search("claims|judged", file.relative_to(columns.PACKAGE).as_posix()):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.keyword | ast.FunctionDef):
                found.add(node.arg if isinstance(node, ast.keyword) else node.name)
    return found


def test_the_coordinates_tell_the_rows_of_every_recording_apart():
    for each in recorded():
        of = columns.of_experiment(each.experiment)
        coordinates = [name for name, column in of.items() if column.identifies]
        keys = Counter(repr([row.get(name) for name in coordinates]) for row in each.data["rows"])
        assert max(keys.values()) == 1, f"{each.experiment}: {keys.most_common(1)}"


def test_recorded_values_are_of_the_declared_kind_and_words():
    types = {"number": int | float, "count": int | float, "text": str, "flag": bool, "list": list}
    for each in recorded():
        of = columns.of_experiment(each.experiment)
        for row in each.data["rows"]:
            for name, value in row.items():
                if value is None:
                    continue
                told = f"{each.experiment}.{name}: {value!r}"
                assert isinstance(value, types[of[name].kind]), told
                assert isinstance(value, bool) == (of[name].kind == "flag"), told
                assert of[name].kind != "count" or value == int(value), told
                assert not of[name].words or value in of[name].words, told


def test_intervals_hold_their_figures():
    for each in recorded():
        for row in each.data["rows"]:
            for name, ends in columns.intervals().items():
                values = [row.get(part) for part in (ends[0], name, ends[1])]
                known = [value for value in values if value is not None]
                assert known == sorted(known), f"{each.experiment}.{name}: {values}"


def test_no_name_gets_a_second_meaning():
    counts = Counter(column.name for column in columns.declared())
    assert {name for name, count in counts.items() if count > 1} == TWO_MEANINGS


def test_the_experiments_of_a_meaning_exist():
    known = signatures.experiments()
    for column in columns.declared():
        for name in column.of:
            assert name in known, f"{column.name}: {name} is no experiment"
            assert name.partition(".")[0] == column.topic, f"{column.name} of {name}"


def test_no_declaration_repeats_what_is_so_without_it():
    for file in (f for each in PATTERNS for f in columns.PACKAGE.glob(each)):
        for name, told in tomllib.loads(file.read_text()).items():
            for field, value in told.items():
                if field in ("meaning", "of"):
                    continue
                less = {key: other for key, other in told.items() if key != field}
                assert columns._made(name, "", less) != columns._made(name, "", told), (
                    f"{file.name}: {name} says {field} = {value!r}, which goes without saying"
                )


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"one": '[a]\nkind = "text"\nmeaning = "No full stop"'}, "no sentence"),
        ({"one": '[a]\nkind = "texts"\nmeaning = "A."'}, "of the kind 'texts', none of number"),
        ({"one": '[a]\nmeaning = "A."'}, "a number without a unit"),
        ({"one": '[a_s]\nunit = "ms"\nmeaning = "A."'}, "has the unit ms, and its name says s"),
        ({"one": '[a_s]\ninterval = ["b_s", "c_s"]\nmeaning = "A."'}, "not declared: b_s, c_s"),
        ({"one": '[a_s]\nshown = "%"\nmeaning = "A."'}, "can't be shown as %"),
        ({"one": '[a]\nkind = "flag"\nwords = ["b"]\nmeaning = "A."'}, "has words and is no text"),
        (
            {"one": '[a]\nkind = "flag"\nidentifies = true\njudged = true\nmeaning = "A."'},
            "tells rows apart, and so is neither a result",
        ),
        (
            dict.fromkeys(("one", "two"), '[a]\nkind = "flag"\nmeaning = "A."'),
            "a is declared twice (one, two): where it means the same",
        ),
        (
            dict.fromkeys(("shared", "two"), '[a]\nkind = "flag"\nmeaning = "A."'),
            "a is declared twice (shared, two)",
        ),
        (
            {
                name: f'[a]\nkind = "flag"\nof = ["one.b"]\nmeaning = "{name}."'
                for name in ("one", "two")
            },
            "a has two meanings in one experiment",
        ),
        (
            {
                "one": '[a]\nunit = "1"\nmeaning = "A."',
                "two": '[a]\nunit = "B"\nof = ["two.b"]\nheading = "b"\nmeaning = "A."',
            },
            "a is printed in several ways",
        ),
    ],
)
def test_what_is_wrong_with_a_declaration_is_said(tmp_path, files, told):
    (problem,) = problems(package(tmp_path, **files))
    assert told in problem


def test_one_name_may_mean_two_things_where_one_says_of_what(tmp_path):
    of_one = '[a]\nkind = "flag"\nof = ["one.b"]\nmeaning = "One."'
    of_all = '[a]\nkind = "text"\nmeaning = "All."'
    assert problems(package(tmp_path, one=of_one, shared=of_all)) == []


def test_a_field_that_no_column_has_is_an_error(tmp_path):
    with pytest.raises(AnatomyError, match=r"one.toml: the column a has the field units; a column"):
        columns.declared(package(tmp_path, one='[a]\nunits = "s"'))


def test_a_file_that_is_no_toml_is_an_error(tmp_path):
    with pytest.raises(AnatomyError, match=r"columns/one\.toml can't be read: Expected"):
        columns.declared(package(tmp_path, one="[a"))


def test_a_chapter_declares_its_columns_in_its_folder(tmp_path):
    (tmp_path / "chapters/noise").mkdir(parents=True)
    (tmp_path / "chapters/noise/columns.toml").write_text('[hiss_s]\nmeaning = "Hiss."')
    (tmp_path / "chapters/sounds/columns").mkdir(parents=True)
    (tmp_path / "chapters/sounds/columns/tone.toml").write_text('[pitch]\nmeaning = "Pitch."')
    hiss, pitch = columns.declared(tmp_path)
    assert (hiss.topic, hiss.unit, hiss.heading) == ("noise", "s", "hiss")
    assert pitch.topic == "tone"


def test_what_nobody_declared_is_told_by_its_name():
    assert columns.column("no_such_bytes").unit == "B"
    assert columns.column("no_such_bytes").heading == "no such"
    assert columns.column("no_such_share").shown == "%"
    assert not columns.column("no_such").meaning


def test_a_name_of_two_meanings_is_told_by_the_experiment():
    assert columns.column("error").kind == "number"
    assert columns.column("error", "compilation.detection").kind == "text"
    assert columns.column("error", "contiguity.bench").kind == "number"


def test_columns_that_code_shows_by_name_are_declared():
    from anatomy.cli import output
    from anatomy.figures import tables
    from anatomy.judge import merging, rows

    named = {*tables.TIMED, *tables.REPORTED, *rows.DERIVED, *merging.NAMES, *output.LEADING}
    assert named <= {column.name for column in columns.declared()}
