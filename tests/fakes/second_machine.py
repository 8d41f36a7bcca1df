"""A machine that does not exist, made of another's recordings, for tests of sites with several."""

from collections.abc import Callable
from pathlib import Path

from anatomy.record import loading, recording

SLUG, GPU = "second-gpu", "NVIDIA Second GPU"
TIMES = ("median_s", "low_s", "high_s")


def copied(
    source: Path, machine: str, into: Path, only: Callable[[str], bool] = bool, times: float = 1.0
) -> Path:
    """Save the recordings of a machine in `into` as those of a second one, where `only` says so of
    their experiment; each time is so many times as long. Returns `into`."""
    for file in loading.files(source, machine):
        data = loading.read(file)
        if not only(data["experiment"]):
            continue
        named = {"slug": SLUG, "gpu": GPU, "card": "fedcba987654", "cpu": "Second CPU"}
        data["machine"] |= named
        for row in data["rows"]:
            row |= {name: row[name] * times for name in TIMES if row.get(name)}
            for name in ("blocks_s", "run_medians_s"):
                if row.get(name):
                    row[name] = [value and value * times for value in row[name]]
        recording.save(data, into)
    return into
