"""Refuses to time a variant that computes something else than a reference in higher precision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from anatomy.table.errors import DisagreementError

Outputs = Tensor | tuple[Tensor, ...] | list[Tensor]

# How far an output may stray from a float64 reference: ||out - ref|| / ||ref||, and why. The
# rounding of the result to its own type is 2**-(bits + 1) at most; sums in float32 of a few
# thousand products add far less than that for 16-bit types, and dominate for float32.
ALLOWED = {
    torch.float64: 2**-40,
    torch.float32: 2**-16,  # thousands of float32 additions, each of 2**-24, in any order
    torch.float16: 2**-9,  # one rounding of 2**-11, and split sums that are rounded in between
    torch.bfloat16: 2**-6,  # the same with 2**-8
}
# TF32 rounds the factors, not the result: 2**-11 each, averaged over the sum.
ALLOWED_TF32 = 2**-9
# How far the norm of an output may move between calls; atomics reorder sums, no more.
SAME_ANSWER = 2**-8


def check(
    variants: Mapping[str, Callable[[], Outputs]],
    references: Mapping[str, Callable[[], Outputs]],
    allowed: float | Mapping[str, float] | None = None,
    fix: str = "the variant",
) -> dict[str, float]:
    """The relative error of each variant's output, of any shape, against its reference.

    That is ||out - ref|| / ||ref||, of several tensors the largest. `allowed` is the most, for all
    or for each variant, by default that of the output's type in `ALLOWED`. A variant that strays
    further, has another shape, holds NaN or infinity where the reference does not, or returns no
    tensor raises a DisagreementError, which asks to mend `fix`.
    """
    errors = {}
    for name, variant in variants.items():
        expected = _tensors(references[name](), name)
        _poison(_tensors(variant(), name))
        found = _tensors(variant(), name)
        limit = allowed.get(name) if isinstance(allowed, Mapping) else allowed
        errors[name] = _compare(name, found, expected, limit, fix)
    return errors


def against_control(
    variants: Mapping[str, Callable[[], Outputs]], control: str
) -> dict[str, Callable[[], Outputs]]:
    """References for code that comes without one: every variant against the control's output."""
    return dict.fromkeys(variants, variants[control])


@dataclass(frozen=True)
class Fingerprint:
    """What is kept of an answer: the norm of each tensor, and the number format of the first."""

    norms: tuple[float, ...]
    dtype: torch.dtype


def fingerprint(variant: Callable[[], Outputs], name: str) -> Fingerprint:
    """The norms of what `variant` returns: cheap to keep, and different for another answer."""
    found = _tensors(variant(), name)
    return Fingerprint(
        tuple(float(torch.linalg.vector_norm(t.double())) for t in found), found[0].dtype
    )


def unchanged(
    variants: Mapping[str, Callable[[], Outputs]], before: Mapping[str, Fingerprint]
) -> None:
    """Refuse variants whose answer is no longer what it was `before` they were timed."""
    for name, variant in variants.items():
        after = fingerprint(variant, name).norms
        if len(after) != len(before[name].norms):
            raise DisagreementError(
                f"{name} returned {len(before[name].norms)} tensors at first and {len(after)} now. "
                "Let it do the same in every call."
            )
        for old, new in zip(before[name].norms, after, strict=True):
            if not abs(new - old) <= SAME_ANSWER * abs(old):
                raise DisagreementError(
                    f"{name} changed its answer while it was measured: the norm of its output was "
                    f"{old:.6g} and is {new:.6g}. Let it leave its inputs as they are."
                )


def _tensors(outputs: Outputs, name: str) -> list[Tensor]:
    found = [outputs] if isinstance(outputs, Tensor) else outputs
    each = isinstance(found, tuple | list) and all(isinstance(t, Tensor) for t in found)
    if not each or not found:
        raise DisagreementError(
            f"{name} returns {type(outputs).__name__}; return the tensor (or tensors) it computes, "
            "so that it can be checked before it is timed."
        )
    return [tensor.detach() for tensor in found]


def _poison(outputs: list[Tensor]) -> None:
    """Leave NaN in the memory that the next call's outputs will be given.

    So a variant which leaves elements unwritten cannot pass on what an earlier one left there: the
    caching allocator hands a freed block to the next request of its size. In-place variants return
    a tensor that lives on; it is left alone.
    """
    shapes = [(t.shape, t.dtype, t.device) for t in outputs if t.is_floating_point()]
    outputs.clear()
    for shape, dtype, device in shapes:
        torch.full(shape, float("nan"), dtype=dtype, device=device)


def _compare(
    name: str, found: list[Tensor], expected: list[Tensor], limit: float | None, fix: str
) -> float:
    worst = 0.0
    if len(found) != len(expected):
        raise DisagreementError(
            f"{name} returns {len(found)} tensors, its reference {len(expected)}. Mend {fix}."
        )
    for out, ref in zip(found, expected, strict=True):
        if out.shape != ref.shape:
            raise DisagreementError(
                f"{name} has shape {tuple(out.shape)}, its reference {tuple(ref.shape)}. "
                f"Mend {fix}."
            )
        allow = ALLOWED.get(out.dtype, 0.0) if limit is None else limit
        error = _relative_error(out, ref)
        if not error <= allow:  # also true for NaN, which is never allowed
            raise DisagreementError(
                f"{name} strays from its reference by {error:.1e} (relative, {out.dtype}); "
                f"{allow:.1e} is allowed. Mend {fix}, or allow more by allowed=... and say why."
            )
        worst = max(worst, error)
    return worst


def _relative_error(out: Tensor, ref: Tensor) -> float:
    """||out - ref|| / ||ref|| in float64; infinite if either is not finite where the other is."""
    # Row by row in slices, so that two float64 copies of a large output need not fit at once.
    square_error = square_norm = 0.0
    rows = max(1, 2**26 // max(1, out[0].numel() if out.ndim else 1))
    pieces = zip(out.split(rows), ref.split(rows), strict=True) if out.ndim else [(out, ref)]
    for a, b in pieces:
        exact = b.to(torch.float64)
        square_error += float((a.to(torch.float64) - exact).square().sum())
        square_norm += float(exact.square().sum())
    if square_norm == 0.0:
        return 0.0 if square_error == 0.0 else float("inf")
    return (square_error / square_norm) ** 0.5
