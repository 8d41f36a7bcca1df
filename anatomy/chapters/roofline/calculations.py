"""Answers to the exercises of the roofline's days, for the machine shown."""

from anatomy.figures.curriculum.calculations import calculation

AT_64, AT_128, PEAK = (f'roofline.intensity."{count} FMAs".rate' for count in (64, 128, 1024))
LARGE = 'roofline.first_layer."large layer"'
HOST = 'roofline.first_layer."large layer, on the CPU"."eager fp32".median_s'
EAGER = f'{LARGE}."eager bf16".median_s'


@calculation(unit="s", peak="limit:matmul bf16")
def layer_floor(peak: float) -> float:
    """2 x 8192 x 4096 x 4096 operations of a matmul over the bf16 peak."""
    return 2 * 8192 * 4096 * 4096 / peak


@calculation(unit="s", peak="limit:matmul bf16")
def small_layer_floor(peak: float) -> float:
    """2 x 64 x 256 x 256 operations over the bf16 peak."""
    return 2 * 64 * 256 * 256 / peak


@calculation(unit="s", bandwidth="limit:copy")
def bias_and_relu(bandwidth: float) -> float:
    """Two passes over 8192 x 4096 bf16 values, each a read and a write, over the bandwidth."""
    return 2 * 2 * 8192 * 4096 * 2 / bandwidth


@calculation("sweep-corner", unit="FLOP/B", peak=PEAK, bandwidth="limit:copy")
@calculation("fp32-ridge", unit="FLOP/B", peak="limit:matmul fp32", bandwidth="limit:copy")
def ridge(peak: float, bandwidth: float) -> float:
    """FP32 operations in a second over bytes in a second."""
    return peak / bandwidth


@calculation(unit="operations", peak=PEAK, bandwidth="limit:read")
def operations_for_each_byte(peak: float, bandwidth: float) -> float:
    """FP32 operations in a second over bytes that are read in one, to a whole number."""
    return round(peak / bandwidth)


@calculation("beyond-the-arithmetic-at-128", unit="x", rate=AT_128, peak=PEAK)
def beyond_the_arithmetic(rate: float, peak: float) -> float:
    """Time of a kernel over that of its operations at the rate that 1024 FMAs reach."""
    return peak / rate


@calculation("beyond-both-at-64", unit="x", rate=AT_64, peak=PEAK, bandwidth="limit:copy")
def beyond_both(rate: float, peak: float, bandwidth: float) -> float:
    """Time of a kernel of 16 FLOP/B over the longer one of its operations' and its bytes'."""
    return min(peak, 16 * bandwidth) / rate


@calculation(unit="s", bandwidth="limit:copy")
def softmax_floor(bandwidth: float) -> float:
    """A read and a write of 8192 x 8192 bf16 values over the bandwidth."""
    return 2 * 8192 * 8192 * 2 / bandwidth


@calculation(
    unit="s",
    moved='roofline.operations.optimizer."AdamW, fused".bytes',
    bandwidth="limit:copy",
)
def adamw_floor(moved: float, bandwidth: float) -> float:
    """Parameters, gradients and both moments read and all but the gradients written, over the
    bandwidth."""
    return moved / bandwidth


@calculation(unit="rows", peak="limit:matmul bf16", bandwidth="limit:read")
def decode_batch(peak: float, bandwidth: float) -> float:
    """Rows B of B x K times K x N: 2 B K N operations and 2 K N bytes, B operations a byte."""
    return round(peak / bandwidth)


@calculation(unit="x", cpu=HOST, gpu=f'{LARGE}."eager fp32".median_s')
def cpu_over_gpu(cpu: float, gpu: float) -> float:
    """Time of the large layer on the CPU over that on the GPU, both in fp32."""
    return cpu / gpu


def _end_of_cpu_over_gpu(name: str, of_cpu: str, of_gpu: str) -> None:
    cpu, gpu = HOST.replace("median_s", of_cpu), f'{LARGE}."eager fp32".{of_gpu}'

    @calculation(name, unit="x", cpu=cpu, gpu=gpu)
    def end(cpu: float, gpu: float) -> float:
        """The same from one end of both intervals, to two digits."""
        return float(f"{cpu / gpu:.2g}")


_end_of_cpu_over_gpu("cpu-over-gpu-least", "low_s", "high_s")
_end_of_cpu_over_gpu("cpu-over-gpu-most", "high_s", "low_s")


@calculation("saved-by-compiling", unit="s", eager=EAGER, other=f'{LARGE}."compiled bf16".median_s')
@calculation(
    "saved-by-the-epilogue", unit="s", eager=EAGER, other=f'{LARGE}."one call bf16".median_s'
)
def saved(eager: float, other: float) -> float:
    """Time of the large layer, eager in bf16, less the time of the other way; to two digits, which
    is more than their intervals bear."""
    return float(f"{eager - other:.2g}")


@calculation(unit="FMAs", ridge='roofline.intensity."1 FMA".ridge')
def fmas_at_the_ridge(ridge: float) -> float:
    """Two operations an FMA and 8 bytes an element: four times the ridge."""
    return round(4 * ridge)


@calculation(unit="FMAs", ridge='roofline.intensity."1 FMA".ridge')
def half_precision_fmas(ridge: float) -> float:
    """With bf16 in memory and FP32 in registers: 4 bytes an element, so half as many."""
    return round(2 * ridge)
