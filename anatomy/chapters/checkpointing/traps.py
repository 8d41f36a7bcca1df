"""What running a part twice changes beside the gradients, each beside the same step run once."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from anatomy.numerics import formats


def rows(where: torch.device, width: int, batch: int) -> Iterator[dict]:
    """One row for each trap, and for each control of one."""
    safe, old = {"use_reentrant": False}, {"use_reentrant": True}
    with formats.products_in("fp32"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of the traps warns; what it leaves is in its row
        for name, inside, how, by_grad, wants in (
            ("plain", nn.GELU, safe, False, False),
            ("dropout", nn.Dropout, safe, False, False),
            (
                "dropout, state not kept",
                nn.Dropout,
                safe | {"preserve_rng_state": False},
                False,
                False,
            ),
            ("batch norm", partial(nn.BatchNorm1d, width), safe, False, False),
            ("reentrant", nn.GELU, old, False, True),
            ("reentrant, input without gradient", nn.GELU, old, False, False),
            ("reentrant, autograd.grad", nn.GELU, old, True, True),
            ("autograd.grad", nn.GELU, safe, True, False),
        ):
            step = partial(_trap, inside, width, batch, where, by_grad=by_grad, wants=wants)
            yield {"variant": name} | _against(step(None), step(how))


@dataclass
class _Seen:
    """What one step left: a gradient or None for each parameter, and how often parts ran."""

    gradients: list[Tensor | None]
    forwards: int
    updates: int | None
    raised: str | None


def _trap(inside, width, batch, where, how, *, by_grad, wants) -> _Seen:
    """One step of two linear layers with `inside` between them, checkpointed as `how` says."""
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(0)
        between = inside()
        model = nn.Sequential(nn.Linear(width, width), between, nn.Linear(width, width)).to(where)
        ran = []
        model.register_forward_pre_hook(lambda *_: ran.append(1))
        x = torch.randn(batch, width, device=where).requires_grad_(wants)  # (B, C)
        parameters = list(model.parameters())
        raised, gradients = None, [None] * len(parameters)
        try:
            y = model(x) if how is None else checkpoint(model, x, **how)
            loss = y.square().mean()
            if by_grad:
                gradients = list(torch.autograd.grad(loss, parameters))
            else:
                loss.backward()
                gradients = [each.grad for each in parameters]
        except RuntimeError as error:
            raised = type(error).__name__
    updates = getattr(between, "num_batches_tracked", None)
    told = None if updates is None else int(updates)
    return _Seen([None if g is None else g.clone() for g in gradients], len(ran), told, raised)


def _against(without: _Seen, found: _Seen) -> dict:
    missing = sum(each is None for each in found.gradients)
    error = None
    if not missing:
        square = [
            (float((g - w).double().square().sum()), float(w.double().square().sum()))
            for g, w in zip(found.gradients, without.gradients, strict=True)
        ]
        error = (sum(e for e, _ in square) / sum(n for _, n in square)) ** 0.5
    return {
        "forwards": found.forwards,
        "gradient_error": error,
        "gradients_missing": missing,
        "updates": found.updates,
        "updates_without": without.updates,
        "raised": found.raised,
    }
