"""`pytorch-gpu-anatomy distributed`: all that is measured on several GPUs, by one command."""

import os
import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from anatomy.cli import options
from anatomy.record.measuring import Measurer
from anatomy.table.errors import BadParameter, lookup

EXPERIMENTS = {
    each: f"distributed.{each}" for each in ("collectives", "training", "overlap", "memory")
}
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
        budget: options.BudgetOption = None,
        save: options.SaveOption = None,
    ) -> None:
        """Measure on several GPUs what is not current, and record it.

        Collectives, training steps, overlap and memory. Started as it is, it starts a process for
        each GPU. Started by torchrun, on each node of several, it is one of them.
        """
        from anatomy.record import occasions, recorder, recording, signatures
        from anatomy.record.processes import lanes, ranks

        root = save or recording.default_root()
        given = {"device": device, "world_size": gpus, "scale": scale, "blocks": blocks}
        calls = []
        for each in only or EXPERIMENTS:
            name = lookup("experiment on several GPUs", each, EXPERIMENTS)
            defaults = signatures.signature(name).defaults
            calls.append((name, {key: value for key, value in given.items() if key in defaults}))
        if ranks.inside():
            for name, params in calls:
                found = InPlace(root).measure(name, params)
                if os.environ["RANK"] == "0":
                    defaults = signatures.signature(name).defaults
                    recording.save(occasions.adding(found, root, defaults), root, defaults=defaults)
            return
        if (tasks := os.environ.get("SLURM_STEP_NUM_TASKS", "1")) != "1":
            raise BadParameter(
                f"srun started {tasks} tasks, and each of them would measure by itself: have it "
                "start one torchrun on each node, which starts the ranks. The page on several GPUs "
                "shows the line."
            )
        here = recorder.host.here()
        if here and not device.startswith("cpu"):
            lanes.cards(gpus)  # so many there are, or one error instead of four
        items = recorder.plan(calls, root, here)
        outcome = recorder.record(items, root=root, budget_s=budget)
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
