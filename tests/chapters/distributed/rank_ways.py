"""What ranks find of the ways to train: errors of right ones, and what a wrong one is told."""

import torch

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import training, ways
from anatomy.parts import ranks
from anatomy.table.errors import MeasurementError

SIZE = of.Size(width=64, layers=2, batch=4, sequence=8)
ON_CPU = tuple(n for n in of.TRAINED if n not in (of.COMPILED, of.DATA_PARALLEL, of.DDP_COMPILED))


def gates(device):
    """The error of each way, of two micro-batches, and of one that keeps its gradients back."""
    with ranks.joined(device, 60) as group:
        _, every = training._references(group, SIZE)
        x = next(ways.batches(SIZE, group, group.rank))
        found = {}
        for name in ON_CPU[1:]:
            way = ways.build(name, group, SIZE)
            found[name] = training.check(group, name, training.Run(way, (x,)), every)
            if name in (of.DDP, of.FSDP):
                late = training.Run(way, x.split(2), late=True)
                found[f"{name}, late"] = training.check(group, name, late, every)
            before = [ways.whole(p.detach()).clone() for p in way.parameters]
            way.step(x)
            after = [ways.whole(p.detach()) for p in way.parameters]
            moved = any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
            found[f"{name} moves"] = moved
        way = ways.build(of.DDP, group, SIZE)
        try:
            with way.unsynchronized():
                training.check(group, of.DDP, training.Run(way, (x,)), every)
        except MeasurementError as error:
            found["wrong"] = str(error)
        return group.gathered(found)
