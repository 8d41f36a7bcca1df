"""Made-up recordings of torch.compile: what is small gains from it, what is large does not."""

from pathlib import Path
from typing import Any

from anatomy.table import intervals
from tests.fakes import synthetic

WIDTHS, TOKENS = (256, 1024, 4096), (256, 4096)
GRAPH_CELLS = ((256, 256), (4096, 256), (4096, 4096))
# Seconds of an eager step and of the first calls, by task.
STEP_S = {"training": 1e-3, "inference": 3e-4}
SETUP_S = {"training": 4.0, "inference": 1.5}
# Time over eager, by way and tokens.
RATIO = {"compiled": {256: 0.6, 4096: 1.0}, "reduce-overhead": {256: 0.3, 4096: 1.0}}
# Bytes of a step, by way.
PEAK_BYTES = {"eager": 2**30, "compiled": 2**30, "reduce-overhead": None}
RESERVED_BYTES = {"eager": 2**31, "compiled": 2**31, "reduce-overhead": 2**32}
# Seconds of an unbroken step and of one break, by chain; one chain is held up by its kernels.
CHAINS = {
    "small products": (1e-4, 2e-5),
    "large products": (4e-3, 0.0),
    "large elementwise": (4e-4, 1e-4),
}
LAYERS = (
    *(("few kernels", "bf16", 1024, 32768), ("written out", "bf16", 1024, 32768)),
    *(("few kernels", "amp bf16", 1024, 32768), ("written out", "amp bf16", 1024, 32768)),
    ("written out", "bf16", 256, 256),
)
LAYER_RATIO = {"few kernels": 1.0, "written out": 0.6}
BREAKS = (0, 1, 4, 16)
# Function -> breaks, and whether fullgraph=True raises.
DETECTED = {
    "if on a tensor": (1, True),
    "print of a text": (1, True),
    "print of a tensor": (1, True),
    ".item()": (1, False),
    "mask of unknown size": (1, False),
    "logging call": (1, True),
    "graph_break()": (1, True),
    "torch.where instead of if": (0, False),
    "assert on a tensor": (0, False),
    "if on a shape": (0, False),
    "if on a flag": (0, False),
    "loop of known length": (0, False),
}
OPTIONS = {
    "default": "none",
    "reduce-overhead": "triton.cudagraphs=True",
    "max-autotune-no-cudagraphs": "max_autotune=True",
    "max-autotune": "max_autotune=True, triton.cudagraphs=True",
}
# Way -> compilations of 12 lengths, the limit, and calls that ran uncompiled.
COMPILED = {
    "automatic": (2, 8, 0),
    "static": (8, 8, 4),
    "dynamic": (1, 8, 0),
    "marked": (1, 8, 0),
    "static, higher limit": (12, 24, 0),
}


@synthetic.makes("compilation.map")
def cells(root: Path, task: str = "training", **params: Any) -> Path:
    """A recording of `compilation.map`."""
    rows = [_first("compiler", {}, 2.0)]
    for seed, (width, tokens) in enumerate((w, t) for t in TOKENS for w in WIDTHS):
        ways = ["compiled", *(["reduce-overhead"] if (width, tokens) in GRAPH_CELLS else [])]
        table = synthetic.compared(
            f"{task} C={width} T={tokens}",
            "step_wall",
            STEP_S[task] * width * tokens / 2**16,
            {way: RATIO[way][tokens] for way in ways},
            control="eager",
            seed=seed,
            width=width,
            tokens=tokens,
        )
        blocks = {row["variant"]: row["blocks_s"] for row in table}
        for row in table:
            way = row["variant"].removesuffix(" (again)")
            row |= {"peak_bytes": PEAK_BYTES[way], "total_peak_bytes": PEAK_BYTES[way]}
            row["busy_s"] = None if way == "reduce-overhead" else 0.9 * row["median_s"]
            row |= {"enqueue_s": 0.3 * row["median_s"], "kernels_per_call": 40}
            row |= {"reserved_bytes": RESERVED_BYTES[way], "setup_s": None, "pays": None}
            row |= dict.fromkeys(("uses", "uses_low", "uses_high"))
            if way == "eager":
                continue
            row |= {"setup_s": SETUP_S[task], "pays": row["verdict"] == "faster"}
            if row["pays"]:
                found = intervals.break_even(SETUP_S[task], blocks["eager"], row["blocks_s"])
                row |= {"uses": found.median, "uses_low": found.low, "uses_high": found.high}
        here = {"width": width, "tokens": tokens}
        rows += table + [_first(way, here, SETUP_S[task] + 0.1 * seed) for way in ways]
    for row in rows:
        row |= {"task": task, "dtype": "bf16"}
    return synthetic.record(root, "compilation.map", rows, task=task, **params)


