"""Recordings: the table that an experiment returned, with all it takes to trust it, in
RECORDINGS/MACHINE/EXPERIMENT/KEY.json. Rows are read, judged, through `Recording.rows` alone."""

import os
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from anatomy import judge
from anatomy.judge import limits
from anatomy.judge.comparisons import Circumstances
from anatomy.judge.limits import Ceilings
from anatomy.record import loading, reach, signatures
from anatomy.record.provenance import canonical, schema
from anatomy.table import columns, units
from anatomy.table.errors import AnatomyError, MeasurementError, RecordingError, UnknownName

# What reckoning with the rows of a file raises where they are not what their columns promise.
WRONG_ROWS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
STALE_S = 600  # no process takes as long to write a file
_TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.tmp$")  # as `write_whole` names them
SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


@dataclass(frozen=True)
class Recording:
    """One recording as loaded."""

    data: dict = field(repr=False)  # the file's fields; its `rows` lack what follows from them
    path: Path | None = None  # None where it never was in a file

    @property
    def machine(self) -> str:
        """Slug of the machine that it was measured on."""
        return self.data["machine"]["slug"]

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self.data["experiment"]

    @property
    def params(self) -> dict[str, Any]:
        """All parameters that the experiment was called with."""
        return self.data["params"]

    @property
    def warnings(self) -> list[str]:
        """What went on that a reader should know."""
        return self.data["warnings"]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows with all that follows from them; what was not measured is None."""
        kept = self.data["rows"]
        try:
            follows = judge.following(kept, circumstances(self.data, self.path))
            found = [
                row | {name: _rounded(value) for name, value in more.items()}
                for row, more in zip(kept, follows, strict=True)
            ]
            _require_within(found)
        except (MeasurementError, *WRONG_ROWS) as error:
            if self.path is None:
                raise
            raise RecordingError(
                f"{loading.place(self.path)} can't be used: its rows can't be judged, for {error} "
                f"Make it anew: pytorch-gpu-anatomy record {self.experiment}"
            ) from error
        return found

    @cached_property
    def noise_floor(self) -> dict[str, float]:
        """The noise floor of each comparison, by "op quantity"."""
        return judge.noise_floors(self.rows)

    @property
    def judged(self) -> dict[str, Any]:
        """The fields with these rows and floors in place of what the file keeps."""
        return self.data | {"rows": self.rows, "noise_floor": self.noise_floor}

    @property
    def table(self) -> pd.DataFrame:
        """The same rows as a table of its own; what was not measured is null."""
        return pd.DataFrame(self.rows)


def _require_within(rows: list[dict[str, Any]]) -> None:
    """Refuse a figure that does not lie in its own interval: one of both is wrong."""
    for row, (name, ends) in product(rows, columns.intervals().items()):
        value, low, high = (row.get(each) for each in (name, *ends))
        if not any(map(units.missing, (value, low, high))) and not low <= value <= high:
            raise MeasurementError(
                f"{name} of {row.get('op')}, {row.get('variant')} is {value:g}, outside of its own "
                f"interval, {low:g} to {high:g}."
            )


def _rounded(value: Any) -> Any:
    """A number, or a list of them, with as many digits as a file would keep."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{canonical.DIGITS}g}") if isinstance(value, float) else value


