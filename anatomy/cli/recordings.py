"""Commands about recordings: make them, show them, check them, hand them on."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer

from anatomy.cli import generated, options, text
from anatomy.cli import targets as calls
from anatomy.cli.options import FormatOption, MachineOption
from anatomy.cli.output import say, say_data, say_recording, show, table, tidy
from anatomy.judge import again, limits
from anatomy.record import recording, requirements, signatures
from anatomy.record.exchange import archives
from anatomy.record.recording import Recording
from anatomy.record.requirements import UNKNOWN_CACHE_BYTES, Capacity
from anatomy.record.showing import shown_machine
from anatomy.record.signatures import Signature
from anatomy.table import columns, units
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError, lookup


def add(app: typer.Typer, package: Path | None) -> None:
    """Add `record`, `check`, `occasions`, `show` and `export` to the application."""

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
            bool,
            typer.Option(
                "--plan",
                help="Only say what is not current, how long it took, and what it needs.",
            ),
        ] = False,
        budget: options.BudgetOption = None,
        timeout: options.OwnTimeoutOption = None,
        prune: Annotated[
            bool, typer.Option("--prune", help="Delete recordings that no page shows.")
        ] = False,
        remeasure: Annotated[
            bool, typer.Option("--remeasure", help="Measure what is current as well.")
        ] = False,
        once_more: Annotated[
            bool,
            typer.Option(
                "--again",
                help="Measure what is current once more, first what was measured least often: adds "
                "an occasion.",
            ),
        ] = False,
        allow_foreign: options.ForeignOption = False,
        processes: options.ProcessesOption = None,
        gpus: options.GpusOption = "1",
    ) -> None:
        """Measure what has no current recording on this machine, and record it."""
        from anatomy.machine import host as machine
        from anatomy.record import recorder

        side_by_side = options.gpus(gpus)
        if prune and targets:
            raise BadParameter("--prune looks at all pages; give it no PAGE or EXPERIMENT.")
        if once_more and (remeasure or prune):
            raise BadParameter("--again goes with neither --remeasure nor --prune: leave one out.")
        remeasure = remeasure or os.environ.get("ANATOMY_MODE") == "remeasure"
        mode = "again" if once_more else "remeasure" if remeasure else "auto"
        # What is measured on request alone is shown all the same, so it must not be pruned.
        wanted = calls.collected() if prune else calls.wanted(targets or [], package)
        root = recording.default_root()
        here = machine.here()
        # Without a GPU nothing is measured, but it can be said how the site's machine stands.
        slug = None if here or not plan else _shown_machine()
        items = recorder.plan(wanted, root, here, slug=slug, package=package, processes=processes)
        if prune:
            _prune([(item.name, item.params) for item in items], root, dry=plan)
        elif plan:
            estimate_s = recorder.estimate_s(items, mode)
            on = _capacity(machine, root, slug)
            _print_plan(items, len(recorder.due(items, mode)), estimate_s, on)
        else:
            outcome = recorder.record(
                items,
                root=root,
                mode=mode,
                budget_s=budget,
                timeout_s=timeout,
                allow_foreign=allow_foreign,
                package=package,
                gpus=side_by_side,
            )
            print(outcome.report(), file=sys.stderr)
            if outcome.failed:
                raise typer.Exit(1)

    @app.command(epilog="Example: pytorch-gpu-anatomy check")
    def check(machine: MachineOption = None) -> None:
        """Leave with status 1 if a page shows a recording that is missing or not current."""
        from anatomy.machine import host as this_machine
        from anatomy.record import recorder

        root = _root()  # outside a checkout that is what is missing, whichever the machine
        here = this_machine.here()
        slug = machine or (here["slug"] if here else shown_machine())
        if machine or not here:
            recording.known_machine(root, slug)
        items = recorder.plan(calls.collected(), root, here, slug=slug, package=package)
        left_out = calls.drafts()
        of_site = (i for i in items if {p.rpartition(":")[0] for p in i.places} - left_out)
        stale = [each for each in of_site if not each.freshness.current]
        for each in stale:
            say(f"{each.places[0]}: {each.title}: {each.freshness.state}. {each.freshness.reason}")
        if stale:
            known = signatures.experiments(package)
            words = dict.fromkeys(known[each.name].words(each.params) for each in stale)
            say(f"\n{len(stale)} not current. On the GPU host, `pytorch-gpu-anatomy record` mends")
            say("all of it; one at a time:")
            say("\n".join(f"  pytorch-gpu-anatomy record {each}" for each in words))
            raise typer.Exit(1)
        say("Every recording that a page shows is there and current.")

    @app.command(epilog="Example: pytorch-gpu-anatomy occasions --machine nvidia-h200")
    def occasions(
        machine: MachineOption = None,
        write: Annotated[
            bool,
            typer.Option("--write", help="Write the reach of intervals, as `record` does."),
        ] = False,
    ) -> None:
        """Print how a machine's figures agree from one occasion to the next."""
        from anatomy.record import occasions as kept

        root = _root()
        slug = recording.known_machine(root, machine or shown_machine())
        found = recording.all_recordings(root, slug)
        if write:
            file = kept.commit(root, slug, found)
            say(f"written: {file}" if file else "No recording has several occasions: no file.")
        _print_agreements(slug, again.agreements(map(kept.seen, found)))

    @app.command(epilog="Example: pytorch-gpu-anatomy export --machine nvidia-h200 --format csv")
    def export(
        machine: MachineOption = None,
        experiment: Annotated[
            str | None,
            typer.Option(
                "--experiment", help="Only this one, by its name.", autocompletion=complete
            ),
        ] = None,
        declared: Annotated[
            bool, typer.Option("--columns", help="Print what each column means, and no rows.")
        ] = False,
        format: Annotated[
            Literal["csv", "json"] | None,
            typer.Option("--format", help="csv or json; rows are csv without it, columns a table."),
        ] = None,
        archive: Annotated[
            Path | None,
            typer.Option(
                "--archive", metavar="FILE", help="Write the recordings to a .tar.gz, for `import`."
            ),
        ] = None,
    ) -> None:
        """Print recorded rows, of one machine and experiment or of all, as one tidy table."""
        if experiment is not None:
            lookup("experiment", experiment, signatures.experiments(package))
        if declared:
            _print_columns(format, experiment)
            return
        root = _root()
        found = recording.all_recordings(root, machine and recording.known_machine(root, machine))
        found = [each for each in found if experiment in (None, each.experiment)]
        if not found:
            raise RecordingError("There are no recordings to export.")
        if archive is not None:
            archives.pack(found, archive)
            say(f"{archive.name} has {len(found)} recordings.")
            return
        say_data(tidy(found), format or "csv")

    shown = typer.Typer(help="Show a recorded table in the terminal.", no_args_is_help=True)
    app.add_typer(shown, name="show")
    own = {"machine": (MachineOption, None), "format": (FormatOption, "text")}
    for name, experiment in signatures.experiments(package).items():
        call = generated.callback(experiment, own, _show, defaults=False)
        shown.command(name, epilog=f"Example: pytorch-gpu-anatomy show {name}")(call)