@synthetic.makes("compilation.layers")
def layers(root: Path, **params: Any) -> Path:
    """A recording of `compilation.layers`: what is written out gains, what is not does not."""
    rows = []
    for seed, (layer, dtype, width, tokens) in enumerate(LAYERS):
        at = f"C={width} B={max(1, tokens // 1024)} T={min(tokens, 1024)}"
        table = synthetic.compared(
            f"training {layer}, {dtype}, {at}",
            "step_wall",
            5e-3,
            {"compiled": LAYER_RATIO[layer]},
            control="eager",
            seed=seed,
            layer=layer,
            dtype=dtype,
            width=width,
            tokens=tokens,
            task="training",
            peak_bytes=2**30,
            reserved_bytes=2**31,
            setup_s=4.0,
        )
        rows += [row | {"busy_s": 0.9 * row["median_s"], "uses": None} for row in table]
    return synthetic.record(root, "compilation.layers", rows, **params)


def _first(way: str, columns: dict, seconds: float) -> dict:
    name = f"{way}, first call{'s' * (way != 'compiler')}"
    first = {"op": "first call", "variant": name, "role": "variant", "quantity": "step_wall"}
    return first | {"median_s": seconds, "samples": 1, "blocks_s": [seconds]} | columns


@synthetic.makes("compilation.breaks")
def breaks(root: Path, **params: Any) -> Path:
    """A recording of `compilation.breaks`."""
    rows = []
    for seed, (chain, (step_s, break_s)) in enumerate(CHAINS.items()):
        slower = {f"{n} break{'s' * (n != 1)}": 1 + n * break_s / step_s for n in BREAKS[1:]}
        table = synthetic.compared(
            chain, "step_wall", step_s, slower | {"eager": 1.5}, control="0 breaks", seed=seed
        )
        for row in table:
            number = row["variant"].partition(" ")[0]
            count = int(number) if number.isdigit() else None
            row |= {"chain": chain, "breaks": count, "graphs": None if count is None else count + 1}
            last = count == BREAKS[-1]
            row["bytes"] = 2**28 if chain == "large elementwise" else None
            row["break_s"] = break_s if last else None
            row["break_low_s"] = 0.9 * break_s if last else None
            row["break_high_s"] = 1.1 * break_s if last else None
        rows += table
    return synthetic.record(root, "compilation.breaks", rows, **params)


@synthetic.makes("compilation.recompiles")
def recompiles(root: Path, **params: Any) -> Path:
    """A recording of `compilation.recompiles`."""
    rows = [
        {
            "variant": way,
            "lengths": 12,
            "compilations": count,
            "recompile_limit": limit,
            "calls_without_graph": bare,
            "first_s": 0.3,
            "total_s": 0.3 * count,
        }
        for way, (count, limit, bare) in COMPILED.items()
    ]
    return synthetic.record(root, "compilation.recompiles", rows, **params)


@synthetic.makes("compilation.detection")
def detection(root: Path, **params: Any) -> Path:
    """A recording of `compilation.detection`."""
    rows = [
        {
            "variant": name,
            "graphs": count + 1,
            "breaks": count,
            "reason": "told" if count else None,
            "fullgraph": "raises" if raises else "compiles",
            "error": "Unsupported: told" if raises else None,
        }
        for name, (count, raises) in DETECTED.items()
    ]
    return synthetic.record(root, "compilation.detection", rows, **params)


@synthetic.makes("compilation.modes")
def modes(root: Path, **params: Any) -> Path:
    """A recording of `compilation.modes`."""
    rows = [
        {
            "variant": mode,
            "options": options,
            "option_count": 0 if options == "none" else options.count(",") + 1,
            "cudagraphs": "cudagraphs" in options,
            "max_autotune": "max_autotune" in options,
            "tied_to": "neither",
        }
        for mode, options in OPTIONS.items()
    ]
    return synthetic.record(root, "compilation.modes", rows, **params)
