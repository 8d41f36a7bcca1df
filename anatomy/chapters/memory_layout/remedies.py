"""What it costs to make a badly laid out matrix a good one, and when that pays: by `.contiguous()`,
which keeps odd rows at odd distances, a padded copy, or a K made even with zeros in B."""

from collections.abc import Callable
from typing import Literal

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.memory_layout import requirements
from anatomy.chapters.memory_layout.tensor_layout import layouts
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.cache import rotation
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED, ALLOWED_TF32
from anatomy.parts import grid, memory
from anatomy.parts.compiled import without_caches
from anatomy.parts.repeats import least_calls
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment
from anatomy.table import formulas, intervals

ROW_BYTES = 128  # rows of a padded copy begin at multiples of this many bytes
NONE = "none"  # the remedy of a layout that is used as it is
REMEDIES = ("sliced_offset_view", "transposed_view", "as_strided_view")  # layouts that have some
COMPILED = ("aligned", "base", "ld", "K", "base+K")  # layouts that are compiled
# Way to run a product -> options of torch.compile; eager has none.
WAYS = {
    "eager": None,
    "compiled": {"shape_padding": True},
    "compiled, no padding": {"shape_padding": False},
}


@experiment("remedies.payback", page="benchmarks/contiguity_deep_dive.md", timeout_s=300)
def payback(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    n: Length = 4096,
    k: Length = 4096,
    iters: Count = 100,
) -> pd.DataFrame:
    """Count the uses after which a copy into a better layout has paid for itself.

    Args:
        k: Columns K of A, the reduction; the sliced view has one less.
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms.

    Returns:
        One row per layout (`case`), `remedy` and `step`. A `use` row with a remedy has `uses`:
        products after which copying once is cheaper than never, from the same blocks.
    """
    where = formats.torch_device(device)
    return grid.measure_cells(
        [{"op": "matmul"}],
        lambda cell: _payback(where, dtype, m, n, k, iters),
        variants=[f"{case} use" for case in REMEDIES],
        quantity="gpu_cold",
        where=where,
        required=requirements.payback(memory.capacity(where), dtype, m, n, k),
    )


def _payback(where, dtype, m, n, k, iters) -> pd.DataFrame:
    size = formats.itemsize(dtype)
    sets = rotation(m * k * size, where)
    kind = formats.storage(dtype)
    made = []
    for _ in range(sets):
        views = layouts(m, k, dtype, where)
        b = F.pad(torch.randn(k - 1, n, dtype=kind, device=where), (0, 0, 0, 1))  # last row 0
        made.append(_steps(views, torch.randn(k, n, dtype=kind, device=where), b))
    labels = list(made[0])
    product, copy = formulas.matmul_flops, formulas.copy_bytes
    columns = {label: made[0][label]["columns"] for label in labels}
    used = [label for label in labels if label[2] == "use"]
    names = {label: " ".join(word for word in label if word != NONE) for label in labels}
    with formats.products_in(dtype), torch.inference_mode():
        first = [made[0][label]["call"] for label in labels]
        result = compare(
            {names[label]: [steps[label]["call"] for steps in made] for label in labels},
            reference={names[label]: made[0][label]["exact"] for label in labels},
            allowed=ALLOWED_TF32 if dtype == "tf32" else ALLOWED[kind],
            against={names[key]: names[(key[0], NONE, "use")] for key in labels if key[1] != NONE},
            op="matmul",
            flops={names[label]: product(m, n, columns[label]) for label in used},
            bytes={
                names[label]: copy(m * columns[label], size)
                if label[2] == "copy"
                else formulas.matmul_bytes(m, n, columns[label], size)
                for label in labels
            },
            limit={
                n_: "copy" if key[2] == "copy" else f"matmul {dtype}" for key, n_ in names.items()
            },
            device=where,
            iters=least_calls(iters, first, stopwatch_for(where)),
        )
    return _with_break_even(result.table, {name: label for label, name in names.items()})


