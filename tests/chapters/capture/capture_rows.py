"""Made-up recordings of graph capture: what six ways make of functions, and what calls cost."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

RIGHT, BREAK, WRONG, LOST, ERROR = "right", "graph break", "wrong answer", "print lost", "error"
WAYS = ("eager", "jit.trace", "jit.script", "fx.symbolic_trace", "export", "compile")
# By function, in the order of the ways.
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
# Seconds by input, in the order of the ways.
TIMES = {"small input": (3e-5, 2.7e-5, 2.7e-5, 3.3e-5, 9e-5, 2.4e-5)}
TIMES["large input"] = (9e-4, 2.7e-4, 2.7e-4, 9e-4, 9e-4, 2.2e-4)
KERNEL = """\
def triton_poi_fused_cos_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl_math.cos(tmp0)
    tmp2 = tl_math.cos(tmp1)
    tl.store(out_ptr0 + (x0), tmp2, xmask)"""
CALL = """\
def call(self, args):
    with torch.cuda._DeviceGuard(0):
        triton_poi_fused_cos_0.run(arg0_1, buf0, 100000, stream=stream0)
    return (buf0, )"""


@synthetic.makes("capture.catalogue")
def catalogue(root: Path, deprecated: bool = True, **params: Any) -> Path:
    """A recording of `capture.catalogue`; `deprecated` is whether TorchScript says so."""
    rows = []
    for op, outcomes in OUTCOMES.items():
        for way, outcome in zip(WAYS, outcomes, strict=True):
            told = {"op": op, "variant": way, "device": "cuda", "outcome": outcome}
            told["deprecated"] = deprecated and way.startswith("jit")
            told["breaks"] = int(outcome == BREAK) if way == "compile" else None
            if outcome == ERROR:
                at = "call" if (op, way) == ("if on a shape", "export") else "capture"
                told |= {"failed_at": at, "error": "TraceError: a branch"}
            rows.append(told)
    return synthetic.record(root, "capture.catalogue", rows, **params)


@synthetic.makes("capture.calls")
def calls(root: Path, **params: Any) -> Path:
    rows, own = [], {way: {"setup_s": 0.5} for way in WAYS[1:]}
    for op, seconds in TIMES.items():
        how = {"bytes": 2**29, "limit": "copy", "setup_s": None}
        times = dict(zip(WAYS, seconds, strict=True))
        rows += synthetic.timed(op, "step_wall", times, own, **how)
    return synthetic.record(root, "capture.calls", rows, **params)


@synthetic.makes("capture.code")
def code(root: Path, kernel: str = KERNEL, **params: Any) -> Path:
    told = {"op": "x.cos().cos()", "device": "cuda", "note": None}
    rows = [{"variant": "kernel", "generated": kernel}, {"variant": "call", "generated": CALL}]
    return synthetic.record(root, "capture.code", [told | row for row in rows], **params)
