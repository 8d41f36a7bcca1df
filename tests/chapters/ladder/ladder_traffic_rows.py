"""Made-up counts of attention's bytes: a cache spares most of what fits, nothing of the rest."""

from pathlib import Path
from typing import Any

from anatomy.chapters.ladder.traffic import traffic as ladder_traffic
from anatomy.chapters.ladder.traffic.calls import FUSED
from tests.fakes import synthetic

CACHE_BYTES = 60 * 2**20
HEADS, WIDTH, LONGEST = 8, 128, 8192


@synthetic.makes("ladder.traffic")
def traffic(root: Path, counted: bool = True, **params: Any) -> Path:
    """A recording of `ladder.traffic`.

    Args:
        root: The folder of recordings.
        counted: Whether the counters could be read.
        params: Of the experiment.
    """
    rows = []
    for cell in ladder_traffic.cells(HEADS, WIDTH, LONGEST):
        shape = {name: cell[name] for name in ("heads", "sequence", "width")}
        way, direction = cell["way"], cell["direction"]
        read, written, passes = ladder_traffic.formula(way, direction, **shape)
        least = sum(ladder_traffic.formula(FUSED, direction, **shape)[:2])
        scores = cell["heads"] * cell["sequence"] ** 2 * ladder_traffic.ITEM
        row = {
            "op": f"{direction} T={cell['sequence']} H={cell['heads']}",
            "variant": way,
            "role": "control" if way == FUSED else "variant",
            "direction": direction,
            **shape,
            "passes": passes,
            "score_bytes": scores,
            "cache_bytes": CACHE_BYTES,
            "formula_read_bytes": read,
            "formula_written_bytes": written,
            "formula_bytes": read + written,
            "formula_over_fused": (read + written) / least,
            "device": "cuda",
        }
        if counted:
            spared = 0.3 if way != FUSED and scores < CACHE_BYTES else 1.0
            seen = {"read_bytes": int(read * spared), "written_bytes": int(written * spared)}
            total = sum(seen.values())
            row |= seen | {"late_bytes": int(min(written, CACHE_BYTES) * spared)}
            row |= {"dram_bytes": total, "dram_low_bytes": int(total * 0.99)}
            row |= {"dram_high_bytes": int(total * 1.01), "kernels": ["gemm", "softmax"]}
            row |= {"over_fused": total / least, "over_formula": spared}
        else:
            row["note"] = "counters not read: ERR_NVGPUCTRPERM"
        rows.append(row)
    return synthetic.record(root, "ladder.traffic", rows, **params)
