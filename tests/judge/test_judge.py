"""What follows from a recording's rows follows from what was measured, and from nothing else."""

import ast
import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from anatomy import judge, page
from anatomy.judge import comparisons, limits, merging, rules
from anatomy.judge.comparisons import Circumstances
from anatomy.record import recording
from anatomy.record.processes import worker
from anatomy.record.recording import Recording
from anatomy.record.showing import Showing, using
from anatomy.table import intervals

CHECKOUT = Path(__file__).resolve().parents[2]
ROOT = CHECKOUT / "recordings"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/*/*.json"))
LARGE = "nvidia-h200/contiguity.bench/k=8192,m=8192,n=8192.json"


@cache
def loaded(file: str) -> Recording:
    return recording.load(ROOT / file)


def known_of(file: str) -> Circumstances:
    return recording.circumstances(loaded(file).data, ROOT / file)


def alone(file: str) -> Circumstances:
    """The same without earlier occasions, as a worker knows them."""
    return replace(known_of(file), earlier=())


@cache
def following(file: str) -> list[dict]:
    return judge.following(loaded(file).data["rows"], known_of(file))


@pytest.mark.parametrize("file", FILES)
def test_what_is_kept_is_all_that_is_needed_and_nothing_else_is_read(file):
    rows, known, follows = loaded(file).data["rows"], known_of(file), following(file)
    kept = judge.kept(rows, known)
    columns = {name for row in rows for name in row}
    full = [dict.fromkeys(columns) | row for row in kept]  # as a file gives them back
    assert judge.following(full, known) == follows
    wrong = [
        row | dict.fromkeys(more.keys() - row.keys() - own_of(row), "never read")
        for row, more in zip(kept, follows, strict=True)
    ]
    assert judge.following(wrong, known) == follows


def own_of(row: dict) -> set[str]:
    """What a row may say itself: the ends of a time that no comparison measured, too."""
    return {"note"} if comparisons.compared(row) else {"note", "low_s", "high_s"}


def test_every_column_that_follows_is_declared_and_every_declared_one_follows_somewhere():
    found: dict[str, set[str]] = {}
    for file in FILES:
        for column in {column for more in following(file) for column in more}:
            found.setdefault(column, set()).add(loaded(file).experiment)
    listed: dict[str, set[str]] = {}
    for rule in rules.rules():
        assert rule.source
        for column in rule.columns:
            listed.setdefault(column, set()).update(rule.experiments)
    general = {*comparisons.COLUMNS, *judge.PROCESSES, *judge.STANDING}
    for column, experiments in found.items():
        assert column in general or experiments <= listed[column], column
    for rule in rules.rules():
        for column in rule.columns:
            for experiment in {loaded(file).experiment for file in FILES} & {*rule.experiments}:
                assert experiment in found.get(column, ()), (experiment, column)
    assert general - set(found) == {"note"}, "no figure that was recorded is impossible"


def test_a_regime_follows_where_the_period_is_kept():
    rows = blocks_of([1.0] * 12)
    for row in rows:
        row |= {"enqueue_s": 0.95, "period_s": 1.0, "gap_share": 0.0, "regime": "gap-bound"}
    assert {row["regime"] for row in judge.judged(rows)} == {"launch-bound"}
    rows[0] |= {"enqueue_s": 0.1, "gap_share": 0.5}
    assert judge.judged(rows)[0]["regime"] == "gap-bound"
    rows[0] |= {"period_s": None}
    assert judge.judged(rows)[0]["regime"] is None


def test_an_older_regime_is_read_as_it_is_stored():
    rows = [row | {"enqueue_s": 0.95, "regime": "gap-bound"} for row in blocks_of([1.0] * 12)]
    assert {row["regime"] for row in judge.judged(rows)} == {"gap-bound"}


def test_several_processes_give_what_their_judged_tables_give():
    """Kept, merged and judged on reading, or judged in each process and merged: the same rows."""
    file = "nvidia-h200/contiguity.bench/default.json"
    known = alone(file)  # what occasions widen was merged before
    kept, tables = judge.kept(loaded(file).data["rows"], known), []
    for number in range(3):
        table = copy.deepcopy(kept)
        for row in table:
            for place, seconds in enumerate(row["blocks_s"]):
                row["blocks_s"][place] = seconds * (1 + 0.003 * ((number + place) % 3))
            row["samples"] += number
        tables.append(table)
    before = merging.merged([judge.judged(table, known) for table in tables])
    after = judge.judged(merging.merged(tables), known)
    for one, other in zip(before, after, strict=True):
        assert {n: v for n, v in one.items() if v is not None} == {
            n: v for n, v in other.items() if v is not None
        }
    assert {row["runs"] for row in after} == {3}


def test_why_a_time_is_impossible_is_said_once_and_before_what_the_row_says_itself():
    known = Circumstances(
        machine={"gpu": "NVIDIA H200", "max_sm_clock_mhz": 1980}, method={"cache_bytes": 2**20}
    )
    rows = blocks_of([1.0] * 12)
    rows[0] |= {"quantity": "gpu_cold", "bytes": 10**13, "note": "Both ways.", "limit": "copy"}
    first = judge.judged(rows, known)
    assert first[0]["verdict"] == "impossible"
    assert first[0]["note"].startswith("impossible: 1e+13 B/s")
    assert first[0]["note"].endswith("; Both ways.")
    assert judge.kept(rows, known)[0]["note"] == "Both ways."
    again = judge.judged(
        [row | {"note": more["note"]} for row, more in zip(first, first, strict=True)], known
    )
    assert again[0]["note"].count("impossible") == 1, "an old reason is no note of the row's own"
    slow = [{**row, "bytes": None} for row in first]
    assert judge.judged(slow, known)[0]["note"] is None, "and goes when it is no longer true"


@pytest.mark.parametrize(
    ("method", "clock", "step_s"),
    [
        ("event pair around each call, cache flushed before it", 32e-9, 32e-9),
        ("event pair around 64 calls back to back", 32e-9, 32e-9 / 64),
        ("host clock around 4 calls over 2 sets of buffers; a call is 5 iterations", 1e-7, 5e-9),
        ("host clock around one call, queue empty", 1e-7, 0.0),
        ("event pair around each call, cache flushed before it", None, 0.0),
        (None, 32e-9, 0.0),
    ],
)
def test_the_clocks_step_is_divided_by_the_calls_of_a_sample(method, clock, step_s):
    known = {"calibration": {"resolution_s": clock}}
    assert comparisons.resolution_s({"method": method}, known) == pytest.approx(step_s)
    assert comparisons.resolution_s({"method": method}, {}) == 0.0
    assert comparisons.resolution_s({"method": method, "resolution_s": 7e-9}, known) == 7e-9


def test_impossible_in_one_process_stays_impossible_and_says_which():
    known = Circumstances(machine={"gpu": "NVIDIA H200", "max_sm_clock_mhz": 1980})
    work = {"flops": 1e12, "limit": "matmul fp16"}
    tables = [[row | work for row in blocks_of([s] * 12)] for s in (1.0, 1e-6, 1.0)]
    for row in judge.judged(merging.merged(tables), known):
        assert row["verdict"] == "impossible"
        assert row["note"].startswith("process 2 of 3: impossible: ")


def test_what_an_earlier_datasheet_called_impossible_is_judged_anew():
    rows = [
        row | {"verdict": "impossible", "note": "impossible: above the peak"}
        for row in blocks_of([1.0] * 12, [1.2] * 12)
    ]
    control, variant, again = judge.judged(rows)
    assert (control["verdict"], variant["verdict"], again["verdict"]) == (
        *("control", "slower"),
        "again",
    )
    assert control["note"] is None and variant["note"] is None


def test_a_row_whose_control_was_not_kept_is_read_as_it_is_stored():
    _, variant, again = blocks_of([1.0] * 12, [1.2] * 12)
    rows = [variant | {"ratio": 1.2, "verdict": "slower", "noise_floor": 0.01}, again]
    (first, _) = judge.judged(rows)
    assert (first["ratio"], first["verdict"], first["noise_floor"]) == (1.2, "slower", 0.01)
    assert first["median_s"] == 1.2


def test_the_clocks_step_widens_an_interval_by_half_of_it():
    method = {"calibration": {"resolution_s": 3.2e-8}}
    row = blocks_of([1e-6] * 12)[0]
    for words, step_s in (
        ("event pair around each call, cache flushed before it, less the clock's own time", 3.2e-8),
        ("event pair around 4 calls back to back, less the clock's own time", 0.8e-8),
        ("event pair around 2 calls over 8 sets of buffers, less the clock's own time", 1.6e-8),
        ("host clock around 4 calls and a synchronize", 0.0),
        ("host clock around one call, queue empty", 0.0),
    ):
        row["method"] = words
        assert comparisons.resolution_s(row, method) == pytest.approx(step_s)
        time = comparisons.interval_of(row, method)
        half_s = max(step_s / 2, comparisons.LEAST_HALF_WIDTH * 1e-6)
        assert (time.low, time.high) == pytest.approx((1e-6 - half_s, 1e-6 + half_s))
    assert comparisons.resolution_s(row | {"resolution_s": 1e-9}, method) == 1e-9


def test_a_worker_keeps_what_was_measured(monkeypatch):
    """Of a table of `compare` no judged column reaches the recording."""
    file = "nvidia-h200/compilation.map/default.json"
    kept = judge.kept(judge.judged(loaded(file).data["rows"], alone(file)), alone(file))
    for row in kept:
        if row.get("launch_inclusive") is not None:
            assert not {"median_s", "ratio", "verdict", "noise_floor", "uses", "pays"} & set(row)
            assert row["blocks_s"] and row["throttle"] and "setup_s" in row
        elif row.get("blocks_s"):
            assert row["median_s"], "one reading of a clock is no statistic"
    assert judge.noise_floors(kept) == {}
    assert worker.judge is judge


def test_rows_are_read_through_one_door():
    """Nothing but the door and what writes a file looks at the rows that a file keeps."""
    kept = ("recording", "provenance/canonical", "provenance/schema")
    may = {f"record/{name}.py" for name in kept}
    found = set()
    for path in sorted((CHECKOUT / "anatomy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Constant)
                and node.slice.value == "rows"
                and ast.unparse(node.value).split(".")[-1] == "data"
            ):
                found.add(path.relative_to(CHECKOUT / "anatomy").as_posix())
    assert found <= may and "record/recording.py" in found


@pytest.fixture
def sheet(tmp_path, monkeypatch):
    """Folder of one recording without measured ceilings, and what edits the datasheet under it."""
    where = tmp_path / "recordings" / LARGE  # larger than the cache, so that the gate asks
    where.parent.mkdir(parents=True)
    where.write_bytes((ROOT / LARGE).read_bytes())
    copied = tmp_path / "limits.toml"
    text = limits.TABLE.read_text(encoding="utf-8")
    copied.write_text(text, encoding="utf-8")
    monkeypatch.setattr(limits, "TABLE", copied)

    def edit(entry: str, old: str, new: str) -> None:
        head, mark, rest = text.partition(f"[{entry}]")
        assert old in rest
        copied.write_text(head + mark + rest.replace(old, new, 1), encoding="utf-8")
        limits.datasheets.cache_clear()

    limits.datasheets.cache_clear()
    yield tmp_path / "recordings", edit
    limits.datasheets.cache_clear()


def rendered(root: Path, **wanted) -> str:
    with using(Showing(root=root, machine="nvidia-h200")):
        return page.show("contiguity.bench", **wanted, m=8192, n=8192, k=8192)


def test_another_peak_in_the_datasheet_shows_at_once(sheet):
    root, edit = sheet
    asked = {"op": "matmul", "quantity": "gpu_warm", "columns": ["median_s", "verdict"]}
    before = rendered(root, **asked)
    assert "impossible" not in before
    edit("nvidia-h200.flops_per_s", "fp16 = 989e12", "fp16 = 98.9e12")
    after = rendered(root, **asked)
    assert "impossible" in after


def test_another_bandwidth_in_the_datasheet_changes_shares_and_the_gate(sheet):
    root, edit = sheet
    asked = {"op": "layer_norm", "quantity": "gpu_warm", "rows": ["contiguous"]}
    before = rendered(root, columns=["share"], **asked)
    edit("nvidia-h200", "dram_bytes_per_s = 4800e9", "dram_bytes_per_s = 9600e9")
    assert rendered(root, columns=["share"], **asked) != before
    cold = asked | {"quantity": "gpu_cold", "rows": None}
    assert "impossible" not in rendered(root, columns=["verdict"], **cold)
    edit("nvidia-h200", "dram_bytes_per_s = 4800e9", "dram_bytes_per_s = 480e9")
    assert "impossible" in rendered(root, columns=["verdict"], **cold)


def test_another_threshold_shows_at_once(sheet, monkeypatch):
    root, _ = sheet
    asked = {"op": "matmul", "quantity": "gpu_warm", "columns": ["verdict"]}
    assert "slower" in rendered(root, **asked)
    monkeypatch.setattr(intervals, "SMALLEST_EFFECT", 5.0)
    assert "slower" not in rendered(root, **asked)


def blocks_of(control_s, variant_s=None) -> list[dict]:
    """Rows of a comparison as they are kept: the control, a variant if wanted, the duplicate."""
    rows = [("it", "control", None, control_s), ("it (again)", "again", "it", control_s)]
    if variant_s:
        rows.insert(1, ("other", "variant", "it", variant_s))
    return [
        {"op": "toy", "quantity": "gpu_warm", "variant": variant, "role": role, "control": control}
        | {"blocks_s": list(blocks), "launch_inclusive": False, "note": None}
        for variant, role, control, blocks in rows
    ]
