"""Options that several commands have, each with its name, its help and its limits."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from anatomy.table.errors import BadParameter


def _above_0(option: typer.CallbackParam, seconds: float | None) -> float | None:
    """Refuse a time limit that nothing can be done in."""
    if seconds is not None and not seconds > 0:
        raise BadParameter(f"--{option.name} {seconds:g}: it must be above 0 seconds.")
    return seconds


def gpus(given: str) -> int | None:
    """How many GPUs are asked for; None for all. BadParameter for what is no number."""
    if given == "all":
        return None
    if not given.isdecimal() or int(given) < 1:
        raise BadParameter(f"--gpus {given}: it must be a number from 1 on, or all.")
    return int(given)


def _seconds(name: str, help: str) -> typer.models.OptionInfo:
    return typer.Option(name, metavar="SECONDS", help=help, callback=_above_0)


def folder(help: str) -> typer.models.OptionInfo:
    """An option that is a folder for recordings."""
    return typer.Option("--save", metavar="DIR", help=help)


_FORMAT = typer.Option("--format", help="How to print the result.")
FormatOption = Annotated[Literal["text", "json", "csv"], _FORMAT]
PlainFormatOption = Annotated[Literal["text", "json"], _FORMAT]
DeviceOption = Annotated[str, typer.Option(help="Device, such as cuda:0 or cpu.")]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", help="Machine, by the slug that its folder of recordings has."),
]
ForeignOption = Annotated[
    bool,
    typer.Option("--allow-foreign", help="Measure although another process computes on the GPU."),
]
BudgetOption = Annotated[float | None, _seconds("--budget", "Stop in time; go on at next call.")]
TimeoutOption = Annotated[float | None, _seconds("--timeout", "End a process after this time.")]
OwnTimeoutOption = Annotated[
    float | None, _seconds("--timeout", "End it after this time. [default: its own]")
]
ProcessesOption = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        help="Measure in N fresh processes, one after the other, and merge their tables; three or "
        "more may claim a difference under 2%. [default: as many as the experiment declares]",
    ),
]
GpusOption = Annotated[
    str,
    typer.Option(
        "--gpus",
        metavar="N|all",
        help="Measure on N GPUs of this host at the same time; what the host paces takes turns.",
    ),
]
ScriptArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGUMENT", help="After --, what the script is called with."),
]
SaveOption = Annotated[Path | None, folder("Also write the recording under DIR.")]
