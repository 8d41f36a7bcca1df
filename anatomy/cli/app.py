"""The commands and how they are reached."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import anatomy
from anatomy.cli import about, claims, exchange, generated, measure, recordings, scripts
from anatomy.record import signatures
from anatomy.table import chapters
from anatomy.table.errors import BadParameter, close_names

STATUSES = (
    "Exit status: 0 done; 1 a check or a measurement failed; 2 bad usage; 3 no such device; "
    "4 out of memory; 5 another process is measuring; 130 interrupted by Ctrl-C, 143 by SIGTERM."
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
    also: dict[str, str] = {}  # other words for a command -> the command
    app = typer.Typer(cls=_group(also), help=SUMMARY, epilog=STATUSES, no_args_is_help=True)
    app.callback()(_version)
    about.add(app, package)
    recordings.add(app, package)
    exchange.add(app)
    for each in chapters.modules("commands"):
        import_module(each).add(app)
    scripts.add(app)
    claims.add(app)

    act = partial(measure.measure, package=package)
    groups = {"": app}
    for experiment in signatures.experiments(package).values():
        call = generated.callback(experiment, measure.OPTIONS, act)
        regular = experiment.regular
        for typed in experiment.commands:
            group, _, name = typed.rpartition(" ")
            if not group and typed != regular:
                also[typed] = regular
                continue
            if group not in groups:
                inner = typer.Typer(cls=_group({}), help=GROUPS.get(group), no_args_is_help=True)
                app.add_typer(inner, name=group, epilog=STATUSES)
                groups[group] = inner
            example = generated.example(typed, experiment)
            # Its own panel, so that --help tells what is measured from the commands about it.
            panel = {"rich_help_panel": "Experiments"}
            groups[group].command(name, epilog=example, **panel)(call)
    return app


def _group(also: Mapping[str, str]) -> type[TyperGroup]:
    """A group of commands that knows other words for some, and says which one a typo is nearest."""

    class Group(TyperGroup):
        def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
            return super().get_command(ctx, also.get(cmd_name, cmd_name))

        def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
            if args[0].startswith("-") or self.get_command(ctx, args[0]) or ctx.resilient_parsing:
                return super().resolve_command(ctx, args)
            near = close_names(args[0], [*self.commands, *also])
            hint = f"Did you mean {near[0]!r}? " if near else ""
            told = f"There is no command {args[0]!r}. {hint}All of them: {ctx.command_path} --help"
            raise BadParameter(told)

    return Group


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
