"""Bytes of device memory that attention moves: by the card's own counters, and on paper, where
every operator reads its inputs and writes its outputs. What a cache spares is the difference."""

import csv
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.ladder import requirements
from anatomy.chapters.ladder.traffic.calls import FORWARD, FUSED, IN_BF16, MARK, WRITTEN_OUT, main
from anatomy.record.requirements import Capacity, left_out
from anatomy.table.errors import AnatomyError, MeasurementError

Row = dict[str, Any]
Launch = tuple[str, int, int]  # a kernel, and the bytes that it reads and writes

WAYS = (WRITTEN_OUT, IN_BF16, FUSED)
ITEM, WIDE = 2, 4  # bytes of an element of bfloat16 and of float32
UNKNOWN = Capacity()  # nothing of it keeps a call away
PROFILER = "ncu"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
REPEATS = 2  # of each call, if there is time
REPORT_S = 15.0  # for the call that is running, and for the profiler to write its report
LOOK_S = 0.1  # between looks at whether the profiler has given up
FAILED = "==ERROR=="  # begins a line of it; what it profiles goes on to its end all the same
# Who may read counters: a switch of the driver, and the capabilities that go past it.
DRIVER, OWN = Path("/proc/driver/nvidia/params"), Path("/proc/self/status")
SYS_ADMIN, PERFMON = 1 << 21, 1 << 38


@dataclass(frozen=True)
class Pass:
    """One operator's way over the scores: bytes of each, for every tensor read and written."""

    operator: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


# What each way does to each of the (B, H, T, T) scores, operator by operator.
PASSES: dict[tuple[str, str], tuple[Pass, ...]] = {
    (WRITTEN_OUT, FORWARD): (
        Pass("q @ k", (), (ITEM,)),
        Pass("divide", (ITEM,), (ITEM,)),
        Pass("mask: copy", (ITEM,), (ITEM,)),
        Pass("mask: fill", (ITEM,), (ITEM,)),
        Pass("to float32", (ITEM,), (WIDE,)),
        Pass("softmax", (WIDE,), (WIDE,)),
        Pass("to bfloat16", (WIDE,), (ITEM,)),
        Pass("shares @ v", (ITEM,), ()),
    ),
    (WRITTEN_OUT, "backward"): (
        Pass("gradient of v", (ITEM,), ()),
        Pass("gradient of shares", (), (ITEM,)),
        Pass("to float32", (ITEM,), (WIDE,)),
        Pass("softmax", (WIDE, WIDE), (WIDE,)),
        Pass("to bfloat16", (WIDE,), (ITEM,)),
        Pass("mask: copy", (ITEM,), (ITEM,)),
        Pass("mask: fill", (ITEM,), (ITEM,)),
        Pass("divide", (ITEM,), (ITEM,)),
        Pass("gradient of q", (ITEM,), ()),
        Pass("gradient of k", (ITEM,), ()),
    ),
    (IN_BF16, FORWARD): (
        Pass("q @ k", (), (ITEM,)),
        Pass("multiply", (ITEM,), (ITEM,)),
        Pass("softmax", (ITEM,), (ITEM,)),
        Pass("shares @ v", (ITEM,), ()),
    ),
    (IN_BF16, "backward"): (
        Pass("gradient of v", (ITEM,), ()),
        Pass("gradient of shares", (), (ITEM,)),
        Pass("softmax", (ITEM, ITEM), (ITEM,)),
        Pass("multiply", (ITEM,), (ITEM,)),
        Pass("gradient of q", (ITEM,), ()),
        Pass("gradient of k", (ITEM,), ()),
    ),
    (FUSED, FORWARD): (),
    (FUSED, "backward"): (),
}
# Tensors of (B, H, T, D) that are read and written: q, k, v and the output; going back the
# gradients of q, k and v are written. Two products, or two kernels, read the gradient of the
# output, and only a fused attention reads the output again.
TENSORS = {
    (WRITTEN_OUT, FORWARD): (3, 1),
    (WRITTEN_OUT, "backward"): (5, 3),
    (FUSED, FORWARD): (3, 1),
    (FUSED, "backward"): (6, 3),
}
# How often the mask of (T, T) bytes is read and written, one for all heads: it is made, its lower
# part is cleared, and it is filled in.
MASKS = {FORWARD: (2, 2), "backward": (1, 0)}
# Numbers of float32 for each row of scores that a fused attention keeps: the logarithm of its sum,
# and going back how much each gradient is less.
ROWS = {FORWARD: (0, 1), "backward": (2, 1)}


