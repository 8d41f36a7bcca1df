"""The commands and how they are reached."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import anatomy
from anatomy.cli import about, claims, generated, measure, recordings, scripts
from anatomy.record import signatures
from anatomy.table import chapters

STATUSES = (
    "Exit status: 0 done; 1 a check or a measurement failed; 2 bad usage; 3 no such device; "
    "4 out of memory; 5 another process is measuring; 130 interrupted by Ctrl-C."
)
SUMMARY = (
    "Measure what PyTorch does on a GPU, record it with its circumstances, and show what was "
    "recorded. Results go to standard output, progress to standard error; NO_COLOR is honoured."
)
GROUPS = {
    "run": "Measure any experiment by its name.",
    "c01": "Chapter 1, tensor semantics: layout, contiguity and their cost.",
}


def build(package: Path | None = None) -> typer.Typer:
    """The application, with a command for every experiment of the package in a folder."""
    app = typer.Typer(help=SUMMARY, epilog=STATUSES, no_args_is_help=True)
    app.callback()(_version)
    about.add(app, package)
    recordings.add(app, package)
    for each in chapters.modules("commands"):
        import_module(each).add(app)
    scripts.add(app)
    claims.add(app)

    act = partial(measure.measure, package=package)
    groups = {"": app}
    for experiment in signatures.experiments(package).values():
        call = generated.callback(experiment, measure.OPTIONS, act)
        for typed in filter(None, (f"run {experiment.name}", experiment.command)):
            group, _, name = typed.rpartition(" ")
            if group not in groups:
                groups[group] = typer.Typer(help=GROUPS.get(group), no_args_is_help=True)
                app.add_typer(groups[group], name=group, epilog=STATUSES)
            example = generated.example(typed, experiment)
            # Its own panel, so that --help tells what is measured from the commands about it.
            panel = {"rich_help_panel": "Experiments"}
            groups[group].command(name, epilog=example, **panel)(call)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pytorch-gpu-anatomy {anatomy.__version__}")
        raise typer.Exit()


def _version(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and leave.",
            is_eager=True,
            callback=_print_version,  # while parsing, before the missing command is missed
        ),
    ] = False,
) -> None:
    pass
