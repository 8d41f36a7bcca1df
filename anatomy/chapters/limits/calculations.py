"""Figures that the page of limits works out from them."""

from anatomy.figures.curriculum.calculations import calculation

ADDED = (
    3 * 2 * 2**26
)  # bytes of an addition of two bf16 tensors of 64 Mi elements: two reads, a write


@calculation(unit="B")
def bytes_of_an_addition() -> float:
    """Three tensors of 64 Mi bf16 values."""
    return ADDED


@calculation(unit="s", bandwidth="limit:copy")
def addition_by_its_bytes(bandwidth: float) -> float:
    """Bytes of three tensors of 64 Mi bf16 values, over the bandwidth of a copy."""
    return ADDED / bandwidth


@calculation(unit="s", peak="limit:matmul fp32")
def addition_by_its_operations(peak: float) -> float:
    """64 Mi additions, each in the place of a multiply-add, which the fp32 peak counts as two; the
    units of bf16 outside of the tensor cores are no slower."""
    return 2 * 2**26 / peak


STEP = 'ladder.training(width=1024, layers=2)."forward and backward".variant="2 amp bf16"'


@calculation(unit="s", enqueue=f"{STEP}.enqueue_s", kernels=f"{STEP}.kernels_per_call")
def cpu_per_kernel_of_a_step(enqueue: float, kernels: float) -> float:
    """CPU time that a training step in eager PyTorch takes to queue, over its kernels."""
    return enqueue / kernels


@calculation(
    unit="s",
    launch="limits.floors.launch.step_wall.add.median_s",
    thousand='limits.floors.graph.step_wall."graph of 1000".median_s',
)
def saved_by_a_kernel_in_a_graph(launch: float, thousand: float) -> float:
    """Time from call to call of one small addition, less a thousandth of a graph of a thousand."""
    return launch - thousand / 1000
