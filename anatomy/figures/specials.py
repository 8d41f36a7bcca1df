"""What single pages alone call: the limits, the harnesses' comparison, and the seed's figures.

`anatomy.page` offers these beside its own; there stands what all of them have in common.
"""

from anatomy.chapters.harnesses.contest import boards, scoreboard
from anatomy.claims import seeds
from anatomy.figures import framing, rooflines
from anatomy.figures.charts import figures
from anatomy.record.showing import current
from anatomy.table.errors import UnknownName


def limits(part: str = "ceilings", *, caption: str | None = None) -> str:
    """The machine's limits: its ceilings beside the maker's figures, or another part of them.

        limits("bandwidth", caption="Copy, read and write over the size of the working set.")

    Args:
        part: `ceilings`, `roofline` (of them, by number format), `bandwidth` (over working-set
            size), `floors` (a launch, a wait, a readback) or `graphs` (their cost over length).
    """
    found, ceilings = rooflines.calls(current(), part)
    return framing.exhibit([found], caption, lambda: rooflines.shown(found, part, ceilings))


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
    """
    showing = current()
    cited, theirs = seeds.figures(run, op), seeds.run(run)
    ceilings, size = showing.ceilings, dict.fromkeys("mnk", theirs.size)
    found = showing.find("contiguity.bench", dtype=dtype or theirs.dtype, **size)
    return framing.exhibit(
        [found], caption, lambda: figures.beside(found, ceilings, cited, op, quantity, chart=chart)
    )


def harnesses(part: str, quantity: str = "gpu_cold", *, caption: str | None = None) -> str:
    """One part of the comparison of our stopwatch with the public ones, of all its recordings.

        harnesses("targets")
        harnesses("spread", "step_wall")

    Args:
        part: `targets`, `misses`, `spread`, `bias`, `coverage`, `errors` or `cost`.
        quantity: Of `spread` and `bias`: gpu_cold, gpu_warm or step_wall.
    """
    for kind, name, known in (
        ("part of the comparison", part, scoreboard.PARTS),
        ("quantity", quantity, scoreboard.QUANTITIES),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    found = boards.found(current())
    return framing.exhibit(found, caption, lambda: boards.part(found, part, quantity))


def samples(experiment: str, *, quantity: str | None = None, caption: str | None = None) -> str:
    """The raw samples of a control and of its duplicate, over the blocks they were taken in.

        samples("worked_example.kernel")

    Args:
        experiment: One that keeps them, by its defaults.

    Raises:
        BadParameter: It keeps none.
    """
    found = current().find(experiment)
    return framing.exhibit(
        found,
        caption,
        lambda: boards.samples(found, figures.rows_of(found, None, None, quantity, None)),
    )
