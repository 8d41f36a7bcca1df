"""A small whole recording that tests save, break and load."""

import copy

DEFAULTS = {"device": "cuda:0", "m": 4096}
KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
ROWS = [
    {
        "op": "matmul",
        "variant": "contiguous",
        "role": "control",
        "quantity": "gpu_warm",
        "median_s": 1 / 3e4,
        "low_s": 1 / 3.1e4,
        "high_s": 1 / 2.9e4,
        "samples": 240,
        "flops": 137438953472,
        "blocks_s": [1 / 3e4, 1 / 3.1e4],
        "ratio": None,
        "verdict": "control",
        "wide": False,
        "kernels": [KERNEL],
        "shape": [4096, 4096],
    },
    {"op": "matmul", "variant": "padded", "role": "variant", "note": "FP8 needs sm_89."},
]


def made(**changes):
    """A whole recording, with some fields other than usual."""
    usual = {
        "experiment": "contiguity.bench",
        "params": DEFAULTS | {"m": 2048},
        "machine": {
            "slug": "nvidia-h200",
            "gpu": "NVIDIA H200",
            "card": "0123456789ab",
            "driver": "580.159.03",
            "capability": "9.0",
        },
        "software": {"torch": "2.11.0+cu130", "cuda": "13.0", "cublas": "13.1.0.3"},
        "method": {"blocks": 12, "seed": 7},
        "code": {
            "hash": "ab" * 32,
            "scheme": 2,
            "files": ["anatomy/a.py"],
            "commit": None,
            "dirty": None,
        },
        "started_at": "2026-11-21T10:00:00+00:00",
        "seconds": 3.25,
        "conditions": {
            "before": {"sm_clock_mhz": 1980, "throttle": {"power_cap": 0}},
            "after": None,
        },
        "noise_floor": {"matmul gpu_warm": 0.004},
        "rows": copy.deepcopy(ROWS),
        "warnings": ["The clock fell by 3 % (power cap)."],
    }
    return usual | changes
