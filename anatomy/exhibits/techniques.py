"""What each technique of the axioms gives at its best and at its worst, in one table.

A first look for who has not read the pages yet: the two ends of each pay-off map with the cell they
belong to, the memory, the cost that is paid once, and the verdict on the factor that was promised.
Cells of fewer blocks than an interval of 95 % takes are left out, and so is what has no ratio.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from anatomy import replication, rows, rungs, tables, units
from anatomy.claims import Result, evaluate
from anatomy.exhibits import framing
from anatomy.rows import Row
from anatomy.showing import Found, current


@dataclass(frozen=True)
class Technique:
    """One line of the table.

    Attributes:
        name: What it is called there.
        page: The page about it.
        claim: The claim on its speed; empty where no factor was promised.
        needs: Its recordings: experiment, and parameters other than the defaults.
        variants: The ways of using it that count.
        memory: The column of bytes that tells its memory, and what that is.
        control: What its time is held against, where not the control it was measured with.
        once: The variant whose first call is paid once.
    """

    name: str
    page: str
    claim: str
    needs: tuple[tuple[str, dict[str, str]], ...]
    variants: tuple[str, ...]
    memory: tuple[str, str]
    control: str = ""
    once: str = ""


PEAK = ("total_peak_bytes", "peak, with weights")
HELD = ("reserved_bytes", "held of the card")
AMP = ("amp fp16", "amp bf16")
TRAINING = ("precision.training", {})
COMPILED = (("compilation.map", {}), ("compilation.map", {"task": "inference"}))
TECHNIQUES = (
    Technique(
        "torch.compile",
        "axioms/compile.md",
        "compile-is-faster",
        (*COMPILED, ("compilation.layers", {})),
        ("compiled",),
        PEAK,
        once="compiled, first calls",
    ),
    Technique(
        "torch.compile with CUDA graphs",
        "axioms/compile.md",
        "",
        COMPILED,
        ("reduce-overhead",),
        HELD,
        once="reduce-overhead, first calls",
    ),
    Technique(
        "mixed precision, over fp32",
        "axioms/precision.md",
        "mixed-precision-is-faster",
        (TRAINING,),
        AMP,
        PEAK,
    ),
    Technique(
        "mixed precision, over TF32",
        "axioms/precision.md",
        "mixed-precision-is-faster",
        (TRAINING,),
        AMP,
        PEAK,
        control="tf32",
    ),
    Technique(
        "FlashAttention, over attention written out",
        "axioms/attention.md",
        "flash-attention-is-faster",
        (("attention.backends", {}),),
        ("flash",),
        ("peak_bytes", "peak of the call"),
    ),
    Technique(
        "activation checkpointing",
        "axioms/checkpointing.md",
        "checkpointing-speed",
        (("checkpointing.frontier", {}),),
        ("every layer", "selective"),
        PEAK,
    ),
    Technique(
        "CUDA graphs",
        "axioms/cuda-graphs.md",
        "cuda-graphs-are-faster",
        (("graph_capture.map", {}), ("graph_capture.training", {})),
        ("graph",),
        HELD,
        once="graph",
    ),
    Technique(
        "channels_last",
        "axioms/channels-last.md",
        "channels-last-is-faster",
        (("channels_last.network", {}),),
        ("channels_last",),
        PEAK,
    ),
)


def techniques(*, caption: str | None = None) -> str:
    """The techniques of the axioms: best and worst cell, memory, cost paid once, verdict."""
    showing = current()
    asked = [
        (
            each,
            evaluate(showing, each.claim) if each.claim else None,
            [showing.find(name, **params) for name, params in each.needs],
        )
        for each in TECHNIQUES
    ]
    columns = [
        ("technique", lambda row: _link(row[0], showing.page_link(row[0].page))),
        ("speed-up at its best", lambda row: _cell(row[0], row[2], best=True)),
        ("at its worst", lambda row: _cell(row[0], row[2], best=False)),
        ("memory", lambda row: _memory(row[0], row[2])),
        ("once", lambda row: _once(row[0], row[2])),
        ("promised", lambda row: _promised(row[1])),
    ]
    found = {id(one): one for _, _, several in asked for one in several}
    return framing.exhibit(
        list(found.values()),
        caption,
        lambda: tables.by_columns(columns, asked, "Techniques", "techniques"),
    )


def _link(each: Technique, address: str) -> str:
    return f'<a href="{escape(address)}">{escape(each.name)}</a>'


def _promised(result: Result | None) -> str:
    if result is None:
        return tables.NONE
    return f'<span class="cited">{escape(result.claim.number)}</span> {tables.chip(result.word)}'


def _groups(found: Iterable[Found]) -> Iterator[list[Row]]:
    """The rows of each comparison of steps on the wall."""
    for each in found:
        if each.recording is not None:
            for (_, quantity), members in rows.groups_of(each.recording.data["rows"]):
                if quantity == "step_wall":
                    yield members


def _cells(each: Technique, found: Iterable[Found]) -> Iterator[Row]:
    """The rows of a technique that have a ratio with an interval."""
    for members in _groups(found):
        for row in rows.against(members, each.control) if each.control else members:
            if row.get("variant") not in each.variants or units.missing(row.get("ratio")):
                continue
            if row.get("runs") or len(row.get("blocks_s") or ()) >= replication.EXACT_FROM:
                yield row


def _cell(each: Technique, found: Iterable[Found], *, best: bool) -> str:
    """The best or the worst speed-up with its interval, its verdict, and where it was seen."""
    cells = sorted(_cells(each, found), key=lambda row: row["ratio"])
    if not cells:
        return tables.NONE
    row = cells[0 if best else -1]
    text = tables.lighter(units.ratio_range(*rungs.speedup(row)))
    name = f"{row['variant']}, {row['op']}" if len(each.variants) > 1 else row["op"]
    return f'{text} {tables.chip(row["verdict"])} <span class="spot">{escape(name)}</span>'


def _memory(each: Technique, found: Iterable[Found]) -> str:
    """The least and the most that the technique needs over what the ordinary way needs."""
    column, what = each.memory
    shares = []
    for members in _groups(found):
        base = next((row for row in members if row.get("role") == "control"), {})
        if each.control:
            base = next((row for row in members if row["variant"] == each.control), {})
        for row in members:
            counted = not units.missing(row.get(column)) and base.get(column)
            if row.get("variant") in each.variants and counted:
                shares.append(row[column] / base[column])
    if not shares:
        return tables.NONE
    return f'{_from_to(shares, units.ratio)} <span class="spot">{what}</span>'


def _once(each: Technique, found: Iterable[Found]) -> str:
    """The shortest and the longest of the first calls, as rows of their own or in `setup_s`."""
    took = []
    for row in (row for members in _groups(found) for row in members if each.once):
        if row["op"].startswith("first call") and row["variant"] == each.once:
            took.append(row["median_s"])
        elif row["variant"] in each.variants and not units.missing(row.get("setup_s")):
            took.append(row["setup_s"])
    return _from_to(took, units.seconds) if took else tables.NONE


def _from_to(values: Sequence[float], printed) -> str:
    low, high = printed(min(values)), printed(max(values))
    return low if low == high else f"{low} to {high}"
