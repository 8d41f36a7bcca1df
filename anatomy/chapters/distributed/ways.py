"""Ways to train one model on several GPUs, each as PyTorch offers it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW
from torch.utils.checkpoint import checkpoint

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed.requirements import Size
from anatomy.parts import models
from anatomy.parts.ranks import Group
from anatomy.table.errors import DeviceError

# Of learning: AdamW's first steps move every weight by as much. At 1e-6 two of them turned the
# gradients of a large model by more than their check allows.
RATE = 1e-8
UNBROKEN_MB = 2**20  # a bucket that any model fits into: DDP then begins when backward has ended


class Model(nn.Module):
    """Transformer layers in float32 that compute in bfloat16 on a GPU: by autocast, which is inside
    of `forward` because DataParallel runs that in threads that don't inherit it, or because whoever
    wraps the layers casts their weights."""

    def __init__(
        self,
        size: Size,
        where: torch.device,
        *,
        checkpointed: bool = False,
        autocast: bool = True,
    ) -> None:
        super().__init__()
        self.blocks = models.transformer(size.width, size.layers, where, torch.float32)
        self.checkpointed, self.autocast = checkpointed, autocast and where.type == "cuda"

    def compile_blocks(self) -> None:
        """Compile each layer by itself: they share one compilation, and gradients leave layer by
        layer, so that DDP can send them while the backward pass goes on. Cut once more by DDP's
        buckets, layers would be other code than the plain model's."""
        from torch._dynamo import config  # which takes seconds to import

        config.optimize_ddp = False
        for block in self.blocks:
            block.compile()

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.autocast):
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return x


@dataclass
class Way:
    """A model as it is trained, with its optimizer."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    parameters: list[nn.Parameter]  # in the order of the plain model's
    unsynchronized: Callable[[], AbstractContextManager] = nullcontext
    idle: bool = False  # whether this rank only watches while rank 0 drives all GPUs
    attention: Callable[[], AbstractContextManager] = nullcontext  # which kernels it may have

    def loss(self, x: Tensor) -> Tensor:
        """The loss of one GPU's batch."""
        with self.attention():  # around all threads of a forward pass: it is set for all of them
            return self.model(x).float().square().mean()

    def backward(self, *batches: Tensor, late: bool = False) -> Tensor:
        """The mean loss of all micro-batches, whose gradients add up; `late` has them sent with the
        last alone."""
        losses = []
        for number, x in enumerate(batches, 1):
            with self.unsynchronized() if late and number < len(batches) else nullcontext():
                loss = self.loss(x) / len(batches)
                loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum() if losses[1:] else losses[0]

    def step(self, *batches: Tensor, late: bool = False) -> None:
        """One training step, as `backward`."""
        if not self.idle:
            self.backward(*batches, late=late)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def gradients(self, *batches: Tensor, late: bool = False) -> tuple[Tensor, Tensor]:
        """Mean loss of this rank's batches, and all gradients as one vector; no weight moves."""
        loss = self.backward(*batches, late=late)
        flat = torch.cat([whole(p.grad).flatten() for p in self.parameters])
        self.optimizer.zero_grad()
        return loss, flat


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may lie in parts on several ranks; all of them ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def build(name: str, group: Group, size: Size) -> Way:
    """One of the ways by its name; DeviceError for what a CPU has not."""
    on_gpu = group.where.type == "cuda"
    if not on_gpu and name in (of.ONE_OFF, *of.ONE_DRIVES, *of.COMPILES):
        raise DeviceError(f"{name} is for GPUs: a CPU has nothing to gain by it here")
    how = {"checkpointed": name in (of.CHECKPOINTED, of.DDP_CHECKPOINTED)}
    how["autocast"] = name == of.FULL or not name.startswith(of.FSDP)
    model = Model(size, group.where, **how)
    adam = {"lr": RATE, "fused": on_gpu}
    if name.startswith(of.FSDP):
        return _sharded(name, group, model, adam)
    if name in of.COMPILES:
        model.compile_blocks()
    parameters = list(model.parameters())
    if name in (*of.ALONE, *of.ONE_DRIVES):
        parallel = name in of.ONE_DRIVES
        run = nn.DataParallel(model, all_gpus(group)) if parallel and group.rank == 0 else model
        how = {"idle": parallel and group.rank > 0}
        how |= {"attention": without_cudnn} if name in (of.ONE_OFF, of.PARALLEL_OFF) else {}
        return Way(run, AdamW(parameters, **adam), parameters, **how)
    options = {
        of.SMALL: {"bucket_cap_mb": 1},
        of.WHOLE: {"bucket_cap_mb": UNBROKEN_MB},
        of.VIEW: {"gradient_as_bucket_view": True},
        of.STATIC: {"static_graph": True},
    }.get(name, {})
    run = DistributedDataParallel(model, device_ids=[group.where] if on_gpu else None, **options)
    if name == of.ZERO:
        optimizer = ZeroRedundancyOptimizer(parameters, AdamW, **adam)
    else:
        optimizer = AdamW(parameters, **adam)
    return Way(run, optimizer, parameters, run.no_sync)