def formula(way: str, direction: str, heads: int, sequence: int, width: int) -> tuple[int, ...]:
    """Bytes read and written if no cache held anything from one operator to the next, and how often
    the scores are read or written; `heads` are those of all sequences together. A fused attention's
    k and v are taken to lie in a cache after the first block of queries. Source: Dao et al. 2022,
    FlashAttention, arXiv:2205.14135, section 3.2; the operators are those that PyTorch launches."""
    scores, vectors, rows = heads * sequence**2, heads * sequence * width * ITEM, heads * sequence
    read = written = times = 0
    for part in (FORWARD,) if direction == FORWARD else (FORWARD, "backward"):
        tensors_read, tensors_written = TENSORS[FUSED if way == FUSED else WRITTEN_OUT, part]
        read, written = read + tensors_read * vectors, written + tensors_written * vectors
        for each in PASSES[way, part]:
            read, written = read + sum(each.reads) * scores, written + sum(each.writes) * scores
            times += len(each.reads) + len(each.writes)
        if way == WRITTEN_OUT:
            read, written = (
                read + MASKS[part][0] * sequence**2,
                written + MASKS[part][1] * sequence**2,
            )
        if way == FUSED:
            read += ROWS[part][0] * rows * WIDE
            written += ROWS[part][1] * rows * WIDE
    return read, written, times


def cells(heads: int, width: int, longest: int) -> list[Row]:
    """What is called, shortest first, each length with `heads` heads, whose scores fit a cache
    where it is short, and with as many as the tokens of the longest make up, as a batch has."""
    found = {}
    for T, H in requirements.shapes(heads, longest):
        for direction in requirements.DIRECTIONS:
            for way in WAYS:
                cell = {"way": way, "direction": direction, "heads": H, "sequence": T}
                found[tuple(cell.values())] = cell | {"width": width}
    return list(found.values())


def measure(
    heads: int,
    width: int,
    longest: int,
    where: torch.device,
    limit_s: float,
    on: Capacity = UNKNOWN,
) -> pd.DataFrame:
    """The table of `ladder.traffic`; after `limit_s` seconds no further call is counted, and none
    for which the device, of which `on` tells, has no room."""
    wanted = cells(heads, width, longest)
    left = left_out(requirements.traffic(on, heads, width, longest), on)
    there = [place for place, cell in enumerate(wanted) if _op(cell) not in left]
    try:
        found = counters([wanted[place] for place in there], where, limit_s) if there else {}
        counted, why = {there[n]: row for n, row in found.items()}, "there was no time left for it"
    except AnatomyError as error:
        counted, why = {}, str(error)
    rows = []
    for place, cell in enumerate(wanted):
        shape = {name: cell[name] for name in ("heads", "sequence", "width")}
        direction, way = cell["direction"], cell["way"]
        read, written, times = formula(way, direction, **shape)
        least = sum(formula(FUSED, direction, **shape)[:2])
        row = {
            "op": _op(cell),
            "variant": way,
            "role": "control" if way == FUSED else "variant",
            "direction": direction,
            **shape,
            "passes": times,
            "score_bytes": shape["heads"] * shape["sequence"] ** 2 * ITEM,
            "cache_bytes": on.cache_bytes,
            "formula_read_bytes": read,
            "formula_written_bytes": written,
            "formula_bytes": read + written,
            "formula_over_fused": (read + written) / least,
        }
        unread = {"note": f"counters not read: {left.get(row['op'], why)}"}
        rows.append(row | (counted.get(place) or unread))
    fused = {row["op"]: row.get("dram_bytes") for row in rows if row["variant"] == FUSED}
    for row in rows:
        both = row.get("dram_bytes"), fused[row["op"]]
        row["over_fused"] = both[0] / both[1] if all(both) else None
        row["over_formula"] = both[0] / row["formula_bytes"] if both[0] else None
    return pd.DataFrame(rows).assign(device=where.type)


def _op(cell: Row) -> str:
    return requirements.traffic_op(cell["direction"], cell["sequence"], cell["heads"])


def counters(wanted: Sequence[Row], where: torch.device, limit_s: float) -> dict[int, Row]:
    """What the card's counters say of each call that there was time for, by its place.
    AnatomyError: there is no such profiler here, or it may not read the counters."""
    if where.type != "cuda":
        raise AnatomyError("only an NVIDIA GPU has them")
    if (profiler := shutil.which(PROFILER)) is None:
        raise AnatomyError("Nsight Compute (ncu) is not installed")
    if reason := forbidden():
        raise AnatomyError(reason)
    with tempfile.TemporaryDirectory() as folder:
        plan, done, log = (Path(folder) / name for name in ("plan", "done", "log"))
        begin = time.time()
        plan.write_text(
            json.dumps(
                {
                    "cells": list(wanted),
                    "device": str(where),
                    "repeats": REPEATS,
                    "until": begin + limit_s,
                    "done": str(done),
                }
            ),
            encoding="utf-8",
        )
        # Run by itself: what the package imports would be loaded under the profiler too.
        script = inspect.getsourcefile(main)
        command = [profiler, "--profile-from-start", "off", "--log-file", str(log), "--csv"]
        command += ["--page", "raw", "--print-units", "base", "--print-kernel-base", "function"]
        command += ["--clock-control", "none", "--cache-control", "none"]
        command += ["--metrics", f"{READ},{WRITTEN}", sys.executable, "-P", script, str(plan)]
        text = told(command, log, limit_s + REPORT_S)
        if FAILED in text or not done.exists():
            raise AnatomyError(complaint(text))
        return by_cell(list(launches(text)), json.loads(done.read_text(encoding="utf-8")))


