"""How much of a step the GPU idles; and the order of a profile's operators and kernels."""

from anatomy.judge.rules import rule
from anatomy.table import kernel_names, units


@rule("profiling.overhead", columns=("gpu_idle_share",), source="busy_s and median_s")
def idle(rows, known):
    """What kernels leave of a step."""
    for place, row in enumerate(rows):
        busy, step = row.get("busy_s"), row.get("median_s")
        unknown = units.missing(busy) or units.missing(step)
        yield place, {"gpu_idle_share": None if unknown else max(0.0, 1 - busy / step)}


@rule(
    "profiling.averages",
    columns=("host_place", "kernel_place", "short_name"),
    source="self_host_s, self_device_s and the row's name",
)
def order(rows, known):
    """Places by a row's own time, calls on the CPU and kernels apart; and names that fit a line."""
    for side, time, name in (
        ("CPU", "self_host_s", "host_place"),
        ("GPU", "self_device_s", "kernel_place"),
    ):
        spent = {at: row.get(time) or 0.0 for at, row in enumerate(rows) if row["ran_on"] == side}
        for number, place in enumerate(sorted(spent, key=lambda at: -spent[at]), start=1):
            called = None if rows[place].get("note") else rows[place]["variant"]
            short = kernel_names.short(called) if called and side == "GPU" else called
            yield place, {name: number, "short_name": short}
