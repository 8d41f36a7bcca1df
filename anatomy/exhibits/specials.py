"""What single pages alone call: the limits, the harnesses' comparison, and the seed's figures.

`anatomy.page` offers these beside its own; there stands what all of them have in common.
"""

from anatomy.charts import figures
from anatomy.claims import seeds
from anatomy.contest import boards, scoreboard
from anatomy.errors import UnknownName
from anatomy.exhibits import rooflines
from anatomy.pages import inline
from anatomy.showing import current


def limits(part: str = "ceilings", *, caption: str | None = None) -> str:
    """The machine's limits: its ceilings beside the maker's figures, or another part of them.

        limits("bandwidth", caption="Copy, read and write over the size of the working set.")

    Args:
        part: `ceilings`, `roofline` (of them, by number format), `bandwidth` (over working-set
            size), `floors` (a launch, a wait, a readback) or `graphs` (their cost over length).
        caption: What to see.

    Raises:
        UnknownName: There is no such part.
    """
    showing = current()
    found, ceilings = rooflines.calls(showing, part)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    return figures.or_badge(
        showing, found, told, lambda: rooflines.shown(showing, found, part, ceilings, told)
    )


def seed_beside(
    run: str,
    op: str = "matmul",
    *,
    quantity: str = "gpu_warm",
    dtype: str | None = None,
    chart: bool = False,
    caption: str | None = None,
) -> str:
    """The seed's published figures of one run beside ours for the same call.

        seed_beside("fp16-2048", "matmul")
        seed_beside("fp32-8192", "matmul", dtype="tf32", chart=True)

    Args:
        run: The seed's run: fp16-2048, bf16-4096 or fp32-8192.
        op: `matmul` or `layer_norm_chain`.
        quantity: Ours; the seed ran back to back, which is gpu_warm.
        dtype: Our number format, where the seed's label does not say which it was.
        chart: Draw both ratios as well.
        caption: What to see.

    Raises:
        UnknownName: There is no such run or operation.
    """
    showing = current()
    cited = seeds.figures(run, op)
    theirs = seeds.run(run)
    size = theirs.size
    ceilings = showing.ceilings
    found = showing.find("contiguity.bench", dtype=dtype or theirs.dtype, m=size, n=size, k=size)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""

    def draw() -> str:
        return figures.beside(showing, found, ceilings, cited, op, quantity, told, chart=chart)

    return figures.or_badge(showing, [found], told, draw)


def harnesses(part: str, quantity: str = "gpu_cold", *, caption: str | None = None) -> str:
    """One part of the comparison of our stopwatch with the public ones, of all its recordings.

        harnesses("targets")
        harnesses("spread", "step_wall")

    Args:
        part: `targets`, `misses`, `spread`, `bias`, `coverage`, `errors` or `cost`.
        quantity: Of `spread` and `bias`: gpu_cold, gpu_warm or step_wall.
        caption: What to see.

    Raises:
        UnknownName: There is no such part or quantity.
    """
    showing = current()
    for kind, name, known in (
        ("part of the comparison", part, scoreboard.PARTS),
        ("quantity", quantity, scoreboard.QUANTITIES),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    found = boards.found(showing)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    return figures.or_badge(
        showing, found, told, lambda: boards.part(showing, found, part, quantity, told)
    )


def samples(experiment: str, *, quantity: str | None = None, caption: str | None = None) -> str:
    """The raw samples of a control and of its duplicate, over the blocks they were taken in.

        samples("worked_example.kernel")

    Args:
        experiment: One that keeps them, by its defaults.
        quantity: The only quantity.
        caption: What to see.

    Raises:
        BadParameter: It keeps none.
    """
    showing = current()
    found = showing.find(experiment)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        table = figures.rows_of(found, None, None, quantity, None)
        return boards.samples(showing, found, table, told)

    return figures.or_badge(showing, [found], told, draw)
