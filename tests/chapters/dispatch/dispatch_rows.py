"""A made-up recording of single calls: so many seconds for the CPU by each way."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

CALL_S, MATMUL_S = 4e-6, 8e-6
# Time over that of a plain addition.
SLOWER = {"a Python function": 0.01, "x.size(0)": 0.05, "x.view(1)": 0.1, "torch.add, out=": 0.9}
SLOWER |= {"torch._foreach_add": 0.1, "inference_mode": 0.85, "no_grad": 1.0, "requires_grad": 1.3}
SLOWER |= {"autocast": 1.0, "vmap": 1.8, "subclass": 2.5, "dispatch mode": 3.0, "custom op": 5.0}
KEYS = {"autocast": "(AutocastCUDA), AutogradCUDA, (ADInplaceOrView), (BackendSelect), CUDA"}


@synthetic.makes("dispatch.calls")
def calls(root: Path, **params: Any) -> Path:
    """A recording of `dispatch.calls`."""
    host = {"kernels": None, "kernels_per_call": None}
    seconds = {"torch.add": CALL_S} | {way: CALL_S * over for way, over in SLOWER.items()}
    rows = synthetic.timed("one call", "host_enqueue", seconds, **host)
    seconds = {"matmul": MATMUL_S, "matmul, autocast": 1.1 * MATMUL_S}
    rows += synthetic.timed("one matmul", "host_enqueue", seconds, **host)
    for row in rows:
        row["keys"] = KEYS.get(row["variant"], "AutogradCUDA, (ADInplaceOrView), CUDA")
        row["enters"] = "torch.library" if row["variant"] == "custom op" else None
    return synthetic.record(root, "dispatch.calls", rows, **params)


@synthetic.makes("dispatch.keys")
def keys(root: Path, **params: Any) -> Path:
    """A recording of `dispatch.keys`."""
    carried = "CUDA, ADInplaceOrView, AutogradCUDA, AutocastCUDA"
    rows = [{"variant": "x = torch.ones(1)", "keys": carried, "device": "cuda"}]
    return synthetic.record(root, "dispatch.keys", rows, **params)
