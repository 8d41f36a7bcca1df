"""Ceilings: what a machine can give at most, and the share of it that a row reached.

A ceiling is measured on the machine itself (its recording of `limits.ceilings`), or else it is the
maker's figure from limits.toml. Each says which, because the two differ: a datasheet multiplies a
width by a clock that the power budget may not allow.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from anatomy.table.units import missing

TABLE = Path(__file__).with_name("limits.toml")
EXPERIMENT = "limits.ceilings"
FLOORS = "limits.floors"  # the experiment of what asking a GPU costs
LAUNCH = {"op": "launch", "variant": "add"}  # rows of it: one small addition
# Ceilings of the memory: bytes both ways, read alone, or written alone.
DRAM = ("copy", "read", "write")
# Below this factor on its sizes, a recording of the ceilings is a quick look and gives none: its
# memory fits the cache, and its products are too small to keep a card busy.
LEAST_SCALE = 0.5
MATMUL = "matmul "  # prefix of the ceiling of a product; the number format follows


@dataclass(frozen=True)
class Datasheet:
    """What the maker states of one GPU; dense peaks."""

    slug: str  # of its entry in limits.toml
    name: str
    source: str  # where the figures stand
    dram_bytes_per_s: float
    # Peak of products by number format; a format that the GPU has no unit for is absent. Beside it
    # the SM clock at which each holds, absent where not known.
    flops_per_s: Mapping[str, float]
    peak_clock_mhz: Mapping[str, float] = field(default_factory=dict)
    max_clock_mhz: float | None = None  # highest SM clock of the card, where known
    sm_count: int | None = None
    shared_bytes_per_sm: int | None = None
    registers_per_sm: int | None = None  # of 32 bits
    hbm_bits: int | None = None  # width of the HBM: 1024 for each stack
    link_bytes_per_s: float | None = None  # NVLink in one direction; None without one
    derived: tuple[str, ...] = ()  # names of the figures that no datasheet states
    derivation: str = ""  # how these were computed
    match: tuple[str, ...] = ()  # other names of the GPU

    def hbm_bytes_per_s(self, clock_mhz: float | None) -> float | None:
        """Bytes per second over all pins of the HBM, two bits a clock; None where one of them is
        not known. A datasheet's figure is rounded, and can lie below (H200: 4.80 of 4.92 TB/s)."""
        if not self.hbm_bits or not clock_mhz:
            return None
        return self.hbm_bits / 8 * 2 * clock_mhz * 1e6

    def peak_at_max_clock(self, dtype: str, max_clock_mhz: float | None = None) -> float | None:
        """FLOP/s that no product of `dtype` can exceed: the peak at the highest clock.

        A datasheet's figure may hold at a lower clock than the card reaches (H200: 1830 of 1980
        MHz), so the figure itself bounds nothing. `max_clock_mhz` is as the driver reports it. None
        where the peak or one of the clocks is not known, for then a figure above the datasheet's
        may well be true.
        """
        peak, at = self.flops_per_s.get(dtype), self.peak_clock_mhz.get(dtype)
        highest = max_clock_mhz or self.max_clock_mhz
        if peak is None or at is None or highest is None:
            return None
        return peak * max(highest / at, 1.0)

    def cite(self, figure: str) -> str:
        """Source of one figure (`dram_bytes_per_s` or a number format), labelled if derived."""
        derived = f"derived from {self.source}: {self.derivation}"
        return derived if figure in self.derived else self.source


@dataclass(frozen=True)
class Ceiling:
    """One upper bound."""

    name: str  # what it bounds: `copy`, `read`, `write` or `matmul <format>`
    value: float
    unit: str  # `B/s` or `FLOP/s`
    kind: str  # `measured` on the machine, or `datasheet`
    source: str  # the recording it was measured in, or where the maker states it
    low: float | None = None  # ends of the interval of one that was measured
    high: float | None = None


@dataclass(frozen=True)
class Ceilings:
    """All ceilings of one machine, by name; empty for a machine that nobody knows."""

    machine: str
    by_name: Mapping[str, Ceiling] = field(default_factory=dict)

    def get(self, name: str | None) -> Ceiling | None:
        """The ceiling called `name`, or None."""
        return self.by_name.get(name)

    def __iter__(self) -> Iterator[Ceiling]:
        return iter(self.by_name.values())

    @property
    def measured(self) -> bool:
        """Whether any of them was measured on the machine."""
        return any(ceiling.kind == "measured" for ceiling in self)


@dataclass(frozen=True)
class Bound:
    """What holds one call back on a machine: its operations or its bytes."""

    kind: str  # `compute-bound` or `memory-bound`
    compute_s: float  # that its operations take at the machine's best rate of products
    memory_s: float  # that its bytes take at the machine's best bandwidth


