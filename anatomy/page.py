"""All that a page may call: each function returns HTML, and the page prints it.

    ```python exec="on" html="1"
    from anatomy.page import show

    print(show("contiguity.bench", op="matmul", quantity="gpu_warm", chart="ratios",
               caption="The sliced view: [[claim:slice-doubles-fp16 | evidence]]"))
    ```

What all of them take is said here once. An experiment's parameters are given by name and default
as in its signature. `op` and `quantity` choose rows by these columns, and are the experiment's
parameters of that name too, if it has them; `op` may be a pattern such as `step *`. `where` chooses
by any column: its value, or a list of them, and a text with `*` is a pattern. A `caption` says what
to see; it may hold `code` and `[[references]]` (see `anatomy.figures.text.inline`).

What is missing or not current shows as a gap or a mark with the command that mends it; a wrong
name is an error (UnknownName) with its place on the page. While a build collects what pages show,
every function notes its recordings and returns "".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anatomy.claims import evaluate
from anatomy.figures import commands, framing
from anatomy.figures.charts import figures
from anatomy.figures.compared.occasions import occasions as occasions
from anatomy.figures.compared.two_machines import compared as compared
from anatomy.figures.diagrams.chip import chip as chip
from anatomy.figures.diagrams.kernel_rows import kernel_rows as kernel_rows
from anatomy.figures.diagrams.memory import memory_ladder as memory_ladder
from anatomy.figures.diagrams.queues import queues as queues
from anatomy.figures.diagrams.strides import strides as strides
from anatomy.figures.ledger.table import ledger as ledger
from anatomy.figures.limits.machines import machines as machines
from anatomy.figures.limits.placed import placed as placed
from anatomy.figures.limits.rooflines import limits as limits
from anatomy.figures.matrices import matrix as matrix
from anatomy.figures.techniques import techniques as techniques
from anatomy.figures.tradeoffs.frontiers import frontier as frontier
from anatomy.figures.tradeoffs.growth import curve as curve
from anatomy.figures.tradeoffs.payoffs import payoff as payoff
from anatomy.figures.worths import worths as worths
from anatomy.judge import rows as rows_of
from anatomy.record import signatures
from anatomy.record.showing import current, selectors
from anatomy.site.collecting import collect as collect
from anatomy.table.errors import BadParameter, UnknownName


def show(
    experiment: str,
    *,
    op: str | None = None,
    quantity: str | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    first: tuple[str, int] | None = None,
    chart: str | None = None,
    caption: str | None = None,
    unfold: bool = False,
    labels: Mapping[str, str] | None = None,
    **params: Any,
) -> str:
    """A recording as a table, or as a chart with its table folded under it.

        show("contiguity.bench", op="matmul", quantity="gpu_warm")
        show("contiguity.bench", op="matmul", chart="rates", dtype="bf16")
        show("alignment.thresholds", op="matmul", chart="sweep")
        show("tensor_layout.report", columns=["variant", "strides", "offset_bytes"])

    Args:
        rows: Variants shown, in this order; by default all, the control's duplicate included.
        columns: Columns of the table, by name, in this order; any column of the recording, or of
            `anatomy.judge.rows.DERIVED`. By default those that matter for the kind of table.
        first: A column of places, from 1, and how many rows are shown, in their order:
            `("host_place", 10)`.
        chart: `times`, `ratios` (with the noise band), `rates` (under the machine's ceiling),
            `sweep`, `sweep-rates` or `sweep-ratios` (over alignment_bytes, by factor); or the name
            of a column that is a share, of which there are bars.
        unfold: Show the table under a chart unfolded.
        labels: What variants are called in chart and table, such as the code that they run:
            `{"transposed_view": "A.t() @ B"}`.
    """
    showing = current()
    params = selectors(experiment, params, op, quantity)
    if chart is not None and chart not in figures.CHARTS:
        raise UnknownName("chart", chart, figures.CHARTS)
    found = showing.find(experiment, **params)
    ceilings = showing.ceilings_of(found)

    def draw() -> str:
        chosen = {"op": op, "quantity": quantity, "variants": rows}
        table = figures.rows_of(found, ceilings, where, **chosen)
        if first is not None:
            table = figures.placed(table, *first)
        return figures.shown(figures.called(table, labels), columns, chart, unfold=unfold)

    return framing.exhibit(found, caption, draw)


def claims(*ids: str, caption: str | None = None, labels: Mapping[str, str] | None = None) -> str:
    """Claims in a table: the statement with its source, what we measured, and the verdict.

        claims("slice-doubles-fp16", "as-strided-no-overhead")

    Args:
        ids: Ids of claims (`anatomy.claims.all_claims`), in the order shown.
        labels: Variant of the recordings -> what the page calls it.
    """
    if not ids:
        raise BadParameter("claims() needs the ids of the claims to show.")
    results = [evaluate(current(), name) for name in ids]
    found = {id(each): each for result in results for each in result.found}
    return framing.exhibit(list(found.values()), caption, lambda: figures.claims(results, labels))


def kernels(
    experiment: str,
    *,
    op: str | None = None,
    quantity: str | None = None,
    rows: Sequence[str] | None = None,
    caption: str | None = None,
    labels: Mapping[str, str] | None = None,
    **params: Any,
) -> str:
    """The GPU kernels that one call of each variant launches, by short name.

        kernels("contiguity.bench", op="matmul")

    Args:
        quantity: Kernels do not depend on it, so by default the first.
        rows: Variants shown, in this order.
        labels: What variants are called, as in `show`.
    """
    params = selectors(experiment, params, op, quantity)
    found = current().find(experiment, **params)
    chosen = {"op": op, "quantity": quantity, "variants": rows}

    def draw() -> str:
        table = figures.rows_of(found, None, **chosen)
        return figures.kernels(figures.called(table, labels))

    return framing.exhibit(found, caption, draw)


def command(experiment: str, *, options: Iterable[str] | None = None, **params: Any) -> str:
    """How to run an experiment: the command line to copy, its flags, and how long it takes.

        command("contiguity.bench", options=["device", "dtype", "m", "n", "k", "iters"])

    Args:
        options: Parameters written out in the command; by default those given, or all of them.
    """
    showing = current()
    declared = signatures.signature(experiment)
    found = showing.find(experiment, **params)
    line = commands.line(declared, found.params, options or list(params) or declared.defaults)
    return "" if showing.collecting else commands.shown(showing, declared, found, line)


def output(
    experiment: str,
    *,
    op: str | None = None,
    quantity: str | None = None,
    marked: Sequence[str] = (),
    caption: str | None = None,
    **params: Any,
) -> str:
    """What a command prints in a terminal, from the recording: all of it, or the block of one
    operation and quantity; the lines of the variants that are `marked` stand out.

        output("contiguity.bench", op="matmul", quantity="gpu_warm")
    """
    showing = current()
    params = selectors(experiment, params, op, quantity)
    declared = signatures.signature(experiment)
    found = showing.find(experiment, **params)
    ceilings = showing.ceilings_of(found)

    def draw() -> str:
        from anatomy.cli import text  # what the command itself prints

        if op or quantity:
            chosen = rows_of.select(found.recording.rows, op=op, quantity=quantity)
            groups = rows_of.groups_of(chosen)
            printed = "\n\n".join(text.timing(*name, group, ceilings) for name, group in groups)
        else:
            printed = text.report(found.recording, ceilings)
        line = commands.line(declared, found.params, params)
        parts = text.provenance(found.recording), printed
        return commands.printed(showing, declared, line, *parts, marked=marked)

    return framing.exhibit(found, caption, draw)
