"""The seed's published figures beside ours."""

from anatomy.claims import seeds
from anatomy.figures import framing
from anatomy.figures.charts import figures
from anatomy.record.showing import current


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
    size = dict.fromkeys("mnk", theirs.size)
    found = showing.find("contiguity.bench", dtype=dtype or theirs.dtype, **size)
    ceilings = showing.ceilings_of(found)
    return framing.exhibit(
        [found], caption, lambda: figures.beside(found, ceilings, cited, op, quantity, chart=chart)
    )