def _steps(views: dict[str, Tensor], b: Tensor, b_zero: Tensor) -> dict:
    """For each (case, remedy, step) the call, the exact result, and the columns it works on; the
    last row of `b_zero`, which is (K, N) as `b` is, has zeros, for the sliced view."""
    steps = {}

    def add(case: str, remedy: str, step: str, call, exact, columns: int) -> None:
        steps[case, remedy, step] = {"call": call, "exact": exact, "columns": columns}

    remedies: dict[str, dict[str, Callable[[Tensor], Tensor]]] = {
        "sliced_offset_view": {
            "contiguous copy": Tensor.contiguous,
            "padded copy": padded_copy,
            "zero-padded copy": lambda a: F.pad(a, (0, 1)),
        },
        "transposed_view": {"contiguous copy": Tensor.contiguous},
        "as_strided_view": {"contiguous copy": Tensor.contiguous},
    }
    for case, ways in remedies.items():
        view = views[case]
        factor = b_zero if case == "sliced_offset_view" else b
        cut = factor[: view.shape[1]]
        exact = _exact_product(view, cut)
        add(case, NONE, "use", _product(view, cut), exact, view.shape[1])
        for remedy, way in ways.items():
            copied = way(view)
            add(case, remedy, "copy", _apply(way, view), _exact_copy(copied), view.shape[1])
            partner = factor[: copied.shape[1]]
            add(case, remedy, "use", _product(copied, partner), exact, view.shape[1])
    return steps


