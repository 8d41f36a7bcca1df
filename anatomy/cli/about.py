"""Commands that tell what there is: experiments, and this machine with its limits."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import typer
from rich.table import Table

from anatomy.cli import ceilings
from anatomy.cli.options import DeviceOption, FormatOption
from anatomy.cli.output import say, say_data, show, table
from anatomy.judge import limits
from anatomy.record import recording, signatures
from anatomy.table import units
from anatomy.table.errors import RecordingError

# What `list` prints as data of each experiment, beside its name.
LISTED = ("page", "summary", "defaults", "timeout_s")
# What `machine` prints of the machine block, and with which unit.
MACHINE_LINES = (
    ("slug", "machine", ""),
    ("gpu", "GPU", ""),
    ("capability", "compute capability", ""),
    ("sm_count", "multiprocessors", ""),
    ("memory_bytes", "memory", "bytes"),
    ("l2_bytes", "L2 cache", "bytes"),
    ("max_sm_clock_mhz", "highest SM clock", "MHz"),
    ("max_memory_clock_mhz", "highest memory clock", "MHz"),
    ("power_limit_w", "power limit", "W"),
    ("card", "card", ""),
    ("driver", "driver", ""),
    ("cpu", "CPU", ""),
    ("cpu_count", "CPU threads", ""),
)


def add(app: typer.Typer, package: Path | None) -> None:
    """Add `list` and `machine` to the application."""

    @app.command("list", epilog="Example: pytorch-gpu-anatomy list")
    def list_(format: FormatOption = "text") -> None:
        """List the experiments, the page that explains each, and the command that runs it."""
        found = signatures.experiments(package).values()
        if format == "text":
            lines = [(e.name, _typed(e), e.page, e.summary) for e in found]
            show(table(("experiment", "command", "page", "what it does"), lines))
        else:
            rows = [
                {"experiment": e.name, "command": e.commands[0], "also": e.commands[1:]}
                | {at: getattr(e, at) for at in LISTED}
                for e in found
            ]
            say_data(pd.DataFrame(rows, dtype=object), format)

    @app.command(epilog="Example: pytorch-gpu-anatomy machine --device cuda:0")
    def machine(device: DeviceOption = "cuda:0", format: FormatOption = "text") -> None:
        """Show what was detected of a device, and its limits: the maker's and those measured."""
        from anatomy.record import measuring  # the record half; the other commands do without

        here = measuring.describe(device)
        found = ceilings.compared(here["machine"]["slug"], here["machine"]["gpu"])
        if format == "json":
            say(json.dumps(here | {"limits": found}, indent=1))
        elif format == "csv":
            say_data(pd.DataFrame(found, dtype=object), format)
        else:
            show(*_machine_tables(here, found, device))


def _typed(experiment: signatures.Signature) -> str:
    """The commands that run it; its name, and `run` with it, go without saying."""
    return ", ".join(each for each in experiment.commands if experiment.name not in each)


def _machine_tables(here: dict, found: list[dict], device: str) -> Iterator[Table | str]:
    try:
        recording.default_root()
        command = f"record {limits.EXPERIMENT}"
    except RecordingError:  # outside a checkout, `machine` reads the folder of recordings here
        command = "limits --save recordings"
    option = "" if device == "cuda:0" else f" --device {device}"
    mend = f"Measure them: pytorch-gpu-anatomy {command}{option}"
    grid = Table(box=None, show_header=False, pad_edge=False)
    for name, label, unit in MACHINE_LINES:
        if (value := here["machine"].get(name)) is not None:
            shown = units.byte_count(value) if unit == "bytes" else f"{value} {unit}".rstrip()
            grid.add_row(label, shown)
    for name, version in here["software"].items():
        if version is not None:
            grid.add_row(name, version)
    yield grid
    if not found:
        yield f"\nNo limits are known of this machine. {mend}"
        return
    yield ceilings.table_of(found)
    yield from ceilings.sources(found)
    if all(each["measured"] is None for each in found):
        yield f"None was measured on {here['machine']['slug']} yet. {mend}"
