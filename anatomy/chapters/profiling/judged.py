"""How much of a step the GPU idles; and the order of a profile's operators and kernels."""

from anatomy.judge.rules import rule
from anatomy.table import kernel_names, units


@rule("profiling.overhead", columns=("busy_s",), source="that of the step profiled", early=True)
def same_kernels(rows, known):
    """How long kernels run in a step that was not profiled for it: as long as in the control's."""
    controls = {row["op"]: row.get("busy_s") for row in rows if row.get("role") == "control"}
    for place, row in enumerate(rows):
        if row.get("median_s") and _without_kernels(row):
            yield place, {"busy_s": controls.get(row["op"])}


@rule("profiling.overhead", columns=("gpu_idle_share",), source="busy_s and median_s")
def idle(rows, known):
    """What kernels leave of a step: of that without a profiler, too, whose kernels are the same."""
    for place, row in enumerate(rows):
        unknown = any(units.missing(row.get(name)) for name in ("busy_s", "median_s"))
        unknown = unknown or _without_kernels(row)
        share = None if unknown else max(0.0, 1 - row["busy_s"] / row["median_s"])
        yield place, {"gpu_idle_share": share}


def _without_kernels(row) -> bool:
    """Whether a row had no profile that lists kernels."""
    return row["variant"] == "CPU" or row.get("role") == "again"


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
        own = [(place, row) for place, row in enumerate(rows) if row.get("ran_on") == side]
        spent = {place: row.get(time) or 0.0 for place, row in own}
        for number, place in enumerate(sorted(spent, key=lambda at: -spent[at]), start=1):
            called = None if rows[place].get("note") else rows[place]["variant"]
            short = kernel_names.short(called) if called and side == "GPU" else called
            yield place, {name: number, "short_name": short}