def key(parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """File name (without .json) of a recording: the parameters that are not the default."""
    given = {name: value for name, value in parameters.items() if value != defaults.get(name)}
    return loading.key(given)


def path(root: Path, machine: str, experiment: str, key: str) -> Path:
    """Where a recording stands; RecordingError for what can't be the name of a folder."""
    for what, name, form, example in (
        ("machine", machine, SLUG, "a slug is like nvidia-h200"),
        ("experiment", experiment, signatures.NAME, "a name is like contiguity.bench"),
    ):
        if not form.fullmatch(name):
            raise RecordingError(f"The {what} {name!r} can't name a folder; {example}.")
    return Path(root) / machine / experiment / f"{key}.json"


def save(recording: Mapping, root: Path, *, defaults: Mapping[str, Any] | None = None) -> Path:
    """Write the fields of a recording, whole or not at all, and return the file. `rows` may be a
    DataFrame; `schema` and `content_sha` are filled in. The experiment's `defaults`, by default
    those that its source declares, decide the file's name. Raises RecordingError where a field is
    missing or malformed, a text tells who or where, or the disk refused."""
    name = recording.get("experiment")
    try:
        data = canonical.plain_fields(recording)
        data.pop("columns", None)  # told anew, of these rows
        schema.check(data)
        schema.scrub(data)
        if defaults is None:
            defaults = signatures.signature(name).defaults
        target = path(root, data["machine"]["slug"], name, key(data["params"], defaults))
        data = canonical.compacted(data)
        data["content_sha"] = canonical.content_sha(data)
        text = canonical.render(canonical.shared(data))
        loading.checked(text.encode(), target)  # what could not be read is not written
    except ValueError as error:
        raise RecordingError(
            f"The recording of {name} was not written, because {error}. Mend the experiment, or "
            "what describes the machine."
        ) from None
    try:
        write_whole(target, text)
    except OSError as error:
        raise RecordingError(
            f"The recording {loading.place(target)} could not be written: "
            f"{error.strerror or error}. Nothing was changed. Make room or give write access "
            "there, or choose another folder with --save DIR."
        ) from None
    return target


def make_ready(folder: Path) -> None:
    """Make a folder of recordings, and remove what a killed process left half-written in it.
    RecordingError where nothing could be saved there, so that it is said before measuring."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wrong = None if os.access(folder, os.W_OK) else "Permission denied"
    except (FileExistsError, NotADirectoryError):
        wrong = "It is a file, or in one"
    except OSError as error:
        wrong = error.strerror
    if wrong:
        raise RecordingError(
            f"Nothing can be saved in {folder}: {wrong}. Name a folder that can be written, with "
            "--save DIR or in the environment as ANATOMY_RECORDINGS."
        )
    for left in (*folder.glob("*/.*.tmp"), *folder.glob("*/*/.*.tmp")):
        with suppress(OSError):
            if _TEMPORARY.search(left.name) and time.time() - left.stat().st_mtime > STALE_S:
                left.unlink()


def write_whole(target: Path, content: str | bytes, *, lasting: bool = True) -> None:
    """Put `content` in the place of `target` in one step, so that no reader sees a part of it. What
    is not `lasting`, a cache, may be gone after a power cut."""
    # In the same folder, because a rename is only atomic within one file system.
    temporary = target.parent / f".{target.stem[:40]}.{secrets.token_hex(4)}.tmp"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):  # the first error says what is wrong with this folder
            temporary.unlink(missing_ok=True)
        raise


def load(path: Path) -> Recording:
    """Read a recording and check all of it. Raises RecordingError where it can't be read, is cut
    off, was edited, is no recording, or is one of a newer schema. The message names the command
    that makes it anew."""
    return loading.once(_load, path)


def _load(path: Path) -> Recording:
    return Recording(loading.read(path), Path(path))


def find(root: Path, machine: str, name: str, /, **params: Any) -> Recording | None:
    """The recording of one call on one machine, or None; parameters left out are the defaults.
    Raises UnknownName or BadParameter for an impossible call, RecordingError where it can't be
    used."""
    declared = signatures.signature(name)
    wanted = declared.bind(**params)
    there = on_several(machine, wanted)
    expected = path(root, there, name, key(wanted, declared.defaults))
    if os.path.lexists(expected):  # whatever it is: `load` tells
        found = load(expected)
        if found.params == wanted:
            return found
    # After a default has changed, older files keep the names that the old defaults gave them. One
    # that can't be read is reported when it is asked for itself.
    for other in filter(loading.is_one, sorted(expected.parent.glob("*.json"))):
        with suppress(RecordingError):
            if other != expected and (found := load(other)).params == wanted:
                return found
    return None


def on_several(machine: str, params: Mapping[str, Any]) -> str:
    """Slug of the machine that a call measures, `nvidia-h200-x2` where it takes two such GPUs."""
    gpus = 1 if on_cpu(params) else params.get("world_size", 1)
    return one_of(machine) + (f"-x{gpus}" if gpus > 1 else "")


def one_of(machine: str) -> str:
    """Slug of one GPU of a machine of several alike."""
    return machine if of_a_cpu(machine) else re.sub(r"-x\d+$", "", machine)


def on_cpu(params: Mapping[str, Any]) -> bool:
    """Whether a call with these parameters measures on a CPU, which is a machine of its own."""
    return str(params.get("device", "cpu")).startswith("cpu")


def of_a_cpu(slug: str) -> bool:
    """Whether a machine is a CPU: what runs there is shown beside the figures of any GPU."""
    return slug.startswith("cpu-")


def find_on_cpu(root: Path, first: str | None, name: str, /, **params: Any) -> Recording | None:
    """`find` on a CPU, of the CPU `first` if that has such a recording."""
    cpus = sorted(filter(of_a_cpu, machines(root)), key=lambda slug: (slug != first, slug))
    there = (find(root, slug, name, **params) for slug in cpus)
    return next(filter(None, there), None)


def all_recordings(
    root: Path, machine: str | None = None, *, broken: list[RecordingError] | None = None
) -> list[Recording]:
    """Every recording, or one machine's, in order of machine, experiment and key; where `broken` is
    given, errors of files that can't be used are added to it, not raised."""
    found = []
    for file in loading.files(root, machine):
        try:
            found.append(load(file))
        except RecordingError as error:
            if broken is None:
                raise
            broken.append(error)
    return found


def machines(root: Path) -> list[str]:
    """Slugs of the machines that have recordings."""
    return sorted({file.parent.parent.name for file in loading.files(root)})


def known_machine(root: Path, slug: str) -> str:
    """`slug`, which somebody named; UnknownName, with the nearest, where only others are recorded,
    for each of its figures would be a gap. A CPU is no other: it stands beside any machine."""
    known = machines(root)
    if slug not in known and not all(map(of_a_cpu, known)):
        raise UnknownName("machine with recordings called", slug, known)
    return slug


def default_root() -> Path:
    """Folder of the recordings: ANATOMY_RECORDINGS, else recordings/ of the checkout if in one."""
    if given := os.environ.get("ANATOMY_RECORDINGS"):
        return Path(given)
    checkout = signatures.PACKAGE.parent
    if (checkout / "mkdocs.yml").is_file():
        return checkout / "recordings"
    raise RecordingError(
        "This is no checkout of the project, so there is no folder of recordings. Go to a "
        "checkout, or name a folder of recordings in the environment as ANATOMY_RECORDINGS."
    )


def local_root() -> Path:
    """`default_root`, or outside of a checkout ./recordings, where `pytorch-gpu-anatomy limits
    --save recordings` puts a machine's ceilings."""
    with suppress(RecordingError):
        return default_root()
    return Path("recordings")


def circumstances(data: dict, path: Path | None = None) -> Circumstances:
    """What the fields of a recording say of how its rows were measured; the folder of recordings
    that its file, `path`, is in may hold the machine's ceilings, and how its occasions differ."""
    machine = data["machine"]

    @cache  # many rows may ask
    def known() -> Ceilings | None:
        if data["experiment"] == limits.EXPERIMENT:  # they can't be held against themselves
            return Ceilings(machine["slug"], limits.from_datasheet(machine.get("gpu")))
        return known_ceilings(machine["slug"], path.parents[2] if path else None)

    earlier = [each["figures"] for each in data.get("occasions", ())]
    beyond = partial(reach.read, path.parents[2] if path else local_root(), machine["slug"])
    method = data.get("method") or {}
    return Circumstances(data["experiment"], machine, method, known, earlier, beyond)


def known_ceilings(slug: str, root: Path | None = None) -> Ceilings | None:
    """As `ceilings`, by default of `local_root`, but None where a recording can't be read."""
    with suppress(AnatomyError):
        return ceilings(root or local_root(), slug)
    return None


def ceilings(root: Path, machine: str) -> Ceilings:
    """Ceilings of a machine: the best measured where recorded, the maker's for the rest; of several
    GPUs, as in `nvidia-h200-x4`, those of one. RecordingError where one can't be used. A quick
    look, below `limits.LEAST_SCALE`, does not count."""
    one = one_of(machine)
    files = sorted((Path(root) / one / limits.EXPERIMENT).glob("*.json"))
    found = map(load, filter(loading.is_one, files))
    recorded = [each for each in found if each.params.get("scale", 1) >= limits.LEAST_SCALE]
    gpu = next((each.data["machine"]["gpu"] for each in recorded), None)
    folder = f"{one}/{limits.EXPERIMENT}"
    rows = [(row, f"{folder}/{each.path.name}") for each in recorded for row in each.rows]
    datasheet = limits.from_datasheet(gpu) or limits.from_datasheet(one)
    return Ceilings(machine, datasheet | limits.measured(rows))
