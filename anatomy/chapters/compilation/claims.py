"""What the seeds say of torch.compile, put to times of a step as its host sees it."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from anatomy.claims import (
    NOT_MEASURABLE,
    Case,
    Cases,
    Finding,
    Measured,
    Need,
    Unmeasured,
    answer,
    claim,
)
from anatomy.claims.cases import between
from anatomy.claims.findings import NEAR
from anatomy.claims.pace import GPU, HOST, listed, pace
from anatomy.claims.table import (
    Table,
    bytes_over,
    judged,
    over_control,
    quotient,
    speed_up,
    time_of,
    trusted,
    with_verdict,
)
from anatomy.judge.rows import Row
from anatomy.table import units

TRAINING = Need("compilation.map")
INFERENCE = Need("compilation.map", {"task": "inference"})
# Layers that fill the GPU, with little and with much to fuse; a training step each.
LAYERS = Need("compilation.layers")
BREAKS, MODES = Need("compilation.breaks"), Need("compilation.modes")
DETECTION, RECOMPILES = Need("compilation.detection"), Need("compilation.recompiles")
# What `compilation_layers` calls a layer -> what a reader is told; the map has the first.
MAPPED = "few kernels"
LAYER = {MAPPED: "layers of fused modules", "written out": "unfused layers"}
EAGER, COMPILED, GRAPHS, TUNED = "eager", "compiled", "reduce-overhead", "max-autotune"

SAME_MEMORY = 0.05  # less than a twentieth decides for nobody whether a model fits
SEGMENT_BYTES = 20 * 2**20  # at most, of the allocator; what is reserved says little below it
KILLED = 2.0  # a break kills performance where half of the speed is gone
NO_ACCOUNT = "only a GPU's allocator keeps an account of its memory"
SECONDS, MINUTES = 1.0, 600.0  # "Seconds to minutes": from one second to ten minutes
# The functions of the script that break as the seeds say, by the name they have there.
PRINTS = ("print of a text", "print of a tensor")
BREAKING = ("if on a tensor", *PRINTS, ".item()")


def _place(row: Row) -> dict[str, str]:
    kind = {"layer": LAYER[row.get("layer") or MAPPED], "dtype": row["dtype"], "task": row["task"]}
    count = 1 if units.missing(row.get("layers")) else row["layers"]
    kind |= {"width": f"C={row['width']}", "tokens": f"T={row['tokens']}"}
    return kind | {"layers": f"{count} layer{'s' * (count > 1)}"}


def _by_op(table: Table, way: str) -> Mapping[str, Row]:
    """The row of one way in every cell where it was tried."""
    return {row["op"]: row for row in table.select(variant=way)}


def _paced(tables: Iterable[Table], way: str) -> list[tuple[dict[str, Any], Row]]:
    """What tells it apart, its eager step's pace among it, and the row of a way in every cell."""
    found = []
    for table in tables:
        eager = _by_op(table, EAGER)
        for row in table.select(variant=way):
            place = _place(row)
            first = {"layer": place["layer"], "pace": pace(eager.get(row["op"], {}))}
            found.append((first | place, row))
    return found


def _speedups(tables: Iterable[Table], low: float, high: float) -> Finding:
    """Whether the defaults of torch.compile are at least `low` times as fast as eager."""
    cases = judged(_paced(tables, COMPILED), lambda gain: gain.at_least(low), speed_up)
    seen = listed(cases.numbers_by("pace", "layer"))
    said = f"Speed of a compiled layer over an eager one, {seen}."
    return cases.finding(f"{said} {cases.tally(low, high)}")


@claim(TRAINING, INFERENCE, LAYERS)
def compile_is_faster(*tables: Table) -> Finding:
    """In every cell, whatever layer, the compiled one is at least 1.2 times as fast as eager."""
    return _speedups(tables, 1.2, 2.0)


@claim(TRAINING, LAYERS)
def compile_doubles_training(*tables: Table) -> Finding:
    """In every cell a compiled training step is twice as fast as eager or faster, within 10 %."""
    return _speedups(tables, 2.0 * (1 - NEAR), 2.0 * (1 - NEAR))


