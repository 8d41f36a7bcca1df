"""A made-up recording of single calls: so many seconds for the CPU by each way."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

CALL_S, MATMUL_S = 4e-6, 8e-6
# Time over that of a plain addition.
SLOWER = {
    "a Python function": 0.01,
    "x.size(0)": 0.05,
    "x.view(1)": 0.1,
    "torch.add, out=": 0.9,
    "torch._foreach_add": 0.1,
    "inference_mode": 0.85,
    "no_grad": 1.0,
    "requires_grad": 1.3,
    "autocast": 1.0,
    "vmap": 1.8,
    "subclass": 2.5,
    "dispatch mode": 3.0,
    "custom op": 5.0,
}
KEYS = {"autocast": "(AutocastCUDA), AutogradCUDA, (ADInplaceOrView), (BackendSelect), CUDA"}


@synthetic.makes("dispatch.calls")
def calls(root: Path, **params: Any) -> Path:
    """A recording of `dispatch.calls`."""
    how = {"quantity": "host_enqueue", "kernels": None, "kernels_per_call": None}
    rows = synthetic.compared(
        "one call", base_s=CALL_S, slowdowns=SLOWER, control="torch.add", **how
    )
    rows += synthetic.compared(
        "one matmul", base_s=MATMUL_S, slowdowns={"matmul, autocast": 1.1}, control="matmul", **how
    )
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
