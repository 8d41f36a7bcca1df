"""`pytorch-gpu-anatomy distributed`: all that is measured on several GPUs, by one command."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from anatomy.cli import options
from anatomy.record.measuring import Measurer
from anatomy.table.errors import lookup

EXPERIMENTS = tuple(
    f"distributed.{each}" for each in ("collectives", "training", "overlap", "memory")
)
GpusOption = Annotated[
    int,
    typer.Option("--gpus", metavar="N", min=1, help="GPUs, one process for each, of all nodes."),
]
ScaleOption = Annotated[
    float, typer.Option(help="Share of the sizes that is used; less for a small machine.")
]
BlocksOption = Annotated[int, typer.Option(min=1, help="Blocks in which each way is timed.")]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="Only this one, such as collectives.")
]


def add(app: typer.Typer) -> None:
    """Add `distributed` to the application."""

    @app.command(
        epilog="Example: pytorch-gpu-anatomy distributed --gpus 2. On several nodes: torchrun "
        "--nnodes 2 --nproc-per-node 4 ... -m anatomy distributed --gpus 8"
    )
    def distributed(
        gpus: GpusOption = 2,
        device: options.DeviceOption = "cuda:0",
        scale: ScaleOption = 1.0,
        blocks: BlocksOption = 12,
        only: OnlyOption = None,
        remeasure: Annotated[
            bool, typer.Option("--remeasure", help="Measure what is current as well.")
        ] = False,
        budget: options.BudgetOption = None,
        allow_foreign: options.ForeignOption = False,
        save: options.SaveOption = None,
    ) -> None:
        """Measure on several GPUs: collectives, training steps, overlap and memory; and record it.

        Started as it is, it starts a process for each GPU. Started by torchrun, on each node of
        several, it is one of them.
        """
        from anatomy.record import recorder, recording, signatures
        from anatomy.record.processes import lanes, ranks

        given = {"device": device, "world_size": gpus, "scale": scale, "blocks": blocks}
        known = {name.partition(".")[2]: name for name in EXPERIMENTS}
        names = [lookup("experiment on several GPUs", each, known) for each in only or known]
        calls = []
        for name in names:
            takes = signatures.signature(name).defaults
            calls.append((name, {key: value for key, value in given.items() if key in takes}))
        root = save or recording.default_root()
        if ranks.inside():
            _as_rank(calls, root)
            return
        here = recorder.host.here()
        if here and not device.startswith("cpu"):
            lanes.cards(gpus)  # so many there are, or one error instead of four
        items = recorder.plan(calls, root, here)
        mode = "remeasure" if remeasure else "auto"
        how = {"mode": mode, "budget_s": budget, "allow_foreign": allow_foreign}
        outcome = recorder.record(items, root=root, **how)
        print(outcome.report(), file=sys.stderr)
        if outcome.failed:
            raise typer.Exit(1)


@dataclass(frozen=True)
class InPlace(Measurer):
    """Measures in the process that torchrun has started, which is one rank of several."""

    def _ask(self, name: str, params: dict, timeout_s: float, warm: Any) -> dict:
        from anatomy.record.processes import worker

        # Other ranks compute on this host, too.
        spec = {"experiment": name, "params": params, "allow_foreign": True, "package": None}
        return worker.measure({**spec, "spawned": time.time(), "process": "one of several ranks"})


def _as_rank(calls: list[tuple[str, dict[str, Any]]], root: Path) -> None:
    """Measure with the other ranks; the first of all saves what came of it."""
    from anatomy.record import occasions, recording, signatures

    first = os.environ["RANK"] == "0"
    for name, params in calls:
        found = InPlace(root).measure(name, params)
        if first:
            defaults = signatures.signature(name).defaults
            found = occasions.adding(found, root, defaults)
            print(f"saved as {recording.save(found, root, defaults=defaults)}", file=sys.stderr)
