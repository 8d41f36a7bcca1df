"""The commands and how they are reached."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import anatomy
from anatomy.cli import about, claims, diagnose, generated, measure, recordings, replicate
from anatomy.record import signatures
from anatomy.record.signatures import Signature
from anatomy.table import chapters

STATUSES = (
    "Exit status: 0 done; 1 a check or a measurement failed; 2 bad usage; 3 no such device; "
    "4 out of memory; 5 another process is measuring; 130 interrupted by Ctrl-C."
)
SUMMARY = (
    "Measure what PyTorch does on a GPU, record it with its circumstances, and show what was "
    "recorded. Results go to standard output, progress to standard error; NO_COLOR is honoured."
)
GROUPS = {"c01": "Chapter 1, tensor semantics: layout, contiguity and their cost."}


def build(package: Path | None = None) -> typer.Typer:
    """The application, with a command for every experiment of the package.

    Args:
        package: Folder of another package with an experiments/ folder, for tests.
    """
    app = typer.Typer(help=SUMMARY, epilog=STATUSES, no_args_is_help=True)
    app.callback()(_version)
    found = signatures.experiments(package)
    about.add(app, package)
    recordings.add(app, package)
    for each in chapters.modules("commands"):
        import_module(each).add(app)
    replicate.add(app)
    diagnose.add(app)
    claims.add(app)

    def act(experiment: Signature, params: dict[str, Any], options: dict[str, Any]) -> None:
        measure.measure(experiment, params, options, package)

    run = typer.Typer(help="Measure any experiment by its name.", no_args_is_help=True)
    groups: dict[tuple[str, ...], typer.Typer] = {(): app, ("run",): run}
    app.add_typer(run, name="run", epilog=STATUSES)
    for name, experiment in found.items():
        _command(run, name, f"run {name}", experiment, act)
        if experiment.command:
            *path, last = experiment.command.split()
            _command(_group(groups, tuple(path)), last, experiment.command, experiment, act)
    return app


def _command(group: typer.Typer, name: str, typed: str, experiment: Signature, act) -> None:
    call = generated.callback(experiment, measure.OPTIONS, act)
    # So that --help tells what is measured apart from the commands about it.
    panel = {"rich_help_panel": "Experiments"}
    group.command(name, epilog=generated.example(typed, experiment), **panel)(call)


def _group(groups: dict[tuple[str, ...], typer.Typer], path: tuple[str, ...]) -> typer.Typer:
    if path not in groups:
        parent = _group(groups, path[:-1])
        groups[path] = typer.Typer(help=GROUPS.get(path[-1]), no_args_is_help=True)
        parent.add_typer(groups[path], name=path[-1], epilog=STATUSES)
    return groups[path]


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
