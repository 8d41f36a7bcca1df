"""All that a page may call: each function returns HTML, and the page prints it.

    ```python exec="on" html="1"
    from anatomy.page import show

    print(show("contiguity.bench", op="matmul", quantity="gpu_warm", chart="ratios",
               caption="The sliced view: [[claim:slice-doubles-fp16 | evidence]]"))
    ```

An experiment's parameters are given by name and default as in its signature. Captions may hold
`code` and `[[references]]` (see `anatomy.pages.inline`). What is missing or not current shows as a
gap or a badge with the command that mends it; a wrong name is an error with its place on the page.
While a build collects what pages show, every function notes its recordings and returns "".
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from anatomy import signatures, tables
from anatomy.charts import figures, strips
from anatomy.claims import evaluate
from anatomy.errors import BadParameter, UnknownName
from anatomy.exhibits import commands
from anatomy.exhibits import matrices as grids
from anatomy.exhibits.changes import changes
from anatomy.exhibits.confusions import confusion
from anatomy.exhibits.frontiers import frontier
from anatomy.exhibits.growth import curve
from anatomy.exhibits.hotspots import hotspots
from anatomy.exhibits.ladders import ladder
from anatomy.exhibits.ledger_table import ledger
from anatomy.exhibits.nodegraphs import graph
from anatomy.exhibits.payoffs import payoff
from anatomy.exhibits.specials import harnesses, limits, samples, seed_beside
from anatomy.exhibits.techniques import techniques
from anatomy.exhibits.timelines import timeline
from anatomy.pages import inline
from anatomy.pages.collecting import collect
from anatomy.showing import current, selectors

__all__ = [
    "card",
    "changes",
    "claims",
    "collect",
    "command",
    "confusion",
    "curve",
    "frontier",
    "graph",
    "harnesses",
    "hotspots",
    "kernels",
    "ladder",
    "ledger",
    "limits",
    "matrix",
    "payoff",
    "samples",
    "seed_beside",
    "show",
    "strip",
    "techniques",
    "timeline",
]


def show(
    experiment: str,
    *,
    op: str | None = None,
    quantity: str | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    chart: str | None = None,
    caption: str | None = None,
    unfold: bool = False,
    **params: Any,
) -> str:
    """A recording as a table, or as a chart with its table folded under it, and its run strip.

        show("contiguity.bench", op="matmul", quantity="gpu_warm")
        show("contiguity.bench", op="matmul", chart="rates", dtype="bf16")
        show("alignment.thresholds", op="matmul", chart="sweep")
        show("tensor_layout.report", columns=["variant", "strides", "offset_bytes"])

    Args:
        experiment: Its name.
        op: The only operation shown, or a pattern such as `step *`; also the experiment's parameter
            of that name, if it has one.
        quantity: The only quantity shown: gpu_warm, gpu_cold, ...
        rows: Variants shown, in this order; by default all, the control's duplicate included.
        columns: Columns of the table, by name, in this order; any column of the recording, or of
            `anatomy.rows.DERIVED`. By default those that matter for the kind of table.
        where: Column -> its value, or a list of them; a text with `*` is a pattern.
        chart: `times`, `ratios` (with the noise band), `rates` (under the machine's ceiling),
            `sweep`, `sweep-rates` or `sweep-ratios` (over alignment_bytes, by factor).
        caption: What to see; by default the experiment's first sentence and parameters.
        unfold: Show the table under a chart unfolded.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: No such experiment, parameter, op, quantity, row, column or chart.
    """
    showing = current()
    params, op, quantity = selectors(experiment, params, op, quantity)
    if chart is not None and chart not in figures.CHARTS:
        raise UnknownName("chart", chart, figures.CHARTS)
    ceilings = showing.ceilings
    found = showing.find(experiment, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        table = figures.rows_of(found, ceilings, op, quantity, rows, where)
        return figures.shown(showing, found, table, columns, chart, told, unfold=unfold)

    return figures.or_badge(showing, [found], told, draw)


def matrix(
    experiment: str,
    value: str = "ratio",
    *,
    by: str | Sequence[str],
    rows: str = "dtype",
    op: str | Sequence[str] | None = None,
    quantity: str | None = None,
    variants: Sequence[str] | None = None,
    chart: bool = True,
    table: bool = True,
    caption: str | None = None,
    **params: Any,
) -> str:
    """One value of many recordings: a table with a row for each variant and `rows`, by `by`.

        matrix("contiguity.bench", "ratio", rows="dtype", by=("m", "n", "k"), quantity="gpu_warm",
               dtype=["fp16", "bf16", "tf32", "fp32"], m=[2048, 4096, 8192])

    Args:
        experiment: Its name.
        value: `ratio`, `median_s`, `rate`, `share` or another column.
        by: The parameter along the columns; several change together, and the ones without a list
            of their own take the values of the first.
        rows: The parameter down the rows, under each variant.
        op: The only operation, or operations, shown; by default all, a part of the figure each.
        quantity: The only quantity shown. There must be one: give it where there are several.
        variants: Variants shown, in this order; by default all but the control and its duplicate
            (of ratios) or but the duplicate (of anything else).
        chart: Whether ratios are drawn as well, a panel for each variant.
        table: Whether the table is shown unfolded; with a chart it can be folded under it.
        caption: What to see.
        params: Lists for `by` and `rows`; single values for the other parameters.

    Raises:
        UnknownName, BadParameter: A name is wrong, or there is no list for `by` or `rows`.
    """
    showing = current()
    calls = grids.calls(experiment, by, rows, params)
    ceilings = showing.ceilings
    found = [(call, showing.find(experiment, **call.params)) for call in calls]
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    ops = [op] if isinstance(op, str) else op
    wanted = grids.Wanted(value, rows, grids.title(by), ops, quantity, variants)

    def draw() -> str:
        return grids.shown(showing, found, ceilings, wanted, told, chart=chart, table=table)

    return figures.or_badge(showing, [each for _, each in found], told, draw)


def strip(experiment: str | None = None, **params: Any) -> str:
    """The run strip of one recording, or of everything the page shows.

    strip()
    strip("contiguity.bench", dtype="bf16")
    """
    showing = current()
    if experiment is not None:
        found = [showing.find(experiment, **params)]
    else:
        found = [showing.find(asked.name, **asked.params) for asked in showing.shown]
    if showing.collecting:
        return ""
    # An element of its own kind: the search leaves out all up to the first end tag of that kind.
    inside = strips.notices(showing, found) + strips.strip(showing, found)
    return f'<aside class="run" data-search-exclude>{inside}</aside>'


def claims(*ids: str, caption: str | None = None) -> str:
    """Claims in a table: the statement with its source, what we measured, and the verdict.

        claims("slice-doubles-fp16", "as-strided-no-overhead")

    Args:
        ids: Ids of claims (`anatomy.claims.all_claims`), in the order shown.
        caption: What to see.

    Raises:
        UnknownName: There is no such claim.
    """
    showing = current()
    if not ids:
        raise BadParameter("claims() needs the ids of the claims to show.")
    results = [evaluate(showing, name) for name in ids]
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    return figures.claims(showing, results, told)


def kernels(
    experiment: str,
    *,
    op: str | None = None,
    quantity: str | None = None,
    rows: Sequence[str] | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """The GPU kernels that one call of each variant launches, by short name.

        kernels("contiguity.bench", op="matmul")

    Args:
        experiment: Its name.
        op: The only operation shown.
        quantity: The only quantity; kernels do not depend on it, so by default the first.
        rows: Variants shown, in this order.
        caption: What to see.
        params: Parameters of the experiment, where not the default.
    """
    showing = current()
    params, op, quantity = selectors(experiment, params, op, quantity)
    found = showing.find(experiment, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        table = figures.rows_of(found, None, op, quantity, rows)
        return figures.kernels(showing, found, table, told)

    return figures.or_badge(showing, [found], told, draw)


def command(experiment: str, *, options: Iterable[str] | None = None, **params: Any) -> str:
    """How to run an experiment: the command line to copy, its flags, and how long it takes.

        command("contiguity.bench", options=["device", "dtype", "m", "n", "k", "iters"])

    Args:
        experiment: Its name.
        options: Parameters written out in the command; by default those given, or all of them.
        params: Parameters of the call, where not the default.

    Raises:
        BadParameter: The experiment has no command of its own.
    """
    showing = current()
    declared = signatures.signature(experiment)
    found = showing.find(experiment, **params)
    if options is None:
        options = list(params) or list(declared.defaults)
    line = commands.line(declared, found.params, options)
    if showing.collecting:
        return ""
    return commands.shown(showing, declared, found, line)


def card(minutes: int | None = None, needs: Sequence[str] = (), touches: Sequence[str] = ()) -> str:
    """The card at the top of a page: reading time, what to know before, claims it settles.

    card(12, needs=["matrix products", "strides"], touches=["slice-doubles-fp16"])
    """
    showing = current()
    results = [evaluate(showing, name) for name in touches]
    if showing.collecting:
        return ""
    facts = [("Reading time", f"{minutes} min")] if minutes else []
    facts += [("You should know", escape(", ".join(needs)))] if needs else []
    if results:
        words = [tables.chip(r.word, r.claim.name, r.claim.statement) for r in results]
        facts.append(("Claims", " ".join(words)))
    items = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts)
    return f'<dl class="page-card" data-search-exclude>{items}</dl>'
