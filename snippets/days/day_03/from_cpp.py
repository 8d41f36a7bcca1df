"""A launch from C++: compiles launches.cu with the CUDA toolkit and loads it.

python snippets/days/day_03/from_cpp.py
"""

import ctypes
import tempfile
from pathlib import Path

import torch
from torch.utils import cpp_extension


# --8<-- [start:compiled]
def compiled():
    """`launch(times)`: launches an empty kernel so often."""
    source = Path(__file__).with_name("launches.cu").read_text()
    library = cpp_extension.load_inline(
        "launches",
        cpp_sources="",
        cuda_sources=source,
        no_implicit_headers=True,  # PyTorch's would take most of a minute
        is_python_module=False,
        build_directory=tempfile.mkdtemp(),
    )
    function = ctypes.CDLL(library).launch

    def launch(times):
        stream = torch.cuda.current_stream().cuda_stream
        function(times, ctypes.c_void_p(stream))

    return launch


# --8<-- [end:compiled]

if __name__ == "__main__":
    if not torch.cuda.is_available() or cpp_extension.CUDA_HOME is None:
        raise SystemExit("This needs an NVIDIA GPU and the CUDA toolkit (nvcc).")
    compiled()(1000)
    torch.cuda.synchronize()
    print("1000 launches.")