# As torch.backends.cuda.enable_cudnn_sdp(False), for a while: PyTorch chooses among the others.
OTHERS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
without_cudnn = partial(sdpa_kernel, OTHERS)


def all_gpus(group: Group) -> list[int]:
    """The GPUs of all ranks, which rank 0 drives alone under DataParallel; DeviceError where some
    are of another host."""
    gpus = [group.where.index + each for each in range(group.size)]
    if gpus[-1] >= torch.cuda.device_count():
        raise DeviceError("DataParallel drives GPUs of one host")
    return gpus


def _sharded(name: str, group: Group, model: Model, adam: Mapping[str, Any]) -> Way:
    mesh = init_device_mesh(group.where.type, (group.size,))
    how = {"mesh": mesh, "reshard_after_forward": name != of.KEPT}
    if name != of.FULL and group.where.type == "cuda":
        how["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
    if name == of.FSDP_COMPILED:  # FSDP2's hooks stay outside of what is compiled
        model.blocks = nn.Sequential(*map(torch.compile, model.blocks))
    for block in model.blocks:
        fully_shard(block, **how)
    for block, following in pairwise(model.blocks) if name == of.PREFETCHED else ():
        block.set_modules_to_forward_prefetch([following])
    fully_shard(model, **how)
    parameters = list(model.parameters())

    @contextmanager
    def unsynchronized() -> Iterator[None]:
        model.set_requires_gradient_sync(False)
        yield
        model.set_requires_gradient_sync(True)

    return Way(model, AdamW(parameters, **adam), parameters, unsynchronized)


class Heads(models.Attention):
    """Attention whose projection has q, k and v of a head side by side, so that ranks can have
    whole heads of their own: it finds them in what it is given."""

    def __init__(self, width: int, ranks: int) -> None:
        super().__init__(width)
        self.width = width // (-(-self.heads // ranks) * ranks)  # of a head

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        parts = self.qkv(x).unflatten(-1, (-1, 3, self.width)).transpose(1, 2)
        q, k, v = parts.unbind(3)  # (B, H of this rank, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


def parted(size: Size, group: Group, *, parallel: bool) -> nn.Module:
    """A layer on every rank, or one in parts over all of them."""
    with models.drawn_on(group.where):
        block = models.Block(size.width)
        block.attention = Heads(size.width, group.size)
        block.to(models.half(group.where))
    if parallel:
        plan = dict.fromkeys(("attention.qkv", "perceptron.up"), ColwiseParallel())
        plan |= dict.fromkeys(("attention.out", "perceptron.down"), RowwiseParallel())
        parallelize_module(block, init_device_mesh(group.where.type, (group.size,)), plan)
    return block


def batch(size: Size, group: Group, rank: int) -> Tensor:
    """The batch (B, T, C) of a rank; the same on whichever rank asks."""
    drawn = torch.Generator(group.where).manual_seed(rank)
    shape = size.batch, size.sequence, size.width
    x = torch.randn(shape, generator=drawn, device=group.where)
    return x.to(models.half(group.where))
