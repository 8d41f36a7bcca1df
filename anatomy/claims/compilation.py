"""What the seeds say of torch.compile, put to one layer, to chains, and to torch's own answers.

Times are those of a step as the host sees it, for the host's dispatch is part of what compiling
saves. A cell is one width C and one number of tokens T.
"""

from math import inf
from statistics import median

from anatomy import units
from anatomy.claims import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    Case,
    Finding,
    Measured,
    Need,
    across,
    claim,
    within,
)
from anatomy.claims.contiguity import NEAR
from anatomy.claims.pace import listed, pace
from anatomy.claims.promises import reaches, tally
from anatomy.claims.table import Table, between, over_control, quotient, told, why_not
from anatomy.rows import Row

TRAINING = Need("compilation.map")
INFERENCE = Need("compilation.map", {"task": "inference"})
# Layers that fill the GPU, with little and with much to fuse; a training step each.
LAYERS = Need("compilation.layers")
BREAKS, MODES = Need("compilation.breaks"), Need("compilation.modes")
DETECTION, RECOMPILES = Need("compilation.detection"), Need("compilation.recompiles")
# What `compilation_layers` calls a layer -> what a reader is told; the map has the first.
MAPPED = "few kernels"
LAYER = {MAPPED: "layers of few kernels", "written out": "layers that are written out"}
EAGER, COMPILED, GRAPHS, TUNED = "eager", "compiled", "reduce-overhead", "max-autotune"

# Two amounts of memory are the same if they differ by at most a twentieth: less than that decides
# for nobody whether a model fits.
SAME_MEMORY = 0.05
# The allocator takes memory from the driver in segments of up to so much, mostly for tensors of
# less, so that what is reserved says little below it.
SEGMENT_BYTES = 20 * 2**20
# A break kills performance where half of the speed is gone.
KILLED = 2.0
# "Seconds to minutes": from one second to ten minutes.
SECONDS, MINUTES = 1.0, 600.0
# The functions of the script that break as the seeds say, by the name they have there.
CONTROL_FLOW, PRINTS = "if on a tensor", ("print of a text", "print of a tensor")
ITEM = ".item()"


def _rows(table: Table, way: str) -> list[tuple[dict, Row]]:
    """(what tells a cell apart, row) of one way in every cell where it was tried."""
    return [
        (
            {
                "layer": LAYER[row.get("layer") or MAPPED],
                "dtype": row["dtype"],
                "task": row["task"],
                "width": f"C={row['width']}",
                "tokens": f"T={row['tokens']}",
            },
            row,
        )
        for row in table
        if row.get("variant") == way
    ]


def _paced(table: Table, way: str) -> list[tuple[dict, Row]]:
    """As `_rows`, with who sets the pace of each cell's eager step, after what it is of."""
    eager = {row["op"]: row for _, row in _rows(table, EAGER)}
    found = []
    for where, row in _rows(table, way):
        told = {"layer": where.pop("layer"), "pace": pace(eager.get(row["op"], {}))}
        found.append((told | where, row))
    return found


def _speedup(row: Row) -> Measured:
    """Time of eager over time of a way, the other way round than recordings have it."""
    return over_control(row).inverse


def _speedups(tables: tuple[Table, ...], low: float, high: float) -> Finding:
    """Whether the defaults of torch.compile are at least `low` times as fast as eager."""
    cases: list[Case] = []
    seen: dict[tuple[str, str], list[Measured]] = {}
    for where, row in [found for table in tables for found in _paced(table, COMPILED)]:
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        speedup = _speedup(row)
        cases.append(Case(where, reaches(speedup, low), speedup))
        seen.setdefault((where["pace"], where["layer"]), []).append(speedup)
    said = f"Speed of a compiled layer over an eager one, {listed(seen)}."
    return across(cases, f"{said} {tally(cases, low, high)}")


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
    """In every cell, whatever layer, compiling is faster, so that it pays after some steps.

    Where it is the same or slower, no number of steps pays the compilation back.
    """
    cases, uses = [], []
    for where, row in [found for table in tables for found in _paced(table, COMPILED)]:
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        pays = None if row["verdict"] == "undecided" else row["verdict"] == "faster"
        cases.append(Case(where, pays, over_control(row)))
        uses += [row["uses"]] if pays and not units.missing(row.get("uses")) else []
    steps = f", after {_counts(uses)} steps" if uses else ""
    there = [case for case in cases if not case.why]
    pays = sum(case.outcome is True for case in there)
    return across(cases, f"Compiling pays in {pays} of {len(there)} cells{steps}.")


