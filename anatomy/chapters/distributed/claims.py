"""What the seed says of several GPUs, and what the page shows beside it."""

from itertools import product

from anatomy.chapters.distributed import requirements as of
from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.table import Table, quotient, time_of
from anatomy.judge.rows import Row

TRAINING, MEMORY = Need("distributed.training"), Need("distributed.memory")
OVERLAP = Need("distributed.overlap")
NEARLY = 1.05  # no slower, to who chooses
COPIED = 0.05  # share of a forward pass: less, and nobody would notice the copies


def _of_ranks(table: Table, op: str, variant: str) -> list[Row]:
    """The rows of all ranks; Unmeasured with the reason where they have no figures."""
    rows = table.select(op=op, variant=variant)
    if not rows or (reason := rows[0].get("note")):
        raise Unmeasured(reason if rows else f"{variant} was not measured.")
    return rows


@claim(TRAINING, MEMORY)
def ddp_if_it_fits(training: Table, memory: Table) -> Finding:
    """Where the model fits, of narrow layers or wide ones, DDP's step takes at most 5 % longer than
    either FSDP2's in the same precision; of a model that is too large for DDP, two steps fit under
    FSDP2."""
    cases = Cases()
    for (op, layers), way in product(((of.WEAK, "narrow"), (of.WIDE, "wide")), (of.FSDP, of.KEPT)):
        with cases.at(model=f"fits, {layers} layers", beside=way) as case:
            ratio = training.ratio(way, of.DDP, op=op)
            case(ratio.at_least(1 / NEARLY), ratio, f"{way} {ratio.text} ({layers} layers)")
    with cases.at(model="does not fit", beside=of.FSDP) as case:
        fit = {
            n: all(r["fits"] for r in _of_ranks(memory, of.TOO_LARGE, n)) for n in (of.DDP, of.FSDP)
        }
        said = {True: "fits", False: "does not fit"}
        case(
            fit[of.FSDP] and not fit[of.DDP],
            said=f"too large a model: {', '.join(f'{n} {said[yes]}' for n, yes in fit.items())}",
        )
    return cases.finding(f"Over DDP, in time: {cases.said()}.")


@claim(TRAINING)
def data_parallel_synchronizes(training: Table) -> Finding:
    """Copying the model to the other GPUs takes 5 % of DataParallel's forward pass or more, and its
    step is slower than DDP's over the same batch; with the attention that PyTorch chooses, and
    without cuDNN's, which makes plans for each thread."""
    cases = Cases()
    for said, forward, step in (
        ("", of.FORWARD, of.DATA_PARALLEL),
        (" without cuDNN's attention", of.FORWARD_OFF, of.PARALLEL_OFF),
    ):
        with cases.at(part=f"forward pass{said}") as case:
            copy, whole = (time_of(training.measured(n, op=of.PARTS)) for n in (of.COPIES, forward))
            share = quotient(copy, whole)
            what = f"copies take {share.text} of the forward pass{said}"
            case(share.at_least(COPIED), share, what)
        with cases.at(part=f"step{said}") as case:
            ratio = training.ratio(step, of.DDP, op=of.WEAK)
            # No figure of the case: it is another quantity than the share of the copies.
            case(ratio.says("slower"), said=f"the step{said} takes {ratio.text} of DDP's time")
    said = cases.said()
    return cases.finding(f"{said[:1].upper()}{said[1:]}.")


@claim(OVERLAP, topic="distributed", measures="hidden communication / all of it")
def ddp_hides_most(overlap: Table) -> Finding:
    """DDP hides most of its communication behind the backward pass.

    On every rank, half of the time in which bytes move or more lies beside kernels."""
    cases = Cases()
    for row in _of_ranks(overlap, of.profile_of(of.DDP), of.DDP):
        with cases.at(rank=row["rank"]) as case:
            share = Measured.counted(row["hidden_share"])
            case(share.value >= 0.5, share)
    return cases.finding("The hidden share, by rank.")
