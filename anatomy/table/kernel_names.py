"""Names of GPU kernels as a reader can take them in: a template's goes on for pages."""

import re

LONGEST = 64  # characters of a short name
# Kernels whose name is in their template's argument, and what says which operation a kernel is of.
_WRAPPER = re.compile(r"^(?:\w+ )?(?:\w+::)*Kernel2?<\s*(?:\w+::)*(\w+)")
_OPERATION = re.compile(
    r"\b([A-Za-z]\w*?(?:Functor\w*|_kernel_cuda|_kernel_impl|Ops|KernelImpl|_kernel(?=\()))\b"
)
# What only hands an operation or its other operand over.
_HANDS_OVER = re.compile(r"^([AB]UnaryFunctor|gpu_kernel_impl)$")
# Transformer Engine names the function that a kernel applies in the kernel's arguments.
_APPLIED = re.compile(r"&\(?(?:\w+ )?transformer_engine::(?:\w+::)*(\w+)")
# cuDNN names a kernel after its generator, and how it was tuned.
_GENERATED = re.compile(r"^cudnn_generated_fort_native_(\w+?)(?:_knob_\w+)?$")
# cuBLAS ends some names with how the tile is worked on and, last, whose they are; products that
# differ in their tile or in their operands' order must not look alike.
_TILED = re.compile(r"^(sm\d+_xmma_gemm_\w+?_tilesize\d+x\d+x\d+)_\w*?(cublas)\w*$")


def short(name: str) -> str:
    """A kernel's name without return type, template arguments, parameters and namespaces.
    `void at::native::vectorized_layer_norm_kernel<float, float>(int, ...)` is
    `vectorized_layer_norm_kernel`. A CUTLASS kernel is the argument of its template, and one that
    applies some function is named with it. A name longer than LONGEST keeps both ends."""
    if wrapped := _WRAPPER.match(name):
        return _cut(wrapped[1])
    if generated := _GENERATED.match(name):
        return _cut(f"cudnn {generated[1]}")
    if tiled := _TILED.match(name):
        return _cut(" ".join(tiled.groups()))
    plain = _outside(name)
    if not plain.startswith("Mem"):  # Memcpy DtoD
        *around, plain = plain.split(" ")[-1].split("::")
        plain = f"{around[-1]}::{plain}" if plain == "kernel" and around else plain
    applied = [*_APPLIED.findall(name), *_OPERATION.findall(name)]
    applied = [each for each in applied if each != plain and not _HANDS_OVER.match(each)]
    return _cut(" ".join([plain or name, *applied[:1]]))


def _outside(name: str) -> str:
    """What stands before the parameters, outside of templates; the name may be cut off in one."""
    kept, depth = [], 0
    for letter in name.replace("(anonymous namespace)::", ""):
        if letter == "(" and depth == 0:
            break
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if depth == 0 and letter != ">":
            kept.append(letter)
    return "".join(kept).strip()


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[1 - LONGEST // 2 :]}"
