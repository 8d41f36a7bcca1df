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
ALONE = {"alone": 'distributed.training."weak scaling"."one GPU".median_s'}
STEPS = {**ALONE, "step": 'distributed.training."weak scaling"."DDP".median_s'}
IN_ONE = {**ALONE, "step": 'distributed.training."weak scaling"."DDP, one bucket".median_s'}
ALL_REDUCE = {"sent": 'distributed.collectives."all gradients of a step"."all-reduce".median_s'}
PARTS = 'distributed.training."forward of DataParallel"'
WITHOUT_CUDNN = {
    "copies": f'{PARTS}."copy the model".median_s',
    "forward": f"""{PARTS}."forward, cuDNN's attention off".median_s""",
}
LARGE = {"weights": 'distributed.memory."too large for one GPU".variant=DDP.rank=0.weights'}


@calculation(unit="B", **MODEL)
def all_gradients(width: float, layers: float) -> float:
    """Four bytes for each weight of the model."""
    return GRADIENT * sizes.weights(int(width), int(layers))


@calculation(unit="s", **STEPS)
def what_ddp_adds(alone: float, step: float) -> float:
    """The step under DDP less that of one GPU."""
    return step - alone


@calculation(unit="s", **IN_ONE)
def what_one_bucket_adds(alone: float, step: float) -> float:
    """The step under DDP with all gradients in one bucket less that of one GPU."""
    return step - alone


@calculation(unit="%", **ALL_REDUCE, **STEPS)
def share_of_the_all_reduce_added(sent: float, alone: float, step: float) -> float:
    """What DDP adds to the step of one GPU, over the all-reduce of all gradients by itself."""
    return (step - alone) / sent


@calculation(unit="%", **WITHOUT_CUDNN)
def copies_without_cudnn(copies: float, forward: float) -> float:
    """Copying the model, over all of DataParallel's forward pass without cuDNN's attention."""
    return copies / forward


@calculation(unit="B", **LARGE)
def copies_in_half(weights: float) -> float:
    """Two bytes for each weight, in bf16."""
    return 2 * weights


@calculation(unit="B", **LARGE)
def large_model_under_ddp(weights: float) -> float:
    """20 bytes for each weight: itself, its gradient, two averages of AdamW, a copy in a bucket."""
    return (STATE + BUCKET) * weights


@calculation(unit="B", **LARGE)
def large_model_shared_out(weights: float) -> float:
    """Half of 16 bytes for each weight: itself, its gradient, two averages of AdamW."""
    return STATE * weights / MEASURED


def _efficiency(name: str, column: str) -> None:
    over = f'distributed.training."weak scaling"."DDP".{column}'

    @calculation(f"{name}-efficiency-of-eight", unit="%", **FIT, **MODEL, **ALONE, ratio=over)
    def efficiency(
        start: float, gigabyte: float, width: float, layers: float, alone: float, ratio: float
    ) -> float:
        """The step of one GPU over that predicted for eight under DDP, from an end of the interval
        of what two take."""
        fit = Fit(start, GIGABYTE / gigabyte, MEASURED)
        sent = all_gradients(width, layers)
        return scaling.predicted(fit, sent, alone, ratio * alone, 8).efficiency


_efficiency("least", "ratio_high")
_efficiency("most", "ratio_low")
