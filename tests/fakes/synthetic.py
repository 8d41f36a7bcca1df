"""Synthetic recordings of a machine that does not exist, for tests of everything that reads.

The times follow from a rule that the tests know; the noise is drawn from a fixed seed. They are
saved by `recording.save`, so they pass the same checks as real ones, and they go into a temporary
folder, never under recordings/.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from anatomy import claims
from anatomy.record import recording, signatures
from anatomy.record.provenance.codehash import SCHEME, code_hash
from anatomy.record.showing import Showing
from anatomy.table import columns, formulas, intervals

CHAPTERS = Path(__file__).parents[1] / "chapters"
# Makes up the recording of one call in a folder, and returns its file.
Maker = Callable[..., Path]
MACHINE = "toy-gpu"
BLOCKS = 24
CONTIGUOUS = ("contiguous", "transposed_contig_copy", "contiguous_half")
FLOPS_PER_S = {"fp16": 800e12, "bf16": 790e12, "tf32": 400e12, "fp32": 50e12}
BYTES_PER_S = 4e12
ITEM_BYTES = {"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4}
# Time of a variant over the control's, by operation; the rule that the tests rely on.
SLOWDOWN = {
    "transposed_view": {"matmul": 1.0, "layer_norm": 2.5, "layer_norm_chain": 1.0},
    "sliced_offset_view": {"matmul": 2.0, "layer_norm": 1.05, "layer_norm_chain": 1.1},
    "as_strided_view": {"matmul": 0.65, "layer_norm": 0.8, "layer_norm_chain": 0.6},
    "transposed_contig_copy": {"matmul": 1.0, "layer_norm": 1.0, "layer_norm_chain": 1.0},
    "contiguous_half": {"matmul": 0.5, "layer_norm": 0.5, "layer_norm_chain": 0.5},
}
KERNELS = {
    "matmul": ["sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1"],
    "layer_norm": [
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>"
        "(int, float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*)"
    ],
    "layer_norm_chain": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half>>(...)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl>(int, ...)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl>(int, ...)",
    ],
}


def record(root: Path, name: str, rows: list[dict], **params: Any) -> Path:
    """Save rows as the recording of one call on the toy machine."""
    assert not columns.undeclared(name, [column for row in rows for column in row])
    wanted = signatures.signature(name).bind(**params)
    hashed = code_hash(name, wanted)
    compared_rows = [row for row in rows if row.get("noise_floor") is not None]
    floors = {f"{row['op']} {row['quantity']}": row["noise_floor"] for row in compared_rows}
    reading = {"sm_clock_mhz": 1755, "memory_clock_mhz": 3201, "power_w": 402.5}
    reading["temperature_c"] = 41
    return recording.save(
        {
            "experiment": name,
            "params": wanted,
            "machine": {
                "slug": recording.on_several(MACHINE, wanted),
                "gpu": "Toy GPU",
                "count": wanted.get("world_size", 1),
                "capability": "9.0",
                "sm_count": 4,
                "memory_bytes": 2**33,
                "l2_bytes": 2**22,
                "card": "0123456789ab",
                "driver": "580.1",
                "power_limit_w": 700.0,
                "max_memory_clock_mhz": 3201,
                "max_sm_clock_mhz": 1980,
                "cpu": "Toy CPU",
            },
            "software": {"python": "3.12.1", "torch": "2.13.0+cu130", "cuda": "13.0"},
            "method": {"blocks": BLOCKS},
            "code": {
                "hash": hashed.hash,
                "scheme": SCHEME,
                "files": list(hashed.files),
                "commit": "0123456789abcdef",
                "dirty": False,
            },
            "started_at": "2026-11-21T10:00:00+00:00",
            "seconds": 12.5,
            "conditions": {"before": reading, "after": reading | {"power_w": 655.0}},
            "noise_floor": floors,
            "rows": rows,
            "warnings": [],
        },
        root,
    )


def compared(
    op: str,
    quantity: str,
    base_s: float,
    slowdowns: dict[str, float],
    *,
    control: str = "contiguous",
    against: dict[str, str] | None = None,
    seed: int = 0,
    **common: Any,
) -> list[dict]:
    """Rows as `compare` makes them: interleaved blocks around `base_s` times a slowdown."""
    noise = np.random.default_rng(seed)
    drift = 1 + 0.01 * noise.standard_normal(BLOCKS)
    names = [control, *slowdowns, f"{control} (again)"]
    factors = [1.0, *slowdowns.values(), 1.0]
    blocks = {
        name: base_s * factor * drift * (1 + 0.002 * noise.standard_normal(BLOCKS))
        for name, factor in zip(names, factors, strict=True)
    }
    floor = intervals.noise_floor(
        intervals.ratio_interval(blocks[f"{control} (again)"], blocks[control])
    )
    rows = []
    for name in names:
        middle = intervals.median_interval(blocks[name])
        facing = (against or {}).get(name, control)
        row = {
            "op": op,
            "variant": name,
            "role": "control" if name == control else "again" if "again" in name else "variant",
            "control": None if name == control else facing,
            "quantity": quantity,
            "median_s": middle.median,
            "low_s": middle.low,
            "high_s": middle.high,
            "samples": 10 * BLOCKS,
            "blocks_s": [float(f"{value:.6g}") for value in blocks[name]],
            "noise_floor": floor,
            "ratio": None,
            "verdict": "control",
            "throttle": "power-limited" if op == "matmul" else "none",
            "regime": "kernel-bound",
            "wide": False,
            "launch_inclusive": False,
            "sm_clock_mhz": 1700.0 + 5 * len(rows),
            "power_w": 640.0,
            "temperature_c": 44.0,
            "note": None,
            "kernels": ["toy_kernel"],
            "kernels_per_call": 1,
        } | common
        if name != control:
            ratio = intervals.ratio_interval(blocks[name], blocks[facing])
            row |= {"ratio": ratio.median, "ratio_low": ratio.low, "ratio_high": ratio.high}
            row["verdict"] = (
                "again" if row["role"] == "again" else intervals.verdict(ratio, floor, processes=3)
            )
        rows.append(row)
    return rows


def timed(
    op: str,
    quantity: str,
    seconds: Mapping[str, float],
    own: Mapping[str, Mapping[str, Any]] | None = None,
    **common: Any,
) -> list[dict]:
    """Rows as `compared` makes them, of so many seconds for each variant, the first of which is the
    control; `own` are columns of single variants."""
    control, *others = seconds
    slower = {name: seconds[name] / seconds[control] for name in others}
    rows = compared(op, quantity, seconds[control], slower, control=control, **common)
    return [row | (own or {}).get(row["variant"].removesuffix(" (again)"), {}) for row in rows]


def as_said(rows: Iterable[dict]) -> list[dict]:
    """Rows of no comparison, which are read as they stand: an edit may say what no block says."""
    return [{n: value for n, value in row.items() if n != "launch_inclusive"} for row in rows]


def bench(root: Path, dtype: str = "fp16", size: int = 4096) -> Path:
    """A recording of `contiguity.bench` for square matrices."""
    rows, item = [], ITEM_BYTES[dtype]
    for number, op in enumerate(("matmul", "layer_norm", "layer_norm_chain")):
        moved = formulas.layer_norm_bytes(size, size, item)
        work = formulas.matmul_flops(size, size, size)
        passes = 6 if op == "layer_norm_chain" else 1
        base = work / FLOPS_PER_S[dtype] if op == "matmul" else passes * moved / BYTES_PER_S
        for quantity in ("gpu_warm", "gpu_cold"):
            rows += compared(
                op,
                quantity,
                base * (1.05 if quantity == "gpu_cold" else 1.0),
                {name: by_op[op] for name, by_op in SLOWDOWN.items()},
                against={"as_strided_view": "contiguous_half"},
                seed=number,
                flops=work if op == "matmul" else None,
                bytes=formulas.matmul_bytes(size, size, size, item) if op == "matmul" else moved,
                limit=f"matmul {dtype}" if op == "matmul" else "copy",
                kernels=KERNELS[op],
                kernels_per_call=len(KERNELS[op]),
            )
    return record(root, "contiguity.bench", rows, dtype=dtype, m=size, n=size, k=size)


def layouts(root: Path, **params: Any) -> Path:
    """A recording of `tensor_layout.report`, which has no times."""
    size = params.get("k", 4096)
    offset = {"sliced_offset_view": 1}
    rows = [
        {
            "variant": name,
            "shape": [size, size],
            "strides": [1, size] if name == "transposed_view" else [size, 1],
            "storage_offset": offset.get(name, 0),
            "offset_bytes": 2 * offset.get(name, 0),
            "base_mod_128": 2 * offset.get(name, 0),
            "ld_bytes": 2 * size,
            "is_contiguous": name in CONTIGUOUS,
            "is_view": name not in CONTIGUOUS,
            "blas": "T" if name == "transposed_view" else "N",
        }
        for name in ("contiguous", *SLOWDOWN)
    ]
    return record(root, "tensor_layout.report", rows, **params)


def check(root: Path, **params: Any) -> Path:
    """A recording of `tensor_layout.check`."""
    rows = [
        {"variant": name, "is_contiguous": name in CONTIGUOUS, "alignment": "ok"}
        for name in ("contiguous", *SLOWDOWN)
    ]
    return record(root, "tensor_layout.check", rows, **params)


def _aligned(
    op: str, slowdowns: dict[str, float], dtype: str = "fp16", m: int = 4096, **_: Any
) -> list[dict]:
    """Rows of an operation on places in a buffer, its control called `aligned`."""
    size, item = 4096, ITEM_BYTES[dtype]
    product = op == "matmul"
    work = formulas.matmul_flops(m, size, size)
    moved = formulas.pointwise_bytes(m * size, item)
    return compared(
        op,
        "gpu_cold",
        work / FLOPS_PER_S[dtype] if product else moved / BYTES_PER_S,
        slowdowns,
        control="aligned",
        flops=work if product else None,
        bytes=moved,
        limit=f"matmul {dtype}" if product else "copy",
        kernels=KERNELS["matmul" if product else "layer_norm"],
        kernels_per_call=1,
    )


def factorial(root: Path, op: str = "matmul", **params: Any) -> Path:
    """A recording of `alignment.factorial`: base, ld and K alone are enough to be slow."""
    names = ("base", "ld", "base+ld", "K", "base+K", "ld+K", "base+ld+K")
    rows = _aligned(op, dict.fromkeys(names, 2.0) | {"padded": 1.0}, **params)
    return record(root, "alignment.factorial", rows, op=op, **params)


def thresholds(root: Path, op: str = "matmul", **params: Any) -> Path:
    """A recording of `alignment.thresholds`: K costs below 16 bytes, nothing else does."""
    slowdowns = {
        f"{factor} {step} B": 2.0 if factor == "k" and step < 16 else 1.0
        for step in (2, 4, 8, 16, 32, 64, 128)
        for factor in ("base", "ld", "k")
        if step >= ITEM_BYTES[params.get("dtype", "fp16")]
    }
    rows = _aligned(op, slowdowns, **params)
    for row in rows:
        factor, _, step = row["variant"].removesuffix(" B").partition(" ")
        swept = step.isdigit()
        row["factor"] = factor if swept else "aligned"
        row["alignment_bytes"] = int(step) if swept else None
    return record(root, "alignment.thresholds", rows, op=op, **params)


def payback(root: Path, **params: Any) -> Path:
    """A recording of `remedies.payback`: zero-padding pays after three uses, nothing else does."""
    ways = {
        "sliced_offset_view": ("contiguous copy", "padded copy", "zero-padded copy"),
        "transposed_view": ("contiguous copy",),
        "as_strided_view": ("contiguous copy",),
    }
    labels = {}
    for case, remedies in ways.items():
        labels[f"{case} use"] = (case, "none", "use")
        for remedy in remedies:
            labels[f"{case} {remedy} copy"] = (case, remedy, "copy")
            labels[f"{case} {remedy} use"] = (case, remedy, "use")
    seconds = {name: 1e-4 if "zero-padded" in name else 2e-4 for name in labels}
    rows = timed("matmul", "gpu_cold", seconds, limit="matmul fp16")
    for row in rows:
        case, remedy, step = labels[row["variant"].removesuffix(" (again)")]
        used = remedy != "none" and step == "use"
        pays = "zero-padded" in remedy if used else None
        row |= {"case": case, "remedy": remedy, "step": step, "pays": pays}
        row |= {"op": "copy" if step == "copy" else "matmul"}
        row |= dict.fromkeys(("uses", "uses_low", "uses_high"), 3.0 if pays else None)
    return record(root, "remedies.payback", rows, **params)


def compiled(root: Path, **params: Any) -> Path:
    """A recording of `remedies.compiled`: compiling mends K."""
    places = ("aligned", "base", "ld", "K", "base+K")
    ways = ("eager", "compiled", "compiled, no padding")
    names = [f"{place}, {way}" for place in places for way in ways]
    seconds = {n: 2e-4 if "aligned" in n or "K, compiled" in n else 4e-4 for n in names}
    work = {"flops": formulas.matmul_flops(4096, 4096, 4096), "limit": "matmul fp16"}
    work["kernels"] = ["triton_poi_fused_constant_pad_nd_0", *KERNELS["matmul"]]
    rows = timed("matmul", "gpu_cold", seconds, **work, kernels_per_call=2)
    for name in ("compiler", *names):
        if "compile" in name:
            first = {"op": "first call", "variant": name, "role": "variant", "median_s": 1.5}
            rows.append(first | {"quantity": "step_wall", "samples": 1, "blocks_s": [1.5]})
    for row in rows:
        row["layout"], _, row["way"] = row["variant"].removesuffix(" (again)").partition(", ")
    return record(root, "remedies.compiled", rows, **params)


def _bench_of(root: Path, **params: Any) -> Path:
    return bench(root, params.get("dtype", "fp16"), params.get("m", 4096))


class _Makers(dict):
    """What makes up a recording, by experiment; a chapter's own is looked for where it is asked."""

    def __missing__(self, name: str) -> Maker:
        for path in CHAPTERS.rglob("*.py"):
            if f'@synthetic.makes("{name}")' in path.read_text(encoding="utf-8"):
                # By its full name, because it makes its recordings with this module.
                place = path.relative_to(CHAPTERS).with_suffix("")
                import_module(".".join(("tests.chapters", *place.parts)))
                return self[name]
        raise KeyError(f"Nothing makes up recordings of {name}: say `@synthetic.makes` of it.")


