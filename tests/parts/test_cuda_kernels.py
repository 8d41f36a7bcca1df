"""Kernels of our own: what lies in snippets/kernels can be passed what we pass, and compiles."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest
import torch
from torch.utils import cpp_extension

from anatomy.parts import cuda_kernels
from anatomy.table.errors import DeviceError
from tests.parts import cuda_on_cpu

FILES = sorted(cuda_kernels.KERNELS.glob("*.cu"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_the_kernel_of_its_name_and_takes_what_the_door_can_pass(file):
    cuda_on_cpu.parameters_of(file.read_text("utf-8"), file.stem)


def test_a_float_by_value_is_refused_for_it_would_arrive_as_a_double():
    with pytest.raises(AssertionError, match="can't be passed"):
        cuda_on_cpu.parameters_of("__global__ void f(float* x, float by) {}", "f")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, to compile for a GPU")
def test_all_of_them_compile_for_a_gpu(tmp_path):
    whole = tmp_path / "all.cu"
    whole.write_text("".join(f'#include "{file}"\n' for file in FILES))
    how = ["nvcc", "-cubin", "-arch=sm_90", "-o", str(tmp_path / "all.cubin"), str(whole)]
    done = subprocess.run(how, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_one_element_a_thread_and_none_beyond_the_end():
    a, b, found = torch.randn(1000), torch.randn(1000), torch.full((1024,), 7.0)
    cuda_on_cpu.kernel("vector_add")(4, 256, (a, b, found, 1000))
    torch.testing.assert_close(found[:1000], a + b)
    assert (found[1000:] == 7.0).all()


@pytest.fixture
def compiler(monkeypatch):
    """A stand-in for PyTorch's door to NVRTC, without a CUDA toolkit."""
    seen = SimpleNamespace(homes=[], error=None)

    def compile(source, name):
        seen.homes.append(cpp_extension.CUDA_HOME)
        if seen.error:
            raise seen.error
        return lambda *given: (_ for _ in ()).throw(RuntimeError("CUDA error: invalid argument"))

    monkeypatch.setattr(torch.cuda, "_compile_kernel", compile, raising=False)
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    return seen


def test_no_toolkit_is_needed_and_nobody_is_told_that_there_is_one(compiler):
    cuda_kernels.CudaKernel("vector_add")
    assert compiler.homes != [None]
    assert cpp_extension.CUDA_HOME is None


@pytest.mark.parametrize("error", [OSError("no /usr/lib/a.so"), RuntimeError("line 1:\n error")])
def test_what_does_not_compile_costs_a_row_that_names_no_folder(compiler, error):
    compiler.error = error
    with pytest.raises(DeviceError, match=r"vector_add can't run .*: (no a.so|line 1: error)$"):
        cuda_kernels.CudaKernel("vector_add")


def test_a_launch_that_is_refused_costs_a_row(compiler):
    with pytest.raises(DeviceError, match="invalid argument"):
        cuda_kernels.CudaKernel("vector_add")(1, 4096, ())


def test_where_no_kernel_of_ours_runs_the_reason_is_said(monkeypatch):
    assert "this is cpu" in cuda_kernels.why_not(torch.device("cpu"))
    monkeypatch.delattr(torch.cuda, "_compile_kernel", raising=False)
    assert torch.__version__ in cuda_kernels.why_not(torch.device("cuda", 0))