def forbidden() -> str | None:
    """Why this process may not read the card's counters, as far as the system tells, or None."""
    try:
        only = re.search(r"^RmProfilingAdminOnly: 1", DRIVER.read_text(), re.MULTILINE)
        has = int(re.search(r"^CapEff:\s*(\w+)", OWN.read_text(), re.MULTILINE).group(1), 16)
    except (OSError, AttributeError):
        return None  # the profiler will find out
    if not only or has & (SYS_ADMIN | PERFMON):
        return None
    return "ERR_NVGPUCTRPERM: this driver lets administrators alone read them"


def told(command: Sequence[str], log: Path, limit_s: float) -> str:
    """What the profiler writes to `log`, and to its outputs, until it ends or reports an error; in
    both cases nothing of it goes on. AnatomyError: it can't be started, or was not done in time."""
    outputs = log.with_suffix(".outputs")
    with outputs.open("wb") as file:
        try:
            running = subprocess.Popen(
                command,
                stdout=file,
                stderr=file,
                env=os.environ | {"TMPDIR": str(log.parent)},
                start_new_session=True,
            )
        except OSError as error:
            raise AnatomyError(f"ncu can't be started: {error.strerror}") from None
    texts, until = (log, outputs), time.monotonic() + limit_s
    try:
        while running.poll() is None and FAILED not in _read(texts):
            if time.monotonic() > until:
                raise AnatomyError(f"ncu was not done after {limit_s:.0f} s")
            time.sleep(LOOK_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    return _read(texts)


def _read(files: Sequence[Path]) -> str:
    there = (file for file in files if file.exists())
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in there)


def complaint(text: str) -> str:
    """Why the profiler counted nothing, in its own words: its errors, or else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix(FAILED).strip() for line in lines if line.startswith(FAILED)]
    return " ".join(errors[:2]) or (lines[-1][:300] if lines else "ncu said nothing")


def launches(text: str) -> Iterator[Launch]:
    """The launches in the profiler's report; AnatomyError without a table or such counters."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise AnatomyError(complaint(text))
    table = csv.DictReader(line for line in lines[start:] if line.startswith('"'))
    for row in table:
        if not row["ID"]:  # the line of units
            continue
        try:
            read, written = (round(float(row[name].replace(",", ""))) for name in (READ, WRITTEN))
        except (KeyError, ValueError):
            raise AnatomyError("ncu has no such counters on this card") from None
        yield row["Kernel Name"], read, written


def by_cell(found: Sequence[Launch], done: Sequence[int]) -> dict[int, Row]:
    """Counts of each of the calls `done`: what lies between its two marks in the launches, and what
    was written after it, `late_bytes`. Of a call's repeats the one with the median sum counts, but
    the lowest and highest are of all. MeasurementError: the marks are not where they belong."""
    parts: list[list[Launch]] = []
    for launch in found:
        if MARK in launch[0]:
            parts.append([])
        elif parts:
            parts[-1].append(launch)
    calls, afters = parts[::2], parts[1::2]
    if len(parts) != 2 * len(done) or not all(calls) or not all(afters):
        raise MeasurementError("the kernels between the marks are not those of the calls")
    repeats: dict[int, list[Row]] = {}
    for place, call, after in zip(done, calls, afters, strict=True):
        late = sum(written for _, _, written in after)
        read = sum(read for _, read, _ in call)
        written = sum(written for _, _, written in call) + late
        told = {"read_bytes": read, "written_bytes": written, "late_bytes": late}
        told |= {"dram_bytes": read + written, "kernels": [name for name, _, _ in call]}
        repeats.setdefault(place, []).append(told)
    for place, each in repeats.items():
        each.sort(key=lambda told: told["dram_bytes"])
        ends = {"low": each[0], "high": each[-1]}
        extra = {f"dram_{end}_bytes": told["dram_bytes"] for end, told in ends.items()}
        repeats[place] = [each[len(each) // 2] | extra]
    return {place: each[0] for place, each in repeats.items()}
