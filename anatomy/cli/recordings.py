"""Commands about recordings: make them, show them, check them, hand them on."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from anatomy.cli import generated, options, text
from anatomy.cli import targets as calls
from anatomy.cli.options import DataFormat, Format, FormatOption, MachineOption
from anatomy.cli.output import as_csv, say, say_data, show, table, tidy
from anatomy.judge import limits
from anatomy.record import reading, recording, signatures
from anatomy.record.recording import Recording
from anatomy.record.showing import shown_machine
from anatomy.record.signatures import Signature
from anatomy.table import columns, units
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError


def add(app: typer.Typer, package: Path | None) -> None:
    """Add `record`, `check`, `show` and `export` to the application."""

    def complete(incomplete: str) -> list[str]:
        names = [*signatures.experiments(package), *calls.pages()]
        return [name for name in names if name.startswith(incomplete)]

    Targets = Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAGE|EXPERIMENT]...",
            help="Pages (benchmarks/page.md) or experiments; without any, all that pages show. "
            "After a single experiment its own options may stand, such as --dtype bf16.",
            autocompletion=complete,
        ),
    ]

    @app.command(
        # Options of an experiment arrive among the targets: this command can't declare them all.
        context_settings={"ignore_unknown_options": True},
        epilog="Example: pytorch-gpu-anatomy record benchmarks/contiguity_deep_dive.md --plan",
    )
    def record(
        targets: Targets = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="Only say what is not current and how long it took.")
        ] = False,
        budget: options.BudgetOption = None,
        prune: Annotated[
            bool, typer.Option("--prune", help="Delete recordings that no page shows.")
        ] = False,
        remeasure: Annotated[
            bool, typer.Option("--remeasure", help="Measure what is current as well.")
        ] = False,
        allow_foreign: options.ForeignOption = False,
        processes: options.ProcessesOption = None,
    ) -> None:
        """Measure what has no current recording on this machine, and record it."""
        from anatomy.machine import host as machine
        from anatomy.record import recorder

        if prune and targets:
            raise BadParameter("--prune looks at all pages; give it no PAGE or EXPERIMENT.")
        remeasure = remeasure or os.environ.get("ANATOMY_MODE") == "remeasure"
        # What is measured on request alone is shown all the same, so it must not be pruned.
        wanted = calls.collected() if prune else calls.wanted(targets or [], package)
        root = recording.default_root()
        here = machine.here()
        # Without a GPU nothing is measured, but it can be said how the site's machine stands.
        slug = None if here or not plan else _or_none(shown_machine)
        items = recorder.plan(wanted, root, here, slug=slug, package=package, processes=processes)
        if prune:
            _prune({(item.name, _params_key(item.params)) for item in items}, root, dry=plan)
        elif plan:
            _print_plan(items, recorder.estimate_s(items))
        else:
            outcome = recorder.record(
                items,
                root=root,
                mode="remeasure" if remeasure else "auto",
                budget_s=budget,
                allow_foreign=allow_foreign,
                package=package,
            )
            print(outcome.report(), file=sys.stderr)
            if outcome.failed:
                raise typer.Exit(1)

    @app.command(epilog="Example: pytorch-gpu-anatomy check")
    def check(machine: MachineOption = None) -> None:
        """Leave with status 1 if a page shows a recording that is missing or not current."""
        known = signatures.experiments(package)
        stale = [each for each in _freshness_of_pages(machine, package) if not each[2].current]
        for name, params, fresh, places in stale:
            say(f"{places[0]}: {known[name].title(params)}: {fresh.state}. {fresh.reason}")
        if stale:
            words = dict.fromkeys(known[name].words(params) for name, params, *_ in stale)
            say(f"\n{len(stale)} not current. On the GPU host, `pytorch-gpu-anatomy record` mends")
            say("all of it; one at a time:")
            say("\n".join(f"  pytorch-gpu-anatomy record {each}" for each in words))
            raise typer.Exit(1)
        say("Every recording that a page shows is there and current.")

    @app.command(epilog="Example: pytorch-gpu-anatomy export --machine nvidia-h200 --format csv")
    def export(
        machine: MachineOption = None,
        declared: Annotated[
            bool, typer.Option("--columns", help="Print what each column means, and no rows.")
        ] = False,
        format: Annotated[
            DataFormat | None,
            typer.Option("--format", help="csv or json; rows are csv without it, columns a table."),
        ] = None,
    ) -> None:
        """Print every recorded row, of one machine or of all, as one tidy table."""
        if declared:
            _print_columns(format)
            return
        root = _root()
        found = recording.all_recordings(root, machine and recording.known_machine(root, machine))
        if not found:
            raise RecordingError("There are no recordings to export.")
        say_data(tidy(found), format or DataFormat.CSV)

    shown = typer.Typer(help="Show a recorded table in the terminal.", no_args_is_help=True)
    app.add_typer(shown, name="show")
    own = {"machine": (MachineOption, None), "format": (FormatOption, Format.TEXT)}

    def act(experiment: Signature, params: dict[str, Any], options: dict[str, Any]) -> None:
        _show(experiment, params, **options)

    for name, experiment in signatures.experiments(package).items():
        call = generated.callback(experiment, own, act, defaults=False)
        shown.command(name, epilog=f"Example: pytorch-gpu-anatomy show {name}")(call)


def _print_columns(format: DataFormat | None) -> None:
    """What each column means: for people, or as data with all that is declared of it."""
    every = columns.declared()
    if format is not None:
        say_data(pd.DataFrame(map(columns.described, every), dtype=object), format)
        return
    lines = [(e.name, ", ".join(e.of) or e.topic, e.unit, e.meaning) for e in every]
    show(table(("column", "of", "unit", "meaning"), lines))


def _show(
    experiment: Signature, params: Mapping[str, Any], machine: str | None, format: Format
) -> None:
    root = _root()
    slug = _machine(machine, root, experiment)
    wanted = experiment.bind(**params)
    there = [
        each for each in recording.all_recordings(root, slug) if each.experiment == experiment.name
    ]
    found = next((each for each in there if each.params == wanted), None)
    if found is None:
        raise RecordingError(_no_such_recording(experiment, wanted, slug, there))
    if format is Format.JSON:
        say(recording.render(recording.compacted(found.judged)))
    elif format is Format.CSV:
        say(as_csv(tidy([found])))
    else:
        ceilings = reading.ceilings(root, slug)
        notes = "\n".join(f"  - {note}" for note in text.notes(found))
        end = [f"Notes:\n{notes}"] if notes else []
        show(text.provenance(found), *text.tables(found, ceilings), *end)


def _no_such_recording(
    experiment: Signature, wanted: Mapping[str, Any], slug: str, there: Sequence[Recording]
) -> str:
    given = (experiment.title(each.params).removeprefix(experiment.name) for each in there)
    have = ", ".join(each.strip() or "the defaults" for each in given)
    return (
        f"There is no recording of {experiment.title(wanted)} on {slug}. "
        + (f"Recorded with: {have}. " if have else "None of its others is recorded either. ")
        + f"Measure it: pytorch-gpu-anatomy record {experiment.words(wanted)}"
    )


def _freshness_of_pages(machine: str | None, package: Path | None) -> list[tuple]:
    """(experiment, parameters, freshness, places) of what pages show, on the machine shown."""
    from anatomy.machine import host as this_machine
    from anatomy.record import recorder

    root = _root()  # outside a checkout that is what is missing, whichever the machine
    here = this_machine.here()
    slug = machine or (here["slug"] if here else shown_machine())
    if machine or not here:
        recording.known_machine(root, slug)
    items = recorder.plan(calls.collected(), root, here, slug=slug, package=package)
    return [(each.name, each.params, each.freshness, each.places) for each in items]


def _prune(shown: set[tuple], root: Path, *, dry: bool) -> None:
    """Delete recordings, of all machines, that no page shows; ceilings stay, for every share."""
    count = 0
    broken: list[RecordingError] = []
    for each in recording.all_recordings(root, broken=broken):
        call = (each.experiment, _params_key(each.params))
        if call not in shown and each.experiment != limits.EXPERIMENT:
            count += 1
            say(f"{'would delete' if dry else 'deleted'} {each.path.relative_to(root)}")
            if not dry:
                each.path.unlink()
    say(f"{count} recordings that no page shows{' would be' if dry else ' were'} deleted.")
    for error in broken:
        print(f"left alone: {error}", file=sys.stderr)


def _params_key(params: Mapping[str, Any]) -> tuple:
    return tuple(sorted(params.items()))


def _print_plan(items: Sequence[Any], estimate_s: float | None) -> None:
    stale = [each for each in items if not each.freshness.current]
    lines = [
        (
            each.title,
            each.freshness.state,
            None if each.last_seconds is None else units.seconds(each.last_seconds),
            ", ".join(each.places) or None,
            each.freshness.reason,
        )
        for each in items
    ]
    show(table(("experiment", "state", "last took", "shown by", "why"), lines))
    took = f", about {units.seconds(estimate_s)}" if estimate_s else ""
    say(f"{len(stale)} of {len(items)} to measure{took if stale else ''}.")


def _root() -> Path:
    root = recording.default_root()
    if not os.path.isdir(root):
        raise RecordingError(
            f"There are no recordings yet: {root.name}/ does not exist. Make some: "
            "pytorch-gpu-anatomy record"
        )
    return root


def _machine(machine: str | None, root: Path, experiment: Signature) -> str:
    """The machine asked for, or the one the site shows, or the only one there is."""
    if named := machine or os.environ.get("ANATOMY_MACHINE"):
        return recording.known_machine(root, named)
    known = recording.machines(root)
    if (shown := _or_none(shown_machine)) in known:
        return shown
    if len(known) == 1:
        return known[0]
    raise BadParameter(
        f"{experiment.name} is recorded on several machines ({', '.join(known) or 'none'}); "
        "name one with --machine."
    )


def _or_none(ask: Callable[[], str]) -> str | None:
    """What `ask` says, or None where nothing says it."""
    try:
        return ask()
    except AnatomyError:
        return None
