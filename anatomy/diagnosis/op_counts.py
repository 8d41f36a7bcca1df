"""Operations and bytes of any callable, operator by operator, as PyTorch dispatches it. The
operations are those of PyTorch's own counter (`torch.utils.flop_counter`), in which what is
elementwise counts as none. The bytes are those of each operator by itself, every input read once
and every output written once: a cache between two operators saves some, a second reading adds
some."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from anatomy.numerics import formats

# Operators that read only the rows asked for: as many bytes as they write, not all of the table.
LOOKUPS = ("embedding", "index", "index_select", "gather", "take")
# Operators that write into their first argument without reading it.
OVERWRITES = ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_")
# Operators that give memory out and touch none of it.
ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
# Operators that only describe memory anew, although their schema does not say so.
HIDDEN_VIEWS = ("_unsafe_view", "_reshape_alias")
# Operators that may cross from the host to the device or back; that is not the device's memory.
TRANSFERS = ("copy_", "_to_copy")


@dataclass
class Counted:
    """What was counted of one call."""

    # By number format (`bf16`, `tf32`, ...); a type without a ceiling by its name, as `float64`.
    flops: Counter = field(default_factory=Counter)
    bytes: int = 0  # read and written
    operators: int = 0  # that ran
    failed: str = ""  # why nothing was counted

    @property
    def total_flops(self) -> int:
        """Operations in all formats."""
        return sum(self.flops.values())


class _Counting(TorchDispatchMode):
    """Sees every operator below autograd, those of the backward pass among them."""

    def __init__(self, into: Counted, kind: str) -> None:
        super().__init__()
        self.into, self.kind = into, kind

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        kwargs = kwargs or {}
        packet = func._overloadpacket
        # Under inference_mode an operator that is made of others arrives whole.
        if packet not in flop_registry and func is not torch.ops.prim.device.default:
            with self:
                parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
        out = func(*args, **kwargs)
        # Attention keeps the state of its random numbers on the host: one tensor there is enough.
        kinds = {tensor.device.type for tensor in _tensors((args, kwargs, out))}
        crosses = len(kinds) > 1 and packet.__name__ in TRANSFERS
        if self.kind in kinds and not crosses:
            self.into.operators += 1
            if packet in flop_registry:
                work = flop_registry[packet](*args, **kwargs, out_val=out)
                self.into.flops[_number_format(packet, args)] += int(work)
            self.into.bytes += _bytes(func, args, kwargs, out)
        return out


def count(call: Callable[[], object], kind: str = "cpu") -> Counted:
    """Count one call, which has run before, on one kind of device: `cuda` or `cpu`. A replayed CUDA
    graph or compiled code is counted as far as operators are seen in it."""
    counted = Counted()
    try:
        with _Counting(counted, kind):
            call()
    except Exception as error:  # counting is a convenience: what refuses it is told, not hidden
        first = next(iter(str(error).splitlines()), "")[:200]
        return Counted(failed=f"{type(error).__name__}: {first}")
    return counted


def _number_format(packet: Any, args: tuple) -> str:
    dtype = next((t.dtype for t in _tensors(args) if t.is_floating_point()), torch.float32)
    if dtype == torch.float32 and "conv" in str(packet):
        return "tf32" if torch.backends.cudnn.allow_tf32 else "fp32"
    return formats.number_format(dtype) or str(dtype).removeprefix("torch.")


def _bytes(func: Any, args: tuple, kwargs: Mapping[str, Any], out: Any) -> int:
    """Bytes that one operator reads and writes; none for a view."""
    name = func._overloadpacket.__name__
    given = list(_tensors((args, dict(kwargs))))
    made = list(_tensors(out))
    if name in (*ALLOCATIONS, *HIDDEN_VIEWS) or _is_view(func, given, made):
        return 0
    written = sum(map(_held, made))
    if name in LOOKUPS:
        indices = sum(_held(t) for t in given if not t.is_floating_point())
        return 2 * written + indices
    # An in-place operator that returns nothing, such as a foreach one, writes what it was given.
    for argument, value in zip(func._schema.arguments, args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write and not made:
            written += sum(map(_held, _tensors(value)))
    unread = given[:1] if name in OVERWRITES else []
    asked = list(_tensors(args))
    into = list(_tensors(kwargs.get("out")))
    unread += [t for t in into if not any(t is other for other in asked)]
    read = {_place(t): _held(t) for t in given if not any(t is other for other in unread)}
    return written + sum(read.values())


def _is_view(func: Any, given: list[Tensor], made: list[Tensor]) -> bool:
    """Whether an operator only describes memory anew."""
    returns = func._schema.returns
    aliases = bool(returns) and all(
        each.alias_info is not None and not each.alias_info.is_write for each in returns
    )
    return aliases and bool(given) and bool(made)


def _held(tensor: Tensor) -> int:
    """Bytes of the elements that a tensor has in memory; an expanded one has few."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or not size else 1
    return count * tensor.element_size()


def _place(tensor: Tensor) -> tuple:
    """What tells two tensors of different memory apart."""
    return tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())


def _tensors(value: Any) -> Iterator[Tensor]:
    """All plain tensors in nested arguments."""
    if isinstance(value, Tensor):
        if value.layout == torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
