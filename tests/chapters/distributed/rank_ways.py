"""What ranks find of the ways to train: errors of right ones, and what a wrong one is told."""

import time
from functools import partial

import torch
from torch.distributed.tensor.debug import CommDebugMode

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import training, ways
from anatomy.parts import models, ranks

ASKING_S = 0.01  # of rank 1
SIZE = of.Size(width=64, layers=2, batch=4, sequence=8)
FOR_GPUS = (of.ONE_OFF, *of.ONE_DRIVES, *of.COMPILES)
ON_CPU = tuple(name for name in of.TRAINED if name not in FOR_GPUS)


def gates(device):
    """The error of each way, of two micro-batches, and of one that keeps its gradients back; and
    how often ranks talk in both passes of a layer in parts."""
    with ranks.joined(device, 60) as group:
        batches = [ways.batch(SIZE, group, rank) for rank in range(group.size)]
        tries = training.Tries(group, SIZE, {of.WEAK: of.TRAINED})
        own, every = tries.own, tries.mean
        x = batches[group.rank]
        found = {}
        for name in of.TRAINED[1:] if device.startswith("cuda") else ON_CPU[1:]:
            way = ways.build(name, group, SIZE)
            drives_all = name in of.ONE_DRIVES and not way.idle
            given = torch.cat(batches) if drives_all else x
            expected = own if name in of.ALONE else every
            found[name] = training.strays(group, name, training.Run(way, (given,)), expected)
            if name in (of.DDP, of.FSDP):
                late = training.Run(way, x.split(2), late=True)
                found[f"{name}, late"] = training.strays(group, name, late, every)
            before = [ways.whole(p.detach()).clone() for p in way.parameters]
            passes = []
            first = getattr(way.model, "module", way.model).blocks[0]
            hook = first.register_forward_pre_hook(lambda *_, passes=passes: passes.append(1))
            way.step(given)
            hook.remove()
            found[f"{name} passes"] = len(passes)
            after = [ways.whole(p.detach()) for p in way.parameters]
            moved = any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
            found[f"{name} moves"] = moved or way.idle
        way = ways.build(of.DDP, group, SIZE)
        with way.unsynchronized():
            wrong = partial(training.strays, group, of.DDP, training.Run(way, (x,)), every)
            found["wrong"] = group.attempt("", wrong)[1]
        block = ways.parted(SIZE, group, parallel=True)
        with CommDebugMode() as talk:
            models.gradients_of(block, list(block.parameters()), batches[0])()
        found["talks"] = talk.get_total_counts()
        wait = partial(time.sleep, ASKING_S * group.rank)
        found["asking_s"] = ranks.timed(group, {"": wait}, cell={"op": ""}, blocks=1)[0][
            "enqueue_s"
        ]
        return group.gathered(found)