def _counts(values: list[float]) -> str:
    low, high = (units.significant(end) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


@claim(TRAINING, INFERENCE)
def compile_memory_neutral(*tables: Table) -> Finding:
    """In every cell a compiled step needs as much memory as an eager one, within 5 %.

    For the defaults that is the peak of the tensors of one call. CUDA graphs keep a pool that no
    tensor seems to be in, so for reduce-overhead it is what the allocator holds of the card, which
    is known to a segment.
    """
    cases: list[Case] = []
    seen: dict[str, list[float]] = {COMPILED: [], GRAPHS: []}
    for table in tables:
        eager = {row["op"]: row for _, row in _rows(table, EAGER)}
        for way in seen:
            for where, row in _rows(table, way):
                ratio = _memory(row, eager.get(row["op"], {}), way)
                if isinstance(ratio, str):
                    cases.append(Case({"mode": way} | where, None, why=ratio))
                    continue
                same = within(ratio, 1 / (1 + SAME_MEMORY), 1 + SAME_MEMORY)
                # Bytes are counted. The segment's width decides, and is no interval to be shown.
                counted = Measured(ratio.value, ratio.value, ratio.value)
                cases.append(Case({"mode": way} | where, same, counted))
                seen[way].append(ratio.value)
    what = {COMPILED: "peak of the tensors", GRAPHS: "held of the card"}
    said = "; ".join(
        f"{way} {between(values)} ({what[way]})" for way, values in seen.items() if values
    )
    return across(cases, f"Memory of a step over that of eager: {said}.")


def _memory(row: Row, eager: Row, way: str) -> Measured | str:
    """Memory of a way over that of eager, or why there is none."""
    if reason := why_not(row) or why_not(eager):
        return reason
    column = "reserved_bytes" if way == GRAPHS else "peak_bytes"
    above, below = row.get(column), eager.get(column)
    if not above or not below:
        return "only a GPU's allocator keeps an account of its memory"
    if way != GRAPHS:
        return Measured(above / below, above / below, above / below)
    ends = (
        Measured(size, max(1, size - SEGMENT_BYTES), size + SEGMENT_BYTES)
        for size in (above, below)
    )
    return quotient(*ends)


@claim(TRAINING, INFERENCE, MODES)
def reduce_overhead_for_training(training: Table, inference: Table, modes: Table) -> Finding:
    """Wherever both were tried, a training step is faster with reduce-overhead than without.

    What it does for inference stands beside it, and decides nothing.
    """
    cases: list[Case] = []
    seen: dict[tuple[str, str], list[Measured]] = {}
    for where, ratio, word in _over_default(training):
        if isinstance(ratio, str):
            cases.append(Case(where, None, why=ratio))
            continue
        cases.append(Case(where, None if word == "undecided" else word == "faster", ratio))
        seen.setdefault((where["pace"], ""), []).append(ratio)
    beside: dict[tuple[str, str], list[Measured]] = {}
    for where, ratio, _ in _over_default(inference):
        if not isinstance(ratio, str):
            beside.setdefault((where["pace"], ""), []).append(ratio)
    return across(
        cases,
        f"Time of reduce-overhead over that of the default mode, in training {listed(seen)}. "
        f"{f'In inference {listed(beside)}. ' if beside else ''}{_tied(modes.row(GRAPHS))}",
    )


def _over_default(table: Table) -> list[tuple[dict, Measured | str, str]]:
    """Cell, time of reduce-overhead over that of the default mode (or why not), verdict."""
    default = {row["op"]: row for _, row in _rows(table, COMPILED)}
    found = []
    for where, row in _paced(table, GRAPHS):
        if reason := why_not(row) or why_not(default.get(row["op"], {})):
            found.append((where, reason, ""))
            continue
        ratio, word = table.ratio(GRAPHS, COMPILED, op=row["op"])
        floor = row.get("noise_floor") or 0.0
        number = Measured(ratio.median, ratio.low, ratio.high, floor=floor)
        found.append((where, number, word))
    return found


@claim(MODES)
def max_autotune_for_inference(modes: Table) -> Finding:
    """An option that the mode sets is tied to inference by its name, and none to training.

    Options that belong to neither decide nothing: then it is a question of speed. That takes
    minutes to find out for one layer, and is not measured here.
    """
    row = modes.row(TUNED)
    word = {"inference": HOLDS, "training": FAILS}.get(row["tied_to"], INCONCLUSIVE)
    return Finding(word, f"{_tied(row)} How fast max-autotune is was not measured here.")


def _tied(row: Row) -> str:
    """What a mode sets, and which task that belongs to, in words."""
    task = row["tied_to"]
    belongs = "neither to training nor to inference" if task == "neither" else f"to {task}"
    return f"{row['variant']} sets {row['options']}; by the names that belongs {belongs}."


@claim(BREAKS)
def graph_breaks_kill(breaks: Table) -> Finding:
    """In every chain, any number of breaks makes a step take at least twice as long."""
    cases, seen = [], []
    for row in breaks:
        if row.get("role") != "variant" or row.get("breaks") == 0 or row["variant"] == EAGER:
            continue
        if reason := why_not(row):
            cases.append(Case({"chain": row.get("chain"), "breaks": "none"}, None, why=reason))
            continue
        ratio = over_control(row)
        where = {"chain": row["chain"], "breaks": row["variant"]}
        cases.append(Case(where, within(ratio, KILLED, inf), ratio))
        if not units.missing(row.get("break_s")):
            seen.append(f"{row['chain']} with {row['variant']} {told(row)}")
    return across(cases, f"Time over that without a break: {'; '.join(seen)}.")


@claim(DETECTION)
def fullgraph_detects_breaks(detection: Table) -> Finding:
    """fullgraph=True raises for each function whose graph breaks, and for no other."""
    cases = [
        Case({"case": row["variant"]}, (row["fullgraph"] == "raises") == (row["breaks"] > 0))
        for row in detection
    ]
    broken = [row for row in detection if row["breaks"]]
    caught = sum(row["fullgraph"] == "raises" for row in broken)
    false = sum(row["fullgraph"] == "raises" for row in detection) - caught
    return across(
        cases,
        f"fullgraph=True raises for {caught} of the {len(broken)} functions that break, and for "
        f"{false} of the {len(cases) - len(broken)} that do not.",
    )


@claim(DETECTION)
def causes_of_graph_breaks(detection: Table) -> Finding:
    """An if on a tensor, a print and .item() each break the graph of a small function."""
    return _broken(detection, (CONTROL_FLOW, *PRINTS, ITEM))


@claim(DETECTION)
def print_breaks_graphs(detection: Table) -> Finding:
    """The print of a text and that of a tensor each break the graph of a small function."""
    return _broken(detection, PRINTS)


def _broken(detection: Table, names: tuple[str, ...]) -> Finding:
    found = [detection.row(name) for name in names]
    cases = [Case({"case": row["variant"]}, row["breaks"] > 0) for row in found]
    said = "; ".join(f"{row['variant']} {row['breaks']}" for row in found)
    return across(cases, f"Breaks, by torch's own count: {said}.")


@claim(TRAINING, INFERENCE)
def compiling_takes_minutes(*tables: Table) -> Finding:
    """For each task and mode, the first calls of every cell took one second to ten minutes.

    Each cell is set up once, so the interval is that from the quickest cell to the slowest.
    """
    cases, seen = [], []
    for table in tables:
        task = table.params["task"]
        for way in (COMPILED, GRAPHS):
            took = [row["median_s"] for row in table if _first(row, way)]
            where = {"task": task, "mode": way}
            if not took:
                cases.append(Case(where, None, why=f"no cell of {way} could be compiled"))
                continue
            time = Measured(median(took), min(took), max(took), "s")
            cases.append(Case(where, within(time, SECONDS, MINUTES), time))
            seen.append(f"{task}, {way} {time.text}")
    return across(
        cases, f"First calls of a layer, median [quickest, slowest] cell: {'; '.join(seen)}."
    )


def _first(row: Row, way: str) -> bool:
    return row.get("op") == "first call" and row["variant"] == f"{way}, first calls"


@claim(RECOMPILES)
def shapes_recompile(recompiles: Table) -> Finding:
    """With each way to ask for dynamic shapes, every new length is compiled anew."""
    cases, seen = [], []
    for row in recompiles:
        where = {"way": row["variant"]}
        if reason := row.get("note"):
            cases.append(Case(where, None, why=reason))
            continue
        cases.append(Case(where, row["compilations"] == row["lengths"]))
        bare = row["calls_without_graph"]
        beside = f" ({bare} calls ran uncompiled)" if bare else ""
        seen.append(f"{row['variant']} {row['compilations']} of {row['lengths']}{beside}")
    return across(cases, f"Compilations, of so many lengths: {'; '.join(seen)}.")
