"""Commands about what is said: the ledger of claims, and what pages say on their own word."""

from pathlib import Path
from typing import Annotated

import typer

from anatomy import claims
from anatomy.claims import ledger
from anatomy.cli import targets
from anatomy.cli.options import FormatOption, MachineOption
from anatomy.cli.output import say, show, table
from anatomy.figures.text import prose, wording
from anatomy.record import recording
from anatomy.record.showing import Showing
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError, UnknownName


def add(app: typer.Typer) -> None:
    """Add `claims` and `prose` to the application."""

    @app.command("claims", epilog="Example: pytorch-gpu-anatomy claims --verdict fails")
    def print_claims(
        machine: MachineOption = None,
        verdict: Annotated[
            str | None,
            typer.Option("--verdict", help=f"Only this one: {', '.join(claims.ALL_WORDS)}."),
        ] = None,
        topic: Annotated[str | None, typer.Option("--topic", help="Only this topic.")] = None,
        format: FormatOption = "text",
        check: Annotated[
            bool,
            typer.Option(
                "--check",
                help="Compare with the committed verdicts; leave with status 1 if one differs.",
            ),
        ] = False,
        write: Annotated[
            bool, typer.Option("--write", help="Write the verdicts to be committed.")
        ] = False,
    ) -> None:
        """Print what was claimed and what the recordings say of it."""
        if check and write:
            raise BadParameter("--check and --write exclude each other: one reads, one writes.")
        if (check or write) and (verdict or topic):
            raise BadParameter("--check and --write take all claims: leave out --verdict, --topic.")
        root = recording.default_root()
        known = ledger.judged_machines(root)
        if not known:
            make = "Make some: pytorch-gpu-anatomy record"
            raise RecordingError(f"There are no recordings to judge by in {root}. {make}")
        if machine is not None and machine not in known:
            raise UnknownName("machine with recordings", machine, known)
        found = {
            slug: ledger.results(Showing(root=root, machine=slug), [slug])
            for slug in ([machine] if machine else known)
        }
        if write:
            for slug, results in found.items():
                say(f"written: {ledger.commit(root, slug, ledger.verdicts(results))}")
        elif check:
            _check(root, found)
        else:
            every = [result for results in found.values() for result in results]
            _print(ledger.wanted(every, verdict, topic), format)

    @app.command("prose", epilog="Example: pytorch-gpu-anatomy prose ledger.md")
    def print_prose(
        pages: Annotated[
            list[str] | None,
            typer.Argument(metavar="[PAGE]...", help="Pages under docs/; by default all."),
        ] = None,
    ) -> None:
        """Leave with status 1 if a page has a figure or a verdict that rests on no recording, or is
        worded as no newcomer could read it."""
        known = targets.pages()
        if not known:
            raise AnatomyError("There are no pages here: this runs in a checkout.")
        for name in pages or ():
            if name not in known:
                raise UnknownName("page", name, known)
        worded, waiting = wording.on_pages(targets.docs(), pages)
        if waiting:
            say(f"{len(waiting)} pages wait to be rewritten; what they break is counted:")
            for page, counted in waiting.items():
                say(f"  {page}: {', '.join(f'{n} {kind}' for kind, n in counted.items())}")
        if wrong := [*prose.on_pages(targets.docs(), pages), *worded]:
            say("\n".join(wrong))
            raise typer.Exit(1)
        say("No figure and no verdict on these pages was typed by hand.")


def _check(root: Path, found: dict[str, list[claims.Result]]) -> None:
    changed = [
        f"{slug}: {change}"
        for slug, results in found.items()
        for change in ledger.changes(ledger.committed(root, slug), results)
    ]
    if changed:
        many = "1 verdict differs" if len(changed) == 1 else f"{len(changed)} verdicts differ"
        say("\n".join(changed))
        say(f"\n{many} from those committed. If the recordings are right,")
        say("`pytorch-gpu-anatomy claims --write` accepts that.")
        raise typer.Exit(1)
    say(f"Every verdict is the one committed, on {', '.join(found)}.")
    every = [each for results in found.values() for each in results]
    if old := sum(ledger.row(each)["fresh"] is False for each in every):
        say(f"{old} of {len(every)} rest on recordings that are not current: run `check`.")


def _print(found: list[claims.Result], format: str) -> None:
    if format == "csv":
        say(ledger.as_csv(found), data=True)
    elif format == "json":
        say(ledger.as_json(found), data=True)
    elif not found:
        say("There is no such claim.")
    else:
        lines = []
        for each in found:
            number = "" if each.claim.row is None else str(each.claim.row)
            claimed = (each.claim.name, each.machine, each.word, each.claim.number)
            measured = (each.measured.text, each.claim.measures) if each.measured else ("", "")
            lines.append((number, *claimed, *measured))
        heads = ("#row", "claim", "machine", "verdict", "claimed", "measured", "which is")
        counts = ", ".join(f"{n} {word}" for word, n in ledger.counts(found).items() if n)
        show(table(heads, lines), "", counts)