@claim(TRAINING, INFERENCE, LAYERS)
def compile_always(*tables: Table) -> Finding:
    """In every cell, whatever layer, compiling is faster, so that it pays after some steps."""
    rows = _paced(tables, COMPILED)
    cases = judged(rows, lambda ratio: ratio.says("faster"))
    faster = [row for _, row in rows if row.get("verdict") == "faster"]
    uses = [row["uses"] for row in faster if not units.missing(row.get("uses"))]
    steps = f", after {between(uses, units.significant)} steps" if uses else ""
    return cases.finding(f"Compiling pays in {cases.true} of {len(cases.measurable)} cells{steps}.")


@claim(TRAINING, INFERENCE)
def compile_memory_neutral(*tables: Table) -> Finding:
    """In every cell a compiled step needs as much memory as an eager one, within 5 %.

    By the peak of the tensors; a pool of CUDA graphs is in none, so reduce-overhead is judged by
    what the allocator holds of the card, which is known to a segment.
    """
    what = {COMPILED: "peak of the tensors", GRAPHS: "held of the card"}
    cases = Cases()
    for table in tables:
        eager = _by_op(table, EAGER)
        for row in [row for way in what for row in table.select(variant=way)]:
            with cases.at(mode=row["variant"], **_place(row)) as case:
                above, below = trusted(row), trusted(eager.get(row["op"], {}))
                column = "reserved_bytes" if row["variant"] == GRAPHS else "peak_bytes"
                # Bytes are counted. The segment's width decides, and is no interval to be shown.
                counted = known = bytes_over(above, below, column, NO_ACCOUNT)
                if row["variant"] == GRAPHS:
                    known = quotient(*(_to_a_segment(each[column]) for each in (above, below)))
                case(known.within(1 / (1 + SAME_MEMORY), 1 + SAME_MEMORY), counted)
    found = {way: cases.of(mode=way).measurable for way in what}
    seen = "; ".join(f"{way} {each.range} ({what[way]})" for way, each in found.items() if each)
    return cases.finding(f"Memory of a step over that of eager: {seen}.")


def _to_a_segment(size: float) -> Measured:
    return Measured(size, max(1, size - SEGMENT_BYTES), size + SEGMENT_BYTES)


@claim(TRAINING, INFERENCE, MODES)
def reduce_overhead_for_training(training: Table, inference: Table, modes: Table) -> Finding:
    """Wherever both were tried, a training step is faster with reduce-overhead than without."""
    cases = _over_default(training)
    seen, beside = (listed(each.numbers_by("pace")) for each in (cases, _over_default(inference)))
    times = f"Time of reduce-overhead over that of the default mode, in training {seen}."
    times += f" In inference {beside}." if beside else ""
    return cases.finding(f"{times} {_tied(modes.row(GRAPHS))}")


def _over_default(table: Table) -> Cases:
    """Whether reduce-overhead is faster than the default mode, in every cell."""
    cases, default = Cases(), _by_op(table, COMPILED)
    for where, row in _paced([table], GRAPHS):
        with cases.at(**where) as case:
            for each in (row, default.get(row["op"], {})):
                trusted(each)
            ratio = table.ratio(GRAPHS, COMPILED, op=row["op"])
            case(ratio.says("faster"), ratio)
    return cases


@claim(MODES)
def max_autotune_for_inference(modes: Table) -> Finding:
    """Which mode infers fastest is a question of speed, which takes minutes for one layer and was
    not measured; what the mode sets stands beside it and decides nothing."""
    seen = f"How fast max-autotune is was not measured here. {_tied(modes.row(TUNED))}"
    return Finding(NOT_MEASURABLE, seen)


def _tied(row: Row) -> str:
    """What a mode sets, and which task that belongs to, in words."""
    task = row["tied_to"]
    belongs = "neither to training nor to inference" if task == "neither" else f"to {task}"
    return f"{row['variant']} sets {row['options']}; by the names that belongs {belongs}."


