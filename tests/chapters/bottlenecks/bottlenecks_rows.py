"""Made-up recordings of the bottleneck classifier: workloads that it names as they were built."""

from pathlib import Path
from typing import Any

from anatomy.diagnosis.bottleneck import CAUSES
from tests.fakes import synthetic

# Workload -> what it was built as, what the seed's rule says, time without its cause over with it.
WORKLOADS = {
    "matmul": ("compute", "compute", None),
    "attention": ("compute", "compute", None),
    "copy": ("memory", "memory", None),
    "layer_norm": ("memory", "memory", None),
    "embedding": ("memory", "memory", None),
    "200 additions": ("launch", "launch", 0.3),
    "small training step": ("launch", "launch", 0.2),
    "item in every round": ("sync", "none of the three", 0.6),
    "nonzero in every round": ("sync", "compute", 0.7),
    "batches sorted by the host": ("input", "none of the three", 0.1),
    "batches copied from pageable memory": ("input", "compute", 0.2),
}
SHARES = {"idle_share": 0.4, "enqueue_share": 0.9, "sync_share": 0.3, "input_share": 0.0}
SHARES |= {"transfer_share": 0.0, "communication_share": 0.0, "flop_share": 0.5, "byte_share": 0.1}


@synthetic.makes("bottlenecks.confusion")
def confusion(root: Path, **params: Any) -> Path:
    """A recording of `bottlenecks.confusion`: everything is named as it was built."""
    rows = []
    for seed, (name, (expected, seeds, without)) in enumerate(WORKLOADS.items()):
        assert expected in CAUSES
        slower = {"without": without} if without else {}
        table = synthetic.compared(name, "step_wall", 2e-3, slower, control=name, seed=seed)
        for row in table:
            if row["role"] == "control":
                row |= {"expected": expected, "found": expected, "seed_says": seeds}
                row |= {"second": "launch", "certain": True, "kernel_count": 30.0} | SHARES
                row |= {
                    "saving": 0.25,
                    "report": [f"{name} on toy", "bottleneck: toy", "It waits."],
                }
        rows += table
    rows.append(
        {
            "op": "all-reduce",
            "variant": "all-reduce",
            "role": "variant",
            "quantity": "step_wall",
            "expected": "communication",
            "note": "needs several GPUs",
        }
    )
    return synthetic.record(root, "bottlenecks.confusion", rows, **params)


@synthetic.makes("bottlenecks.profiled_call")
def profiled_call(root: Path, **params: Any) -> Path:
    """A recording of `bottlenecks.profiled_call`: on the host the first call misleads."""
    rows = []
    for model in ("transformer", "convolutions"):
        for call in (1, 20, 21, 22):
            first = call == 1
            rows.append(
                {
                    "variant": f"{model}, call {call}",
                    "model": model,
                    "call": call,
                    "host_s": 0.4 if first else 1e-3,
                    "device_s": 5e-4,
                    "top_host": "cuLibraryLoadData" if first else "aten::addmm",
                    "top_host_share": 0.9 if first else 0.3,
                    "top_device": "void toy::gemm_kernel<float, 4>(int, float*)",
                    "top_device_share": 0.6,
                }
            )
    return synthetic.record(root, "bottlenecks.profiled_call", rows, **params)
