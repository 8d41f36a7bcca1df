"""What one launch takes, of those that were timed together."""

from anatomy.judge.rules import rule
from anatomy.table import units

COLUMNS = {"per_launch_s": "median_s", "per_launch_low_s": "low_s", "per_launch_high_s": "high_s"}


@rule(
    "launches.rates", columns=tuple(COLUMNS), source="median_s and its interval over kernel_count"
)
def per_launch(rows, known):
    """Seconds of one launch."""
    for place, row in enumerate(rows):
        if not units.missing(row.get("median_s")) and (count := row.get("kernel_count")):
            ends = {name: row.get(time) for name, time in COLUMNS.items()}
            yield place, {name: each and each / count for name, each in ends.items()}
