"""Named errors: what is wrong, what was got, and what to do about it, in complete sentences. Every
error the package raises on purpose derives from `AnatomyError`, so that the command line can print
its message alone and leave with its `exit_status`. Anything else is a bug and shows its
traceback."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TypeVar

Value = TypeVar("Value")
MOST_LISTED = 20  # known names that a message lists; of more it tells the NEAREST
NEAREST = 5
MOST_SAID = 200  # characters of a name that is not known


class AnatomyError(Exception):
    """Something a person can mend; the message says how. Commands leave with status 1."""

    exit_status = 1


class RecordingError(AnatomyError):
    """A recording that can't be read, trusted or written."""


class MeasurementError(AnatomyError):
    """A measurement that would have given a wrong number and was stopped instead."""


class DisagreementError(AnatomyError):
    """A variant computes something else than its reference; it is not timed."""


class BadParameter(AnatomyError):
    """A parameter has a value that the experiment can't take. Status 2, as for bad usage."""

    exit_status = 2


class UnknownName(AnatomyError):
    """A name that is none of the known ones of its kind. Status 2, as for bad usage. The message
    suggests the closest of them and lists them all, or the nearest of many."""

    exit_status = 2

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, str(name), sorted(known)
        self.suggestions = close_names(self.name, self.known)
        message = f"There is no {kind} {self.name[:MOST_SAID]!r}."
        if self.suggestions:
            message += f" Did you mean {self.suggestions[0]!r}?"
        if len(self.known) > MOST_LISTED:
            nearest = close_names(self.name[:MOST_SAID], self.known, NEAREST, 0.0)
            listed = f"The nearest of {len(self.known)}: {', '.join(nearest)}."
        else:
            listed = f"Known: {', '.join(self.known) or 'none'}."
        super().__init__(f"{message} {listed}")

    def __reduce__(self):
        # The default would rebuild the error from its message alone and fail.
        return type(self), (self.kind, self.name, self.known)


class DeviceError(AnatomyError):
    """The device asked for is not there, or can't do what was asked of it. Status 3."""

    exit_status = 3


class OutOfMemory(AnatomyError):
    """The tensors do not fit, or did not fit when they were made. Status 4."""

    exit_status = 4


class Busy(AnatomyError):
    """Another build or recorder is at work on the same recordings or device. Status 5."""

    exit_status = 5


@contextmanager
def told_in_python() -> Iterator[None]:
    """Name the keywords of a function where an error's advice names the options of a command."""
    try:
        yield
    except AnatomyError as error:
        told = str(error).replace("--device cpu", "device='cpu'")
        error.args = (told.replace("--allow-foreign", "allow_foreign=True"),)
        raise


def lookup(kind: str, name: str, known: Mapping[str, Value]) -> Value:
    """What `known` has under `name`, or an UnknownName of this `kind`."""
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def close_names(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Names close to `name`, best first; letter case and `-` for `_` do not count as far."""
    plain = {known_name.casefold().replace("-", "_"): known_name for known_name in known}
    found = get_close_matches(name.casefold().replace("-", "_"), plain, n=most, cutoff=cutoff)
    return [plain[key] for key in found]
