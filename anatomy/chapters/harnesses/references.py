"""References in prose to the comparison of harnesses, and to what was measured again."""

from html import escape

from anatomy.chapters.harnesses import figures
from anatomy.chapters.harnesses.contest import standings, targets
from anatomy.figures import tables
from anatomy.figures.charts import strips
from anatomy.figures.compared import occasions
from anatomy.figures.text import spans
from anatomy.figures.text.facts import reference
from anatomy.record.showing import Showing
from anatomy.table import units
from anatomy.table.errors import BadParameter


@reference("target")
def target(showing: Showing, name: str, spec: str) -> str:
    """`[[target:power]]`, whether one of the harnesses' targets is met; `| found`, its figure;
    `| detail`, of how many; `| count`, both."""
    if spec not in ("", "found", "detail", "count"):
        raise BadParameter(f"a target has found, detail and count; got {spec!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    contest = figures.contest(calls)
    if contest.estimates.empty:
        return spans.gap(*calls)
    one = targets.target(contest, name)
    count = f"{one.text} {one.detail.partition(';')[0]}".strip()
    hover = f"{one.says}: {one.text}. {one.detail}".strip()
    chip = tables.chip(figures.CHIPS[one.verdict], one.verdict, hover)
    texts = {"found": one.text, "detail": one.detail, "count": count}
    return (escape(texts[spec]) if spec else chip) + spans.marks(*calls)


@reference("one-process")
def one_process(showing: Showing, kind: str, spec: str) -> str:
    """`[[one-process: effect]]`, how many of how many true differences our verdict finds from one
    process; of `same`, how many equals it tells apart; `| interval`, how many its intervals would,
    without the other rules of a verdict."""
    if kind not in standings.PAIRS:
        raise BadParameter(f"a kind of pair is one of {', '.join(standings.PAIRS)}; got {kind!r}.")
    if spec not in ("", "interval"):
        raise BadParameter(f"the format of a count of pairs is interval or none; got {spec!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    table = figures.contest(calls).errors
    table = standings.where(table, variant=standings.OURS, kind=kind, by=spec or "verdict")
    if table.empty:
        return spans.gap(*calls)
    (row,) = table.itertuples()
    what = f"{spec or 'verdict'}s of one process alone"
    said = spans.figure("measured", f"{row.hits} of {row.count}", what)
    return said + spans.marks(*calls)


# What is said of our bias: of long kernels, of short ones, or of the one whose clock the power cap
# lowers, which is in neither: its record ran in another state of the card. `wall` is of wall times,
# against a long plain loop.
LONG, SHORT, CAPPED, WALL = BIASES = "long", "short", "power-limited", "wall"
LONG_MATMUL = "W8 matmul 8192"


@reference("bias")
def bias(showing: Showing, name: str, spec: str) -> str:
    """`[[bias: long]]`, how far our stopwatch's GPU times of kernels from 10 µs on lie from the
    kernels' record at most, and `short`, of shorter ones; `power-limited`, how much too short it
    finds the matmul that the power cap slows, which is in neither; `wall`, how far its wall times
    lie from a long plain loop at most."""
    if name not in BIASES or spec:
        raise BadParameter(f"a bias is one of {', '.join(BIASES)}; got {name!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    ours = standings.where(figures.contest(calls).biases, variant=standings.OURS)
    ours = ours[(ours.quantity == "step_wall") == (name == WALL)]
    if ours.empty:
        return spans.gap(*calls)
    capped, long = ours.op == LONG_MATMUL, ours.reference_s >= standings.SHORT_S
    if name == WALL:
        ends = [units.percent(ours.bias.abs().max(), 2)]
    elif name == CAPPED:
        ends = [units.percent(each, 2) for each in (-ours[capped].bias).agg(["min", "max"])]
    elif name == LONG:
        ends = [units.percent(ours[long & ~capped].bias.abs().max(), 2)]
    else:
        ends = [units.format_value(ours[~long].off_s.abs().max(), "us.2")]
    told = spans.figure("measured", " to ".join(ends), "our median against the kernels' record")
    return told + spans.marks(*calls)


@reference("held")
def held(showing: Showing, name: str, spec: str) -> str:
    """`[[held: minutes apart]]`, the share of our intervals that hold what they are asked about,
    one of `standings.COVERED`: the least and the most of the quantities."""
    if name not in standings.COVERED or spec:
        raise BadParameter(f"what is held is one of {', '.join(standings.COVERED)}; got {name!r}.")
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    shares = standings.where(figures.contest(calls).coverages, kind=name).share
    if shares.empty:
        return spans.gap(*calls)
    ends = dict.fromkeys(units.percent(each, 2) for each in shares.agg(["min", "max"]))
    told = spans.figure("measured", " to ".join(ends), f"intervals that hold it; asked: {name}")
    return told + spans.marks(*calls)


@reference("contest")
def contest(showing: Showing, name: str, spec: str) -> str:
    """`[[contest:power_w | W]]`, from where to where a reading of the driver was seen in the
    comparison of harnesses, with its unit."""
    calls = figures.recordings(showing)
    if showing.collecting:
        return ""
    there = [each.recording for each in calls if each.recording]
    if not (text := strips.seen(there, name, spec)):
        return spans.gap(*calls)
    told = spans.figure("measured", text, "read by the driver before, while and after")
    return told + spans.marks(*calls)


@reference("again")
def again(showing: Showing, name: str, spec: str) -> str:
    """`[[again: GPU-bound ratios | half]]`, how far half of a kind of figures moved at most from
    one occasion to the next; `| most`, nearly all of them. Of one kind of ratios, or of all
    `ratios`: `| rows`, how many there are; `| kept`, the share with the same verdict; `| overlap`,
    that whose own intervals overlap; `| held`, of those asked, what the others' interval holds;
    `| turned`, how many turned round."""
    known = ("half", "most", "rows", "kept", "overlap", "held", "turned")
    if spec not in known:
        raise BadParameter(f"what came again has {', '.join(known)}; got {spec!r}.")
    if showing.collecting:
        return ""
    several = occasions.agreeing(showing, name)
    if not several:
        return spans.gap_because("measured on one occasion so far", occasions.AGAIN)
    if spec in ("half", "most"):
        if name == occasions.WHAT["ratio"]:
            raise BadParameter(f"{name} are of several kinds, so {spec} is asked of one of them.")
        text = units.percent(getattr(several[0], spec), 2)
    else:
        count = sum(getattr(each, spec) for each in several)
        of = sum(each.asked if spec == "held" else each.rows for each in several)
        share = spec in ("kept", "overlap", "held") and of
        text = units.percent(count / of, 2) if share else str(count)
    return spans.figure("measured", text, f"{name}, on the last two occasions of each recording")
