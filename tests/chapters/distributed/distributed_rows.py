"""Made-up recordings of several GPUs: collectives on a line, steps by factor, spans on a ruler."""

from pathlib import Path
from typing import Any

from anatomy.chapters.distributed import overlap as overlapping
from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed.memory import WAYS
from tests.fakes import synthetic

GPUS = 2
START_S, RATE = 2e-5, 3e11  # of every collective
STEP_S = 0.03  # on one GPU
ASKING = 0.4  # share of one GPU's step that any host takes to ask for a step
# Time of a step over that on one GPU; what no way has of its own.
SLOWER = dict.fromkeys((of.DDP, of.SMALL, of.VIEW, of.STATIC), 1.1)
SLOWER |= {of.ONE_OFF: 1.02, of.DATA_PARALLEL: 1.6, of.PARALLEL_OFF: 1.5, of.WHOLE: 1.25}
SLOWER |= {of.FSDP: 1.15, of.FULL: 1.2, of.KEPT: 1.12, of.PREFETCHED: 1.14, of.ZERO: 1.13}
SLOWER |= {of.DDP_CHECKPOINTED: 1.3, of.CHECKPOINTED: 1.35}
SLOWER |= {of.DDP_COMPILED: 1.0, of.FSDP_COMPILED: 1.05}
WIDER = dict.fromkeys(of.WIDELY[1:], 1.1)  # the same of wide layers
COPIED, NO_SYNC = 0.4, 0.9  # share of DataParallel's forward pass; time over that with sync
LATE = {f"{way}, at the end": NO_SYNC for way in (of.DDP, of.FSDP)}
HIDDEN = 0.8  # share of a DDP step's communication
PARTS = {of.SHARES: 0.01, of.RUN: 0.5, of.GATHER: 0.01, of.IN_TURN: 0.2, of.STAYING: 0.15}
PARTS |= {of.SINGLE: 0.1, of.NEW_THREAD: 0.45, of.FORWARD_OFF: 0.6, of.RUN_OFF: 0.16}
FIT = {of.DDP: False, of.FSDP: True}  # where the model is too large for one GPU
CAP_BYTES = 130 * 10**9


@synthetic.makes("distributed.collectives")
def collectives(root: Path, **params: Any) -> Path:
    """A recording of `distributed.collectives`, in which rank 1 is the slower one."""
    rows, ranks = [], []
    for op, message in of.messages(1.0, GPUS).items():
        cell = {"message_bytes": message, "gpus": GPUS}
        sent = {"all-reduce": message, "all-gather": message // 2, "reduce-scatter": message // 2}
        took = {name: START_S + each / RATE for name, each in sent.items()}
        slower = {name: each / took["all-reduce"] for name, each in took.items()}
        del slower["all-reduce"]
        found = synthetic.compared(
            op, "step_wall", took["all-reduce"], slower, control="all-reduce", **cell
        )
        for row in found:
            row |= {"device": "cuda", "enqueue_s": START_S}
            row["bytes"] = sent[row["variant"].removesuffix(" (again)")]
            ranks += [] if row["role"] == "again" else of_ranks(row)
        rows += found
    fits = [
        {"op": op, "variant": name, "gpus": GPUS, "bytes": each}
        for op, each in ((of.STARTUP, None), (of.GIGABYTE, 10**9))
        for name in sent
    ]
    return synthetic.record(root, "distributed.collectives", [*rows, *ranks, *fits], **params)


def of_ranks(row: dict) -> list[dict]:
    """What two ranks say of a row: the first was done a microsecond earlier."""
    names = "variant", "quantity", "gpus", "total_peak_bytes", "device", "enqueue_s"
    kept = {name: row.get(name) for name in names}
    blocks = row["blocks_s"], [each - 1e-6 for each in row["blocks_s"]]
    return [
        {**kept, "op": f"{row['op']}, each rank", "rank": rank, "blocks_s": blocks[1 - rank]}
        for rank in range(GPUS)
    ]


@synthetic.makes("distributed.training")
def training(root: Path, **params: Any) -> Path:
    """A recording of `distributed.training`."""
    gpus = params.get("world_size", GPUS)
    cell = of.STEP.columns
    rows, ranks = [], []
    for op, base_s, slower, control in (
        (of.WEAK, STEP_S, SLOWER, of.ONE),
        (of.STRONG, STEP_S, {of.DDP: 0.6, of.FSDP: 1.1}, of.ONE),
        (of.ACCUMULATED, 4 * STEP_S, LATE, f"{of.DDP}, every time"),
        (of.WIDE, 2 * STEP_S, WIDER, of.ONE),
        *((of.tensor_parallel(each), 0.01, {of.TENSOR: 0.7}, of.ONE) for each in of.BLOCKS),
        (of.PARTS, 0.02, PARTS | {of.COPIES: COPIED}, of.FORWARD),
    ):
        for row in synthetic.compared(op, "step_wall", base_s, slower, control=control, **cell):
            alone = row["variant"].startswith(of.ONE)
            tokens = of.STEP.tokens * (1 if alone or op == of.STRONG else gpus)
            row |= {"gpus": 1 if alone else gpus, "tokens": tokens, "error": 1e-4}
            row |= {"device": "cuda", "enqueue_s": ASKING * base_s}
            rows.append(row | {"total_peak_bytes": 16 * of.STEP.weights})
            ranks += of_ranks(rows[-1]) if op == of.WEAK and row["role"] != "again" else []
    return synthetic.record(root, "distributed.training", [*rows, *ranks], **params)


@synthetic.makes("distributed.overlap")
def overlap(root: Path, **params: Any) -> Path:
    """A recording of `distributed.overlap`: 10 ms of kernels, 5 ms of communication."""
    rows = []
    for way in of.PROFILED:
        hidden = HIDDEN if way == of.DDP else 0.0
        starts = 0.010 - 0.005 * hidden
        found = overlapping.figures([(0.0, 0.010, "gemm")], [(starts, starts + 0.005, "nccl")])
        cell = {"op": of.profile_of(way), "variant": way, "gpus": GPUS}
        rows += [cell | {"rank": rank} | found for rank in range(GPUS)]
    return synthetic.record(root, "distributed.overlap", rows, **params)


@synthetic.makes("distributed.memory")
def memory(root: Path, **params: Any) -> Path:
    """A recording of `distributed.memory`."""
    rows = []
    for way in WAYS:
        fits = FIT.get(way, True)
        cell = {"op": of.TOO_LARGE, "variant": way, "gpus": GPUS, "weights": 10**10}
        cell |= {"fits": fits, "total_peak_bytes": 2**30 if fits else None}
        cell |= {"cap_bytes": CAP_BYTES}
        rows += [cell | {"rank": rank} for rank in range(GPUS)]
    return synthetic.record(root, "distributed.memory", rows, **params)
