"""The comparison of harnesses on a page, and the raw samples of a worked example."""

from anatomy.chapters.harnesses.contest import boards, scoreboard
from anatomy.figures import framing
from anatomy.figures.charts import figures
from anatomy.record.showing import current
from anatomy.table.errors import UnknownName


def harnesses(part: str, quantity: str = "gpu_cold", *, caption: str | None = None) -> str:
    """One part of the comparison of our stopwatch with the public ones, of all its recordings.

        harnesses("targets")
        harnesses("spread", "step_wall")

    Args:
        part: `targets`, `misses`, `spread`, `bias`, `coverage`, `errors` or `cost`.
        quantity: Of `spread` and `bias`: gpu_cold, gpu_warm or step_wall.
    """
    for kind, name, known in (
        ("part of the comparison", part, scoreboard.PARTS),
        ("quantity", quantity, scoreboard.QUANTITIES),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    found = boards.found(current())
    return framing.exhibit(found, caption, lambda: boards.part(found, part, quantity))


def samples(experiment: str, *, quantity: str | None = None, caption: str | None = None) -> str:
    """The raw samples of a control and of its duplicate, over the blocks they were taken in.

        samples("worked_example.kernel")

    Args:
        experiment: One that keeps them, by its defaults.

    Raises:
        BadParameter: It keeps none.
    """
    found = current().find(experiment)
    return framing.exhibit(
        found,
        caption,
        lambda: boards.samples(found, figures.rows_of(found, None, quantity=quantity)),
    )