def _print_columns(format: str | None, experiment: str | None) -> None:
    """What each column means, of all or of one experiment: for people, or as data with all that is
    declared of it."""
    every = columns.declared() if experiment is None else columns.of_experiment(experiment).values()
    if format is not None:
        say_data(pd.DataFrame(map(columns.described, every), dtype=object), format)
        return
    lines = [(e.name, ", ".join(e.of) or e.topic, e.unit, e.meaning) for e in every]
    show(table(("column", "of", "unit", "meaning"), lines))


def _show(experiment: Signature, params: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    root = _root()
    slug = _machine(options["machine"], root, experiment)
    wanted = experiment.bind(**params)
    every = recording.all_recordings(root, slug)
    there = [each for each in every if each.experiment == experiment.name]
    if not (found := next((each for each in there if each.params == wanted), None)):
        raise RecordingError(_no_such_recording(experiment, wanted, slug, there))
    if options["format"] != "text":
        say_recording(found, options["format"])
        return
    tables = text.tables(found, recording.ceilings(root, slug))
    show(text.provenance(found), *tables, *text.notes(found))


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


def _prune(shown: list[tuple[str, dict]], root: Path, *, dry: bool) -> None:
    """Delete recordings, of all machines, that no page shows; ceilings stay, for every share."""
    broken: list[RecordingError] = []
    every = recording.all_recordings(root, broken=broken)
    others = [each for each in every if each.experiment != limits.EXPERIMENT]
    unshown = [each for each in others if (each.experiment, each.params) not in shown]
    for each in unshown:
        say(f"{'would delete' if dry else 'deleted'} {each.path.relative_to(root)}")
        if not dry:
            each.path.unlink()
    say(f"{len(unshown)} recordings that no page shows {'would be' if dry else 'were'} deleted.")
    for error in broken:
        print(f"left alone: {error}", file=sys.stderr)


def _capacity(machine: Any, root: Path, slug: str | None) -> Capacity:
    """What the card here has, or that of the machine whose recordings are looked at."""
    if size := machine.first_card():
        cache = {"cache_bytes": size.l2_bytes} if size.l2_bytes else {}
        return Capacity(size.free_bytes, size.capability, **cache)
    every = recording.all_recordings(root, slug) if slug else []
    told = next((e.data["machine"] for e in every if e.data["machine"].get("capability")), {})
    if not told:
        return Capacity()
    capability = tuple(int(part) for part in told["capability"].split("."))
    cache_bytes = told.get("l2_bytes") or UNKNOWN_CACHE_BYTES
    return Capacity(told.get("memory_bytes"), capability, cache_bytes)


def _print_plan(items: Sequence[Any], todo: int, estimate_s: float | None, on: Capacity) -> None:
    lines, left = [], []
    for each in items:
        last = None if each.last_seconds is None else units.seconds(each.last_seconds)
        last = f"{last} on {each.there}" if each.there else last
        places, fresh = ", ".join(each.places) or None, each.freshness
        here = Capacity() if recording.on_cpu(each.params) else on
        wanted = requirements.required(each.name, each.params, here)
        needs = requirements.told(wanted, here)
        for op, why in requirements.left_out(wanted or (), here).items():
            left.append(f"  {each.title}, {op}: {why}")
        lines.append((each.title, fresh.state, last, needs, places, fresh.reason))
    show(table(("experiment", "state", "last took", "needs", "shown by", "why"), lines))
    if left:
        say("Rows that this card leaves out, and that will say why:\n" + "\n".join(left))
    took = f", about {units.seconds(estimate_s)}" if todo and estimate_s else ""
    say(f"{todo} of {len(items)} to measure{took}.")


def _print_agreements(slug: str, counted: Sequence[again.Agreement]) -> None:
    if not counted:
        say(f"Nothing on {slug} has a second occasion: pytorch-gpu-anatomy record --again")
        return
    heads = ("paced by", "figure", "rows", "half within", "95% within", "overlap", "same verdict")
    heads = (*heads, "turned round", "held")
    lines = []
    for each in counted:
        apart = units.percent(each.half), units.percent(each.most)
        shares = (each.overlap, each.rows), (each.kept, each.rows), (each.held, each.asked)
        overlap, kept, held = (
            units.percent(some / of) if some is not None and of else None for some, of in shares
        )
        turned = None if each.turned is None else str(each.turned)
        lines.append((each.pace, each.figure, str(each.rows), *apart, overlap, kept, turned, held))
    show(table(heads, lines))


def _root() -> Path:
    root = recording.default_root()
    if not os.path.isdir(root):
        told = f"There are no recordings yet: {root.name}/ does not exist."
        raise RecordingError(f"{told} Make some: pytorch-gpu-anatomy record")
    return root


def _machine(machine: str | None, root: Path, experiment: Signature) -> str:
    """The machine asked for, or the one the site shows, or the only one there is."""
    if named := machine or os.environ.get("ANATOMY_MACHINE"):
        return recording.known_machine(root, named)
    known = recording.machines(root)
    if (shown := _shown_machine()) in known:
        return shown
    if len(known) == 1:
        return known[0]
    where = f"several machines ({', '.join(known) or 'none'})"
    raise BadParameter(f"{experiment.name} is recorded on {where}; name one with --machine.")


def _shown_machine() -> str | None:
    """The machine that the site shows; None where nothing says which."""
    with suppress(AnatomyError):
        return shown_machine()
    return None