def makes(name: str) -> Callable[[Maker], Maker]:
    """Say of a function in tests/chapters/ that it makes up recordings of an experiment."""

    def declare(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return declare


MAKERS = _Makers(
    {
        "contiguity.bench": _bench_of,
        "tensor_layout.report": layouts,
        "tensor_layout.check": check,
        "alignment.factorial": factorial,
        "alignment.thresholds": thresholds,
        "remedies.payback": payback,
        "remedies.compiled": compiled,
    }
)


def everything(root: Path) -> Path:
    """The recordings that the tests' own pages show."""
    for dtype in FLOPS_PER_S:
        for size in (2048, 4096, 8192):
            bench(root, dtype, size)
    layouts(root)
    thresholds(root)
    for name in ("limits.ceilings", "limits.bandwidth", "limits.floors"):
        MAKERS[name](root)
    return root


@cache
def shared() -> Path:
    """A folder with `everything`, made once in a test run. Tests that write make their own."""
    _kept.append(TemporaryDirectory(prefix="anatomy-synthetic-"))
    return everything(Path(_kept[-1].name))


_kept: list[TemporaryDirectory] = []


def showing(root: Path | None = None, **given: Any) -> Showing:
    """A page that shows synthetic recordings."""
    return Showing(root=root or shared(), machine=MACHINE, **{"page": "page.md"} | given)


def verdict(root: Path, name: str) -> claims.Result:
    """The verdict on a claim, of the recordings in a folder."""
    return claims.evaluate(showing(root), name)