def padded_copy(a: Tensor) -> Tensor:
    """A copy of `a` (M, K) with the same K whose rows begin at multiples of 128 bytes."""
    rows, columns = a.shape
    per_line = ROW_BYTES // a.element_size()
    ld = -(-columns // per_line) * per_line
    copied = a.new_empty(rows, ld)[:, :columns]  # (M, K), strides (ld, 1)
    return copied.copy_(a)


def _product(a: Tensor, b: Tensor) -> Callable[[], Tensor]:
    return lambda: a @ b  # (M, K) @ (K, N) -> (M, N)


def _apply(way: Callable[[Tensor], Tensor], view: Tensor) -> Callable[[], Tensor]:
    return lambda: way(view)


def _exact_product(a: Tensor, b: Tensor) -> Callable[[], Tensor]:
    return lambda: a.to(torch.float64) @ b.to(torch.float64)


def _exact_copy(copied: Tensor) -> Callable[[], Tensor]:
    return lambda: copied.to(torch.float64)


def _with_break_even(table: pd.DataFrame, labels: dict[str, tuple]) -> pd.DataFrame:
    label = [labels[name.removesuffix(" (again)")] for name in table.variant]
    table = table.assign(
        case=[case for case, _, _ in label],
        remedy=[remedy for _, remedy, _ in label],
        step=[step for _, _, step in label],
        op=["copy" if step == "copy" else "matmul" for _, _, step in label],
    )
    blocks = dict(zip(label, table.blocks_s, strict=True))
    uses, pays = [], []
    for row in table.itertuples():
        if row.remedy == NONE or row.step == "copy" or row.role == "again":
            uses.append((None, None, None))
            pays.append(None)
            continue
        found = intervals.break_even(
            blocks[row.case, row.remedy, "copy"],
            blocks[row.case, NONE, "use"],
            blocks[row.case, row.remedy, "use"],
        )
        pays.append({"faster": True, "undecided": None}.get(row.verdict, False))
        known = (found.median, found.low, found.high) if pays[-1] else (None, None, None)
        uses.append(tuple(None if x == float("inf") else x for x in known))
    table["pays"] = pays
    table[["uses", "uses_low", "uses_high"]] = uses
    return table


@experiment("remedies.compiled", page="benchmarks/contiguity_deep_dive.md", timeout_s=400)
def compiled(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    n: Length = 4096,
    k: Length = 4096,
    iters: Count = 60,
) -> pd.DataFrame:
    """See what torch.compile makes of a matrix product whose operand is badly aligned.

    Returns:
        One row per `layout` of A and `way`: `eager`, the control; `compiled`; `compiled, no
        padding`, with the option shape_padding off. Rows of op `first call`, as step_wall: the
        first compiled call without the compiler's caches, one sample each; `compiler` is an
        addition compiled before all others, which starts the compiler.
    """
    where = formats.torch_device(device)
    return grid.measure_cells(
        [{"op": "matmul"}],
        lambda cell: _compiled_layouts(where, dtype, m, n, k, iters),
        variants=[f"{layout}, {way}" for layout in COMPILED for way in WAYS],
        quantity="gpu_cold",
        where=where,
        required=requirements.compiled(memory.capacity(where), dtype, m, n, k),
    )


def _compiled_layouts(where, dtype, m, n, k, iters) -> pd.DataFrame:
    size = formats.itemsize(dtype)
    kind = formats.storage(dtype)
    buffer = torch.randn(m * (k + 1) + 1, dtype=kind, device=where)
    b = torch.randn(k, n, dtype=kind, device=where)  # (K, N)
    operands = {
        "aligned": (buffer.as_strided((m, k), (k, 1)), b),
        "base": (buffer.as_strided((m, k), (k, 1), 1), b),
        "ld": (buffer.as_strided((m, k), (k + 1, 1)), b),
        "K": (buffer.as_strided((m, k - 1), (k, 1)), b[:-1]),
        "base+K": (buffer.as_strided((m, k - 1), (k, 1), 1), b[:-1]),  # the seed's sliced view
    }
    watch = stopwatch_for(where)
    first_calls, variants, against = [], {}, {}
    with formats.products_in(dtype), torch.inference_mode(), without_caches():
        warm_up = _compiled(torch.add, b, b, {})
        first_calls.append(_first_call("compiler", "any", "compiled", watch.wall([warm_up])))
        for layout, (a, cut) in operands.items():
            for way, options in WAYS.items():
                name = f"{layout}, {way}"
                if options is None:
                    variants[name] = _product(a, cut)
                    continue
                variants[name] = _compiled(torch.matmul, a, cut, options)
                against[name] = f"{layout}, eager"
                seconds = watch.wall([variants[name]])
                first_calls.append(_first_call(name, layout, way, seconds))
        columns = {name: operands[name.split(", ")[0]][0].shape[1] for name in variants}
        table = compare(
            variants,
            against=against | {f"{x}, eager": "aligned, eager" for x in list(operands)[1:]},
            reference={name: _exact_product(*operands[name.split(", ")[0]]) for name in variants},
            allowed=ALLOWED_TF32 if dtype == "tf32" else ALLOWED[kind],
            op="matmul",
            flops={name: formulas.matmul_flops(m, n, c) for name, c in columns.items()},
            bytes={name: formulas.matmul_bytes(m, n, c, size) for name, c in columns.items()},
            limit=f"matmul {dtype}",
            device=where,
            iters=iters,
        ).table
    parts = table.variant.str.removesuffix(" (again)").str.split(", ", n=1, expand=True)
    table = table.assign(layout=parts[0], way=parts[1])
    return pd.concat([table, pd.DataFrame(first_calls)], ignore_index=True)


def _compiled(function, a: Tensor, b: Tensor, options: dict) -> Callable[[], Tensor]:
    torch.compiler.reset()  # else the second way would reuse the first one's graph
    run = torch.compile(function, options=options, dynamic=False)
    return lambda: run(a, b)


def _first_call(name: str, layout: str, way: str, seconds: float) -> dict:
    return {
        "op": "first call",
        "variant": name,
        "role": "variant",
        "layout": layout,
        "way": way,
        "quantity": "step_wall",
        "median_s": seconds,
        "samples": 1,
        "blocks_s": [seconds],
        "method": "host clock around the first call and a synchronize",
    }
