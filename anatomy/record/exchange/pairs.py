"""Recordings of the same calls on two sides: two machines, or one before and after a change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anatomy.record import loading, recording, signatures
from anatomy.record.recording import Recording
from anatomy.table.errors import BadParameter, lookup

Call = tuple[str, tuple]  # an experiment's name, and its parameters in order


@dataclass(frozen=True)
class Side:
    """The recordings of one machine in a folder of recordings."""

    root: Path
    machine: str

    def recordings(self, loaded: Mapping[Path, Recording]) -> dict[Call, Recording]:
        """All of them by their call; `loaded` ones, by their files, are not read again.
        RecordingError where one can't be used."""
        files = loading.files(self.root, self.machine)
        every = (loaded.get(file) or recording.load(file) for file in files)
        return {_call(each): each for each in every}


@dataclass(frozen=True)
class Paired:
    """What two sides have recorded."""

    both: list[tuple[Recording, Recording]]  # the old one and the new one of each call
    only_old: list[Recording]
    only_new: list[Recording]


def paired(old: Side, new: Side, loaded: Mapping[Path, Recording] | None = None) -> Paired:
    """The recordings of both sides by call, in the order of the old ones and then of the new."""
    before, now = (each.recordings(loaded or {}) for each in (old, new))
    return Paired(
        [(before[call], now[call]) for call in before if call in now],
        [before[call] for call in before if call not in now],
        [now[call] for call in now if call not in before],
    )


def sides(old: Path, new: Path, machines: Sequence[str] = ()) -> list[tuple[Side, Side]]:
    """Which machines of two folders are held together: those of one name, else the only GPU of each
    side. `machines` are the one or two that were named. BadParameter where that leaves a choice,
    UnknownName for a machine without recordings."""
    known = [recording.machines(each) for each in (old, new)]
    if machines:
        named = (machines[0], machines[-1])
        both = zip(named, ({slug: slug for slug in each} for each in known), strict=True)
        found = [lookup("machine with recordings called", *each) for each in both]
        return [(Side(old, found[0]), Side(new, found[1]))]
    if same := [each for each in known[0] if each in known[1]]:
        return [(Side(old, each), Side(new, each)) for each in same]
    gpus = [
        sorted({recording.one_of(each) for each in slugs if not recording.of_a_cpu(each)})
        for slugs in known
    ]
    if [len(each) for each in gpus] != [1, 1]:
        has = (", ".join(slugs) or "none" for slugs in known)
        raise BadParameter(
            "Both sides have no machine in common: the old one has {}, the new one {}. Name one of "
            "each with --machine OLD --machine NEW.".format(*has)
        )
    return [(Side(old, gpus[0][0]), Side(new, gpus[1][0]))]


def _call(each: Recording) -> Call:
    """What was asked for: a parameter that an older version had not has its default."""
    known = signatures.experiments().get(each.experiment)
    whole = (known.defaults if known else {}) | each.params
    return each.experiment, tuple(sorted(whole.items()))
