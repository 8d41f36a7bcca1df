"""Registers, shared memory and caches in units that can be compared: of one SM, and of them all."""

import pandas as pd
import torch

from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.record.declare import experiment

# By compute capability: KiB of an SM that its L1 cache and shared memory have together, and lanes
# of an SM that each do one FP32 multiply-add in a clock (NVIDIA, CUDA C++ Programming Guide,
# technical specifications and throughput of arithmetic instructions).
UNIFIED_KIB = {"7.5": 96, "8.0": 192, "8.6": 128, "8.9": 128, "9.0": 256, "10.0": 256, "12.0": 128}
FP32_LANES = {"7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128, "10.0": 128, "12.0": 128}
# What one SM delivers in a clock: three registers of 4 bytes to each lane that multiplies and adds;
# 4 bytes of each of the 32 banks of shared memory.
OPERAND_BYTES, BANK_BYTES = 3 * 4, 32 * 4
REGISTER_BYTES = 4


@experiment("memory_ladder.levels", page="curriculum/day_04.md")
def levels(device: str = "cuda:0") -> pd.DataFrame:
    """List what each level of the memory holds, and what follows from its width and the clock.

    Returns:
        One row per level, without times: what one SM has of it, and the whole GPU.
    """
    where = formats.torch_device(device)
    if where.type != "cuda":
        why = f"only a GPU has these levels; this is {where.type}"
        return pd.DataFrame([{"variant": "registers", "device": where.type, "note": why}])
    machine, has = host.describe(where), torch.cuda.get_device_properties(where)
    unified = (UNIFIED_KIB.get(machine["capability"]) or 0) * 2**10 or None
    registers = getattr(has, "regs_per_multiprocessor", 2**16)  # so many on all GPUs since 2012
    operands = FP32_LANES.get(machine["capability"], 0) * OPERAND_BYTES
    # Level -> bytes of one SM, and bytes that it delivers in a clock.
    of_sm = {
        "registers": (registers * REGISTER_BYTES, operands),
        "shared memory": (has.shared_memory_per_multiprocessor, BANK_BYTES),
        "L1 and shared memory": (unified, BANK_BYTES),
    }
    sms, clock_hz = machine["sm_count"], (machine["max_sm_clock_mhz"] or 0) * 1e6
    rows = [
        {"variant": name, "sm_bytes": size, "gpu_bytes": size and size * sms}
        | {"peak_rate": sms * clock_hz * width or None}
        for name, (size, width) in of_sm.items()
    ]
    rows += [{"variant": "L2", "gpu_bytes": machine["l2_bytes"]}]
    rows += [{"variant": "HBM", "gpu_bytes": machine["memory_bytes"]}]
    return pd.DataFrame(rows).astype(object).assign(device=where.type)
