"""Where a step's GPU time goes, read from the events of a made-up profile."""

from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from anatomy.chapters.ladder import kernels as ladder_kernels
from anatomy.measure import stopwatch_for

PRODUCT = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"
FLASH = "void pytorch_flash::flash_fwd_kernel<traits>(Flash_fwd_params)"
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1"
FMHA = "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::Params)"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>(int, float)"
TRITON = "triton_poi_fused__to_copy_gelu_1"


def operator(name: str, shapes: list, *kernels: tuple[str, float]) -> SimpleNamespace:
    """An operator with the kernels it launched, their durations in microseconds."""
    launched = [SimpleNamespace(name=kernel, duration=us) for kernel, us in kernels]
    return SimpleNamespace(
        device_type=DeviceType.CPU, name=name, input_shapes=shapes, kernels=launched
    )


def kernel(name: str, begin_us: float, us: float, **more) -> SimpleNamespace:
    """A kernel on the device's timeline."""
    span = SimpleNamespace(start=begin_us, end=begin_us + us)
    return SimpleNamespace(device_type=DeviceType.CUDA, name=name, time_range=span, **more)


def test_seconds_are_those_of_what_launched_them_and_add_up_to_the_busy_time():
    found = ladder_kernels.read(
        [
            operator("aten::mm", [[8, 8], [8, 8]], (PRODUCT, 30.0)),
            operator("aten::bmm", [[2, 8, 8], [2, 8, 8]], (PRODUCT, 10.0)),
            operator("aten::softmax", [[1, 2, 8, 8]], (POINTWISE, 4.0)),
            operator("aten::gelu", [[8, 8]], (POINTWISE, 2.0)),
            operator("aten::flash", [[1, 2, 8, 8]], (FLASH, 6.0)),
            kernel(PRODUCT, 0, 30),
            kernel(PRODUCT, 30, 10),
            kernel(POINTWISE, 40, 4),
            kernel(POINTWISE, 44, 2),
            kernel(FLASH, 46, 6),
            kernel(TRITON, 52, 8),  # by a launcher of Triton's own
            kernel("Memset (Device)", 60, 1),
            kernel("Optimizer.step", 0, 900, is_user_annotation=True),
        ],
        steps=1,
    )
    us = {kind: found[f"{kind}_s"] * 1e6 for kind in ladder_kernels.KINDS}
    wanted = {"product": 30, "attention": 10 + 4 + 6, "pointwise": 2 + 8, "other": 1}
    assert us == pytest.approx(wanted)
    assert found["busy_s"] == pytest.approx(61e-6) and found["kernels_per_call"] == 7
    assert found["backend"] == "flash"
    assert found["kernel_seconds"][0] == [PRODUCT, "product", 1, pytest.approx(30e-6)]
    assert sum(each[2] for each in found["kernel_seconds"]) == 7


def test_figures_are_those_of_one_step():
    events = [operator("aten::mm", [[8, 8]], (PRODUCT, 30.0)) for _ in range(2)]
    events += [kernel(PRODUCT, 100 * n, 30) for n in range(2)]
    found = ladder_kernels.read(events, steps=2)
    assert found["kernel_seconds"] == [[PRODUCT, "product", 1, pytest.approx(30e-6)]]
    assert found["product_s"] == found["busy_s"] == pytest.approx(30e-6)


@pytest.mark.parametrize(
    ("names", "backend"),
    [
        ([CUDNN], "cudnn"),
        ([FLASH, PRODUCT], "flash"),
        ([FMHA], "efficient"),
        ([PRODUCT, POINTWISE], None),
        ([FLASH, FMHA], "efficient, flash"),
    ],
)
def test_a_fused_attention_is_known_by_its_kernels(names, backend):
    assert ladder_kernels.backend_of(names) == backend


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("triton_tem_fused_mm_4", "product"),
        ("triton_per_fused_native_layer_norm_2", "pointwise"),
        ("void cublasLt::splitKreduce_kernel<32, 16>", "product"),
        ("Memcpy DtoD (Device -> Device)", "other"),
        (CUDNN, "attention"),
        (POINTWISE, "pointwise"),
    ],
)
def test_a_kernel_that_nothing_is_known_of_is_told_by_its_name(name, kind):
    assert ladder_kernels.kind_of(name) == kind


def test_without_a_gpu_there_are_no_kernels():
    assert ladder_kernels.seconds_by_kind(lambda: None, stopwatch_for("cpu")) is None