def bound(
    flops: float | None, bytes_: float | None, ceilings: Ceilings | None, matmul: str | None
) -> Bound | None:
    """The roofline's answer for one call: do its operations or its bytes take longer?

    `flops` is 0 for a call that only moves bytes, `bytes_` the least that it must move. `matmul`
    names the ceiling of its operations, as `matmul fp16` or `fp16` alone. None where a count or a
    ceiling is missing, for a guess would name the wrong cause. A call at the ridge, where both take
    equally long, is `compute-bound`.

    Source: Williams, Waterman and Patterson 2009, Roofline, doi:10.1145/1498765.1498785.
    """
    if missing(flops) or missing(bytes_) or missing(matmul) or ceilings is None:
        return None
    peak = ceilings.get(matmul if matmul.startswith(MATMUL) else MATMUL + matmul)
    bandwidth = ceilings.get("copy")
    if peak is None or bandwidth is None:
        return None
    compute_s, memory_s = flops / peak.value, bytes_ / bandwidth.value
    kind = "compute-bound" if compute_s >= memory_s else "memory-bound"
    return Bound(kind, compute_s, memory_s)


def ridge(ceilings: Ceilings, matmul: str) -> float | None:
    """FLOP per byte from which on a call is compute-bound; None where a ceiling is not known."""
    found = bound(1.0, 1.0, ceilings, matmul)
    return found.memory_s / found.compute_s if found else None


def known_names() -> list[str]:
    """The names of all ceilings that a machine may have."""
    formats = dict.fromkeys(each for sheet in datasheets().values() for each in sheet.flops_per_s)
    return [*DRAM, *(MATMUL + each for each in formats)]


@cache
def datasheets() -> dict[str, Datasheet]:
    """Every GPU of limits.toml by its slug there."""
    sheets = {}
    for slug, entry in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        lists = {name: tuple(entry[name]) for name in ("match", "derived")}
        sheets[slug] = Datasheet(slug=slug, **(entry | lists))
    return sheets


def datasheet(gpu_name: str | None) -> Datasheet | None:
    """The datasheet of a GPU, by its driver's name (`NVIDIA H200`) or a machine's slug.

    None where limits.toml does not have exactly this GPU: the peaks of a relative with another
    memory or power budget would be wrong.
    """
    wanted, sheets = _bare(gpu_name or ""), datasheets().values()
    known = (each for each in sheets if wanted in map(_bare, (*each.match, each.name, each.slug)))
    return next(known, None)


def _bare(name: str) -> str:
    """A GPU's name without maker, family, spelling, and the number of cards in a slug."""
    words = re.sub(r"[^a-z0-9]+", " ", name.casefold()).split()
    if words and re.fullmatch(r"x\d+", words[-1]):
        words.pop()
    return " ".join(word for word in words if word not in ("nvidia", "geforce"))


def measured(rows: Iterable[tuple[Mapping[str, Any], str]]) -> dict[str, Ceiling]:
    """The best of each ceiling among rows of `limits.ceilings`, each beside its source."""
    best: dict[str, Ceiling] = {}
    for row, source in rows:
        name = row.get("limit") or row.get("op")
        if name is None or row.get("note") is not None or row.get("verdict") == "impossible":
            continue
        rate = _rate(row, name)
        if rate is not None and (name not in best or rate > best[name].value):
            unit = "B/s" if name in DRAM else "FLOP/s"
            ends = (_rate(row, name, end) for end in ("high_s", "low_s"))
            best[name] = Ceiling(name, rate, unit, "measured", source, *ends)
    return best


def from_datasheet(gpu: str | None) -> dict[str, Ceiling]:
    """The ceilings that the maker states of a GPU, named as for `datasheet`, if that is there."""
    sheet = datasheet(gpu)
    if sheet is None:
        return {}
    memory = sheet.cite("dram_bytes_per_s")
    found = [Ceiling(each, sheet.dram_bytes_per_s, "B/s", "datasheet", memory) for each in DRAM]
    for dtype, peak in sheet.flops_per_s.items():
        found.append(Ceiling(MATMUL + dtype, peak, "FLOP/s", "datasheet", sheet.cite(dtype)))
    return {ceiling.name: ceiling for ceiling in found}


def _rate(row: Mapping[str, Any], name: str, time: str = "median_s") -> float | None:
    """Bytes per second, or for a product FLOP/s, from what a row has counted and timed."""
    work, seconds = row.get("bytes" if name in DRAM else "flops"), row.get(time)
    return None if missing(work) or missing(seconds) or not work else work / seconds


def share(row: Mapping[str, Any], ceilings: Ceilings) -> tuple[float, Ceiling] | None:
    """The share of its limit that a row reached, 1 for all of it, and that ceiling.

    A row's `limit` names it, and its `flops` (of a product) or `bytes` over `median_s` is its rate.
    A measured ceiling may be exceeded a little. None where the row names none or was not measured,
    or the ceiling is not known.
    """
    name = row.get("limit")
    if missing(name) or (ceiling := ceilings.get(name)) is None:
        return None
    rate = _rate(row, name)
    return None if rate is None else (rate / ceiling.value, ceiling)
