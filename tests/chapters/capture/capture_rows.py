"""Made-up recordings of graph capture: what six ways make of functions, and what calls cost."""

from pathlib import Path
from typing import Any

from anatomy.chapters.capture.capture import ways
from tests.fakes import synthetic

RIGHT, BREAK, WRONG, LOST, ERROR = "right", "graph break", "wrong answer", "print lost", "error"
# By function, in the order of the ways: eager, trace, script, fx, export, compile.
OUTCOMES = {
    "if on a tensor": (RIGHT, WRONG, RIGHT, ERROR, ERROR, BREAK),
    "while on a tensor": (RIGHT, WRONG, RIGHT, ERROR, ERROR, BREAK),
    "if on a shape": (RIGHT, WRONG, RIGHT, ERROR, ERROR, RIGHT),
    ".item()": (RIGHT, WRONG, RIGHT, RIGHT, RIGHT, BREAK),
    "global that changes": (RIGHT, WRONG, ERROR, WRONG, WRONG, RIGHT),
    "print": (RIGHT, LOST, RIGHT, LOST, LOST, BREAK),
    "NumPy": (RIGHT, WRONG, ERROR, ERROR, ERROR, RIGHT),
    "list of functions": (RIGHT, RIGHT, ERROR, RIGHT, RIGHT, RIGHT),
}
OLD = ("jit.trace", "jit.script")
# Time over eager's, by input and way.
OTHERS = ("jit.trace", "jit.script", "fx.symbolic_trace", "export", "compile")
RATIOS = {
    "small input": dict(zip(OTHERS, (0.9, 0.9, 1.1, 3.0, 0.8), strict=True)),
    "large input": dict(zip(OTHERS, (0.3, 0.3, 1.0, 1.0, 0.25), strict=True)),
}
EAGER_S = {"small input": 3e-5, "large input": 9e-4}
KERNEL = """\
def triton_poi_fused_cos_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 100000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl_math.cos(tmp0)
    tmp2 = tl_math.cos(tmp1)
    tl.store(out_ptr0 + (x0), tmp2, xmask)"""
CALL = """\
def call(self, args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (100000, ), (1, ))
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((100000, ), (1, ), torch.float32)
        stream0 = get_raw_stream(0)
        triton_poi_fused_cos_0.run(arg0_1, buf0, 100000, stream=stream0)
    return (buf0, )"""


@synthetic.makes("capture.catalogue")
def catalogue(root: Path, deprecated: bool = True, **params: Any) -> Path:
    """A recording of `capture.catalogue`; `deprecated` is whether TorchScript says so."""
    rows = []
    for op, outcomes in OUTCOMES.items():
        for way, outcome in zip(ways().WAYS, outcomes, strict=True):
            told = {"op": op, "variant": way, "device": "cuda", "outcome": outcome}
            late = op == "if on a shape" and way == "export"
            told |= {"failed_at": ("call" if late else "capture") if outcome == ERROR else None}
            told |= {"error": "TraceError: a branch on data" if outcome == ERROR else None}
            told |= {"breaks": int(outcome == BREAK) if way == "compile" else None}
            rows.append(told | {"deprecated": deprecated and way in OLD})
    return synthetic.record(root, "capture.catalogue", rows, **params)


@synthetic.makes("capture.calls")
def calls(root: Path, **params: Any) -> Path:
    """A recording of `capture.calls`: who fuses is fast where tensors are large."""
    rows = []
    for op, ratios in RATIOS.items():
        how = {"bytes": 2**29, "limit": "copy"} if op == "large input" else {}
        seconds = {"eager": EAGER_S[op]} | {way: EAGER_S[op] * over for way, over in ratios.items()}
        rows += synthetic.timed(op, "step_wall", seconds, **how)
    for row in rows:
        row["setup_s"] = None if row["variant"].startswith("eager") else 0.5
    return synthetic.record(root, "capture.calls", rows, **params)


@synthetic.makes("capture.code")
def code(root: Path, kernel: str = KERNEL, **params: Any) -> Path:
    """A recording of `capture.code`."""
    told = {"op": "x.cos().cos()", "device": "cuda", "note": None}
    rows = [told | {"variant": part, "generated": text}
            for part, text in {"kernel": kernel, "call": CALL}.items()]  # fmt: skip
    return synthetic.record(root, "capture.code", rows, **params)