@claim(BREAKS)
def graph_breaks_kill(breaks: Table) -> Finding:
    """In every chain, any number of breaks makes a step take at least twice as long."""
    cases = Cases()
    for row in breaks.select(role="variant"):
        if row.get("breaks") == 0 or row["variant"] == EAGER:
            continue
        with cases.at(chain=row.get("chain"), breaks=row["variant"]) as case:
            ratio = over_control(row)
            seen = f"{row['chain']} with {row['variant']} {with_verdict(row)}"
            case(ratio.at_least(KILLED), ratio, "" if units.missing(row.get("break_s")) else seen)
    return cases.finding(f"Time over that without a break: {cases.said()}.")


@claim(BREAKS, topic="torch.compile")
def fused_chain_waits_for_the_cpu(breaks: Table) -> Finding:
    """A fused chain of large elementwise layers waits for the CPU.

    The host paces the compiled chain of large elementwise layers without a break."""
    row = breaks.measured("0 breaks", op="large elementwise")
    outcome = {HOST: True, GPU: False}.get(pace(row))
    return answer(outcome, f"The chain takes {time_of(row).text}, {pace(row)}.")


@claim(DETECTION)
def fullgraph_detects_breaks(detection: Table) -> Finding:
    """fullgraph=True raises for each function whose graph breaks, and for no other."""
    cases = Cases()
    raises = {True: [], False: []}  # for each function that breaks, and each that does not
    for row in detection:
        breaks, raised = row["breaks"] > 0, row["fullgraph"] == "raises"
        raises[breaks].append(raised)
        with cases.at(case=row["variant"]) as case:
            case(raised == breaks)
    broken, whole = (f"{sum(each)} of the {len(each)}" for each in raises.values())
    seen = f"for {broken} functions that break, and for {whole} that do not"
    return cases.finding(f"fullgraph=True raises {seen}.")


@claim(DETECTION)
def causes_of_graph_breaks(detection: Table) -> Finding:
    """An if on a tensor, a print and .item() each break the graph of a small function."""
    return _broken(detection, BREAKING)


@claim(DETECTION)
def print_breaks_graphs(detection: Table) -> Finding:
    """The print of a text and that of a tensor each break the graph of a small function."""
    return _broken(detection, PRINTS)


def _broken(detection: Table, names: tuple[str, ...]) -> Finding:
    cases = Cases()
    for row in map(detection.row, names):
        with cases.at(case=row["variant"]) as case:
            case(row["breaks"] > 0, said=f"{row['variant']} {row['breaks']}")
    return cases.finding(f"Breaks, by torch's own count: {cases.said()}.")


@claim(TRAINING, INFERENCE)
def compiling_takes_minutes(*tables: Table) -> Finding:
    """In each task and mode, the first calls of every cell took one second to ten minutes.

    Each cell is set up once: what it took is one time, without an interval.
    """
    cases, seen = Cases(), []
    for table, way in product(tables, (COMPILED, GRAPHS)):
        where = {"task": table.params["task"], "mode": way}
        rows = table.select(op="first call", variant=f"{way}, first calls")
        if not rows:
            cases.append(Case(where, None, why=f"no cell of {way} could be compiled"))
            continue
        for row in rows:
            with cases.at(**where, cell=f"C={row['width']} T={row['tokens']}") as case:
                time = Measured.counted(row["median_s"], "s")
                case(time.within(SECONDS, MINUTES), time)
        took = between((row["median_s"] for row in rows), units.seconds)
        seen.append(f"{table.params['task']}, {way} {took}")
    return cases.finding(f"First calls of a layer, quickest to slowest cell: {'; '.join(seen)}.")


@claim(RECOMPILES)
def shapes_recompile(recompiles: Table) -> Finding:
    """With each way to ask for dynamic shapes, every new length is compiled anew."""
    cases = Cases()
    for row in recompiles:
        with cases.at(way=row["variant"]) as case:
            if row.get("note"):
                raise Unmeasured(row["note"])
            bare = row["calls_without_graph"]
            beside = f" ({bare} calls ran uncompiled)" if bare else ""
            seen = f"{row['variant']} {row['compilations']} of {row['lengths']}{beside}"
            case(row["compilations"] == row["lengths"], said=seen)
    return cases.finding(f"Compilations, of so many lengths: {cases.said()}.")
