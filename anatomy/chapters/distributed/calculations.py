"""What follows from sizes, the fit of the all-reduce, and the steps that were measured."""

from anatomy.chapters.distributed import scaling
from anatomy.chapters.distributed.requirements import BUCKET, GRADIENT, STATE
from anatomy.chapters.distributed.scaling import Fit
from anatomy.figures.curriculum.calculations import calculation
from anatomy.parts import sizes

MEASURED = 2  # GPUs of the recordings
GIGABYTE = 1e9
FIT = {
    "start": 'distributed.collectives."start-up, by the fit"."all-reduce".median_s',
    "gigabyte": 'distributed.collectives."a gigabyte more, by the fit"."all-reduce".median_s',
}
MODEL = {each: f'distributed.training."weak scaling"."DDP".{each}' for each in ("width", "layers")}
STEPS = {
    "alone": 'distributed.training."weak scaling"."one GPU".median_s',
    "step": 'distributed.training."weak scaling"."DDP".median_s',
}
LARGE = {"weights": 'distributed.memory."too large for one GPU".variant=DDP.rank=0.weights'}


@calculation(unit="B", **MODEL)
def all_gradients(width: float, layers: float) -> float:
    """Four bytes for each weight of the model."""
    return GRADIENT * sizes.weights(int(width), int(layers))


@calculation(unit="s", **FIT, **MODEL)
def all_reduce_of_all_gradients(
    start: float, gigabyte: float, width: float, layers: float
) -> float:
    """Start-up by the fit, and what all gradients take beyond it, in one message."""
    fit = Fit(start, GIGABYTE / gigabyte, MEASURED)
    return fit.seconds(all_gradients(width, layers), MEASURED)


@calculation(unit="s", **STEPS)
def what_ddp_adds(alone: float, step: float) -> float:
    """The step under DDP less that of one GPU."""
    return step - alone


@calculation(unit="%", **FIT, **MODEL, **STEPS)
def share_of_the_all_reduce_added(
    start: float, gigabyte: float, width: float, layers: float, alone: float, step: float
) -> float:
    """What DDP adds to the step of one GPU, over the all-reduce of all gradients by itself."""
    fit = Fit(start, GIGABYTE / gigabyte, MEASURED)
    return scaling.added_share(fit, all_gradients(width, layers), alone, step)


@calculation(unit="B", **LARGE)
def large_model_under_ddp(weights: float) -> float:
    """20 bytes for each weight: itself, its gradient, two averages of AdamW, a copy in a bucket."""
    return (STATE + BUCKET) * weights


@calculation(unit="B", **LARGE)
def large_model_shared_out(weights: float) -> float:
    """Half of 16 bytes for each weight: itself, its gradient, two averages of AdamW."""
    return STATE * weights / MEASURED


def _efficiency(gpus: int, name: str) -> None:
    @calculation(f"efficiency-of-{name}", unit="%", **FIT, **MODEL, **STEPS)
    def efficiency(
        start: float, gigabyte: float, width: float, layers: float, alone: float, step: float
    ) -> float:
        """The step of one GPU over that predicted for more of them under DDP."""
        fit = Fit(start, GIGABYTE / gigabyte, MEASURED)
        sent = all_gradients(width, layers)
        return scaling.predicted(fit, sent, alone, step, gpus).efficiency


for number, word in ((4, "four"), (8, "eight")):
    _efficiency(number, word)
