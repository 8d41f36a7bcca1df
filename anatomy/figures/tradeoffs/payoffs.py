"""Where a technique pays, on a page: a heat map with its break-even line, or a line over a size."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from math import ceil, log2
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.tradeoffs import breakeven
from anatomy.figures.tradeoffs.breakeven import Cell, Wanted
from anatomy.figures.tradeoffs.chooser import chooser
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current, selectors
from anatomy.table import columns, units
from anatomy.table.errors import BadParameter

UNTRIED = "untried"  # a place of the map that no row of the recording is about
# Verdict -> (tone of its cell, what it says of the technique).
WORDS = {
    "faster": ("better", "pays"),
    "less": ("better", "than the control"),
    "slower": ("worse", "loses"),
    "more": ("worse", "than the control"),
    "same": ("even", "costs the same"),
    "undecided": ("open", "too close to tell"),
}
# What the same verdicts say where the number shown is a speed-up, or a count.
SPEEDS = {"faster": "(above 1) pays", "slower": "(below 1) loses"}
COUNTS = {"same": "as the control"}
FEW = "or too few blocks"  # beside what is undecided, where that is why
# Pixels of a panel's axis, of a letter, and of a column with its cells' verdicts in words: as many
# panels stand side by side as have these.
BESIDE, LETTER, COLUMN = 30, 6.3, 70
DEEPEST = 4.0  # from this factor on, a cell's colour is no deeper
LONG = 100_000  # coordinates from here on are printed with a prefix
SEE_TABLE = "The table under it has the figures."


def payoff(
    experiment: str,
    *,
    x: str,
    y: str | None = None,
    variant: str | Sequence[str],
    value: str = "ratio",
    quantity: str | None = None,
    where: Mapping[str, Any] | None = None,
    op: str | None = None,
    caption: str | None = None,
    chart: bool = True,
    labels: Mapping[str, str] | None = None,
    **params: Any,
) -> str:
    """Where a variant pays, over one or two coordinates of a recording of several comparisons.

        payoff("compilation.map", x="width", y="tokens", variant="compiled", value="speedup",
               quantity="step_wall", where={"mode": "train", "dtype": "bf16"})
        payoff("compilation.map", x="tokens", variant=["compiled", "graphed"],
               where={"width": 1024, "op": "train *"})
        payoff("checkpointing.map", x="layers", y="tokens", variant="every block",
               value="peak_bytes")

    With `y` it is a heat map with the line around the cells that pay; without, a line over `x` for
    each variant, with its break-even.

    Args:
        x: Column along the axis; numbers or texts.
        y: Column up the axis, of a heat map.
        variant: The variant, or variants: a heat map each, or a line each.
        value: `ratio` (time over the control's), `speedup` (its inverse), or a column of counts
            such as `peak_bytes`, shown over the control's.
        quantity: There must be one: give it where there are several.
        chart: Whether it is drawn, with the table folded under it; otherwise the table alone.
        labels: What variants are called, and the control on an axis; others keep their names.

    Raises:
        BadParameter: Several rows are in one cell.
    """
    variants = [variant] if isinstance(variant, str) else list(variant)
    if not variants:
        raise BadParameter("payoff() needs a variant, or a list of them.")
    wanted = Wanted(x, y, variants=variants, value=value, op=op, quantity=quantity, where=where)
    found = current().find(experiment, **selectors(experiment, params, op, quantity))

    def draw() -> str:
        cells = breakeven.cells(found.recording.rows, wanted)
        names = dict(labels or {})
        cells = [replace(cell, variant=names.get(cell.variant, cell.variant)) for cell in cells]
        theirs = {names.get(c.control["variant"], "control") for c in cells if c.control}
        control = {"control": theirs.pop()} if len(theirs) == 1 else {}
        called = replace(wanted, variants=[names.get(v, v) for v in variants], **control)
        drawn = (_map if y else _over)(cells, called) if chart else ""
        table = _table(cells, called)
        return drawn + figures.twin(table) if drawn else table

    return framing.exhibit(found, caption, draw, kind="payoff")


def label(column: str, value: Any) -> str:
    """A coordinate as an axis or a table's first column has it: with its unit, and short."""
    if column.endswith("_bytes"):
        return units.byte_count(value)
    as_printed = column.endswith("_s") or columns.column(column).shown
    if as_printed or not breakeven.is_number(value):
        return rows.printed({column: value}, column)
    steps = [(2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB")] if column == "bytes" else []
    if value >= LONG:
        steps += [(2**20, "Mi"), (10**6, "M"), (2**10, "Ki"), (10**3, "k")]
    for size, unit in steps if isinstance(value, int) else ():
        if value % size == 0:
            return f"{value // size}{unit}"
    return units.format_value(value)


def title(value: str, table: Sequence[Row] = ()) -> str:
    """What is shown: time, speed-up or count, over the control's."""
    if value in breakeven.TIMED:
        name = "speed-up" if value == "speedup" else "time / control"
        return f"{name} ({rows.interval_name(table)})"
    return f"{rows.heading(value)} / control (a count)"


def _hover_text(cell: Cell, wanted: Wanted) -> str:
    at = [(c, v) for c, v in ((wanted.x, cell.x), (wanted.y, cell.y)) if c]
    where = ", ".join(f"{rows.heading(column)} {label(column, value)}" for column, value in at)
    if cell.value is None:
        return f"{cell.variant}, {where}: not shown: {cell.why}"
    ends = (None, None) if wanted.counted else (cell.low, cell.high)
    few = f": {cell.few}" if cell.few else ""
    found = f"{units.ratio_range(cell.value, *ends)}, {cell.word}{few}"
    return f"{cell.variant}, {where}: {found}{_amounts(cell, wanted)}"


def _amounts(cell: Cell, wanted: Wanted) -> str:
    """What the ratio is of: the variant's time or count, and the control's."""
    column = wanted.value if wanted.counted else "median_s"
    both = [(row or {}).get(column) for row in (cell.row, cell.control)]
    if any(map(units.missing, both)):
        return ""
    here, there = (rows.printed({column: value}, column) for value in both)
    return f"; {here} against {there}"


def _map(cells: Sequence[Cell], wanted: Wanted) -> str:
    """A heat map of each variant, and the key under them."""
    panels, shapes, words, edges = [], [], [], 0
    few = any(cell.few for cell in cells)
    for variant in wanted.variants:
        mine = [cell for cell in cells if cell.variant == variant]
        across, up = breakeven.axis(c.x for c in mine), breakeven.axis(c.y for c in mine)
        places = {(across.index(cell.x), up.index(cell.y)): cell for cell in mine}
        line = breakeven.contour({p: c.pays for p, c in places.items() if c.value is not None})
        edges += len(line)
        words += [cell.word for cell in places.values()]
        words += [UNTRIED] * (len(across) * len(up) - len(places))
        # Row by row, as the chooser counts them.
        every = ((i, j) for j in range(len(up)) for i in range(len(across)))
        untold = {(i, j): _untold(variant, across[i], up[j]) for i, j in every}
        squares = [_square(place, cell, wanted) for place, cell in (untold | places).items()]
        axes = _axes(across, up, wanted)
        shapes.append((variant, axes[0][1], axes[1][1]))
        name = variant if len(wanted.variants) > 1 else ""
        panels.append((name, svg.Drawing("heatmaps.heat", (squares, *axes, line))))
    counted = ", ".join(f"{words.count(w)} {w}" for w in WORDS if w in words)
    shown = f"{title(wanted.value, [c.row for c in cells])} of {', '.join(wanted.variants)}"
    by = f"{rows.heading(wanted.x)} and {rows.heading(wanted.y)}"
    named = f"Heat map of {shown} by {by}: {len(words)} cells{f', {counted}' if counted else ''}."
    picture = svg.chart(panels, f"{named} {SEE_TABLE}", abreast=_abreast(panels))
    every = (breakeven.axis(getattr(cell, name) for cell in cells) for name in ("x", "y"))
    return picture + chooser(_axes(*every, wanted), shapes) + _key(words, edges, wanted, few=few)


def _axes(across: Sequence, up: Sequence, wanted: Wanted) -> list[tuple[str, list[str]]]:
    """Name and values of both coordinates, as they are printed."""
    both = (wanted.x, across), (wanted.y, up)
    return [(rows.heading(column), [label(column, v) for v in values]) for column, values in both]


def _abreast(panels: Sequence[svg.Panel]) -> int:
    """How many panels stand side by side on a desk: rows of equal length, if that can be."""
    least = 0.0
    for _, drawing in panels:
        _, (_, across), (_, up), _ = drawing.arguments
        least = max(least, BESIDE + LETTER * max(map(len, up)) + COLUMN * len(across))
    most = next((n for n in range(len(panels), 1, -1) if svg.share(n) >= least), 1)
    return ceil(len(panels) / ceil(len(panels) / most))


def _untold(variant: str, x: Any, y: Any) -> Cell:
    """A cell that no row of the recording is about."""
    return Cell(variant, x, y, {}, None, why="not in the recording")


def _square(place: tuple[int, int], cell: Cell, wanted: Wanted) -> dict[str, Any]:
    """One cell as it is drawn: text, word, mark, tone, and depth of the tone from 0 to 1."""
    square = {"i": place[0], "j": place[1], "text": "–", "word": "", "mark": "", "tone": "none"}
    square["hover"] = _hover_text(cell, wanted)
    if cell.value is None:
        return square | {"depth": 0.0}
    far = (abs(log2(cell.value)) / log2(DEEPEST)) ** 0.5 if cell.value > 0 else 1.0
    ends = () if cell.low == cell.high else (cell.low, cell.high)  # of a count three digits do
    text, word = units.ratio(cell.value, *ends), cell.word
    square |= {"text": text, "word": word, "mark": tables.CHIPS[word][0], "tone": WORDS[word][0]}
    return square | {"depth": min(far, 1.0)}


def _key(words: Sequence[str], edges: int, wanted: Wanted, *, few: bool) -> str:
    """What marks and line mean, of those that are drawn."""
    counted = wanted.counted
    shown = escape(title(wanted.value)).partition(" (")[0]
    exact = ", counts without an interval" if counted else ""
    parts = [f"{shown}{exact}; colour deepens away from 1, up to {DEEPEST:g}×"]
    means = {word: said for word, (_, said) in WORDS.items()} | (COUNTS if counted else {})
    means |= SPEEDS if wanted.value == "speedup" else {}
    means |= {"undecided": f"{means['undecided']}, {FEW}"} if few else {}
    parts += [f"{tables.chip(word)} {said}" for word, said in means.items() if word in words]
    if "" in words:
        parts.append(f"– not {'counted' if counted else 'measured'}; the table says why")
    elif UNTRIED in words:
        parts.append("– not tried")
    gain = "needs less" if counted else "shown to be faster"
    shown_at = [word in breakeven.PAYS for word in words if word not in ("", UNTRIED)]
    if edges:
        line = "" if counted else "break-even: "
        parts.append(f'<span class="edge"></span> {line}{gain} on one side only')
    elif any(shown_at) and not all(shown_at):
        parts += [] if counted else ["no break-even between neighbours"]
    elif shown_at:
        every = "every" if all(shown_at) else "no"
        parts.append(f"{gain} in {every} cell {'counted' if counted else 'measured'}")
    return f'<p class="key">{"".join(f"<span>{part}</span> " for part in parts)}</p>'


def _over(cells: Sequence[Cell], wanted: Wanted) -> str:
    """A line over x for each variant, and what is said of break-even; empty without a value."""
    drawn = [cell for cell in cells if cell.value]
    if not drawn:
        return ""
    steps = breakeven.axis(cell.x for cell in cells)
    numeric = all(breakeven.is_number(step) and step > 0 for step in steps)
    ticks = [(step if numeric else label(wanted.x, step), label(wanted.x, step)) for step in steps]
    points, ranges, alike = [], [], {}
    for cell in sorted(drawn, key=lambda cell: steps.index(cell.x)):
        point = {"series": cell.variant, "x": cell.x if numeric else label(wanted.x, cell.x)}
        point |= {"value": cell.value, "low": cell.low, "high": cell.high}
        points.append(point | {"hover": _hover_text(cell, wanted), "shown": bool(cell.side)})
    for variant in wanted.variants:
        line = [cell for cell in cells if cell.variant == variant]
        found = breakeven.crossings(line) if numeric else []
        for each in (one for one in found if not one.undecided):
            ends = sorted((each.before.x, each.after.x))
            ranges.append({"series": variant, "at": each.at, "low": ends[0], "high": ends[1]})
        alike.setdefault(_sentence(line, found, wanted), []).append(tables.code(variant))
    said = [f"<li>{_subject(names)} {sentence}</li>" for sentence, names in alike.items()]
    counted = wanted.counted
    # The axis is short: what lines and band are is said under it.
    name, _, interval = title(wanted.value, [cell.row for cell in drawn]).partition(" (")
    heads = rows.heading(wanted.x), name.replace("control", wanted.control) + " (a count)" * counted
    # A difference that was shown may be smaller than another comparison's floor: its band would
    # contradict it.
    unshown = [cell.row for cell in drawn if not cell.side]
    band = 0.0 if counted or not unshown else rows.noise_floor(unshown)
    drawing = svg.Drawing("loglog.payoff", (points, ranges, ticks, band, heads))
    named = f"{heads[1]} of {', '.join(wanted.variants)} over {heads[0]}."
    what = "it needs as much as the control" if counted else "break-even lies"
    within = "somewhere in it" if counted else "in it"
    straight = "if the ratio runs straight from point to point"
    whose = f", for {ranges[0]['series']}" if len(ranges) == 1 and len(alike) > 1 else ""
    key = [f"shaded{whose}: {what} {within}, at the dotted line {straight}"] * (len(ranges) == 1)
    key += [f"dotted: where {what}, {straight}"] * (len(ranges) > 1)
    unlike = "the same as the control" if counted else "no difference was shown"
    unlike += f", {FEW}" if any(cell.few for cell in drawn) else ""
    key += [] if all(p["shown"] for p in points) else [f"hollow: {unlike}"]
    means = [f"{key[0][0].upper()}{'; '.join(key)[1:]}."] if key else []
    means += [] if counted else [f"Vertical lines: {interval.rstrip(')')}."]
    means += [f"Grey band: differences up to {units.percent(band)} are noise."] if band else []
    said += [f"<li>{' '.join(means)}</li>"] if means else []
    picture = svg.chart([("", drawing)], f"{named} {SEE_TABLE}")
    return picture + f'<ul class="breaks">{"".join(said)}</ul>'


def _subject(names: Sequence[str]) -> str:
    """Variants of which one sentence is true: `a`, or `a, b and c: each`."""
    return f"{', '.join(names[:-1])} and {names[-1]}: each" if names[1:] else names[0]


def _sentence(line: Sequence[Cell], found: Sequence[breakeven.Crossing], wanted: Wanted) -> str:
    """What is shown of one variant's break-even, in words."""
    name, counted = rows.heading(wanted.x), wanted.counted
    known = [cell for cell in line if cell.value is not None]
    yes = _stretches(known, (cell for cell in known if cell.pays), wanted)
    no = _stretches(known, (cell for cell in known if not cell.pays), wanted)
    few = _coordinates((cell for cell in known if cell.few), wanted)
    never = _coordinates((cell for cell in line if cell.value is None), wanted)
    if found:
        each = [_about(name, one, wanted.x) for one in found]
        said = "needs as much as the control " if counted else "breaks even "
        said += f"{' and '.join(each)}."
    elif known and counted:
        said = _needs(known, wanted)
    elif few != no and (last := _last_paying(known)) is not None:
        upto, first = (label(wanted.x, known[at].x) for at in (last, last + 1))
        said = f"is shown to pay up to {name} {upto}; not from {first} on."
    elif yes and no:
        said = f"is shown to pay at {name} {yes}; not shown at {no}"
        said += ", where blocks are too few for a verdict." if few == no else "."
    elif known and {cell.word for cell in known} == {"slower"}:
        said = f"is slower at every {name} measured ({no})."
    elif known:
        said = f"is shown to pay at {'every' if yes else 'no'} {name} measured ({yes or no})."
    else:
        said = "has no value."
    said += f" Too few blocks for a verdict at {few}." if few and not (yes and few == no) else ""
    how = "counted" if counted else "measured"
    return escape(said + (f" Not {how} at {never}; the table says why." if never else ""))


def _about(name: str, one: breakeven.Crossing, x: str) -> str:
    """Where break-even lies, as far as it is known: a number only between neighbours."""
    ends = (f"{label(x, cell.x)} ({cell.word})" for cell in (one.before, one.after))
    near = f"between {name} " if one.undecided else f"at {name} ≈ {_near(x, one.at)}, between "
    return near + " and ".join(ends)


def _last_paying(known: Sequence[Cell]) -> int | None:
    """Where a row of more than three paying numbers ends, if it is the first and the only one."""
    count = sum(cell.pays for cell in known)
    numbers = all(breakeven.is_number(cell.x) for cell in known)
    one = all(cell.pays for cell in known[:count])
    return count - 1 if numbers and one and 3 < count < len(known) else None


def _needs(known: Sequence[Cell], wanted: Wanted) -> str:
    """Where a variant needs less, the same or more of what is counted; a count has no doubt."""
    name, found = rows.heading(wanted.x), []
    for word, said in (("less", "less"), ("same", "the same"), ("more", "more")):
        if at := _coordinates((cell for cell in known if cell.word == word), wanted):
            found.append((said, at))
    if len(found) == 1:
        return f"needs {found[0][0]} at every {name} counted ({found[0][1]})."
    return f"needs {'; '.join(f'{said} at {name} {at}' for said, at in found)}."


def _coordinates(cells: Iterable[Cell], wanted: Wanted) -> str:
    return ", ".join(label(wanted.x, x) for x in breakeven.axis(cell.x for cell in cells))


def _stretches(known: Sequence[Cell], cells: Iterable[Cell], wanted: Wanted) -> str:
    """Coordinates of some of the known cells; three or more neighbours as `837 ns to 64.5 µs`."""
    axis, there = breakeven.axis(cell.x for cell in known), {cell.x for cell in cells}
    said = []
    for inside, stretch in groupby(axis, there.__contains__):
        named = [label(wanted.x, x) for x in stretch]
        if inside:
            said += [f"{named[0]} to {named[-1]}"] if len(named) > 2 else named
    return ", ".join(said)


def _near(column: str, at: float) -> str:
    """An interpolated coordinate, with the two digits that it is worth."""
    plain = float(f"{at:.1e}")
    return label(column, int(plain) if plain == int(plain) else plain)


def _table(cells: Sequence[Cell], wanted: Wanted) -> str:
    """One row for each cell: what was compared, the ratio, the verdict, and why there is none."""
    counted = wanted.counted
    column = wanted.value if counted else "peak_bytes"
    heading = rows.heading(column)

    def ratio(cell: Cell) -> str:
        return tables.figure(cell.value, *(() if counted else (cell.low, cell.high)))

    def verdict(cell: Cell) -> str:
        if not cell.word:
            return tables.why(cell.why)
        remarks = filter(None, (cell.few, cell.row.get("note")))
        return " ".join([tables.chip(cell.word), *map(tables.why, remarks)])

    columns = [(f"#{rows.heading(wanted.x)}", lambda cell: escape(label(wanted.x, cell.x)))]
    if wanted.y:
        columns.append((f"#{rows.heading(wanted.y)}", lambda cell: escape(label(wanted.y, cell.y))))
    if len(wanted.variants) > 1:
        columns.append(("variant", lambda cell: tables.code(cell.variant)))
    if not counted and any(cell.row.get("median_s") for cell in cells):
        columns.append(("#control", lambda cell: tables.time(cell.control)))
        columns.append(("#time", lambda cell: tables.time(cell.row)))
    shown = "speed-up" if wanted.value == "speedup" else "/ control"
    columns += [(f"#{shown}", ratio), ("verdict", verdict)]
    if counted or any(cell.row.get("peak_bytes") is not None for cell in cells):
        theirs = f"#control's {heading}", lambda cell: tables.cell(cell.control or {}, column)
        columns += [theirs, (f"#{heading}", lambda cell: tables.cell(cell.row, column))]
    across, up = (breakeven.axis(getattr(cell, name) for cell in cells) for name in ("x", "y"))
    lines = sorted(cells, key=lambda cell: (across.index(cell.x), up.index(cell.y)))
    named = f"{title(wanted.value)} of {', '.join(wanted.variants)}"
    return tables.by_columns(columns, lines, named, "payoffs")
