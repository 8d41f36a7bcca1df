"""The decorator that makes a function an experiment. `signatures` reads it from the source, so its
arguments must be literals, and every parameter of the function needs a type and a default."""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from anatomy.record import signatures
from anatomy.table.errors import AnatomyError

Function = TypeVar("Function", bound=Callable[..., pd.DataFrame])

LOADED: dict[str, Callable[..., pd.DataFrame]] = {}


def experiment(
    name: str,
    *,
    page: str | None = None,
    command: str | None = None,
    timeout_s: float = signatures.TIMEOUT_S,
    files: Sequence[str] = (),
    processes: int = signatures.PROCESSES,
    on_request: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as an experiment, which then refuses arguments that are not possible
    wherever it is called.

    It returns one tidy table with the columns of `compare`, if it times anything, and its own; what
    a column means, columns.toml of its chapter says. What can't be measured has a row whose `note`
    says why, also where the device has too little memory or lacks a number format: what it takes,
    requirements.py of its chapter says. It raises BadParameter where an argument is not possible,
    and DeviceError where the device is not there. Its docstring says what is compared with what;
    parameters that many have, `signatures.SHARED_HELP` explains.

    Args:
        name: `topic.what`, as pages and commands write it.
        page: The page that explains it, relative to docs/.
        command: Another command that runs it beside the regular one, `topic-what`: a chapter's own,
            such as `c01 contiguity-bench`, or a short one.
        timeout_s: Seconds after which the recorder gives up on it; on each process, of several.
        files: Files it depends on beside the package's code, relative to the checkout.
        processes: Fresh processes that the recorder measures it in. Their tables become one, and
            three or more may claim a difference under 2 %; see `anatomy.judge.replication`.
        on_request: Whether it is measured only where somebody names it: too long for a site build.

    Raises:
        AnatomyError: Two modules claim one name.
    """

    def register(function: Function) -> Function:
        known = LOADED.setdefault(name, function)
        if known.__module__ != function.__module__:
            raise AnatomyError(
                f"Two experiments are called {name}: in {known.__module__} and in "
                f"{function.__module__}. Rename one of them."
            )

        @functools.wraps(function)
        def checked(*args: Any, **given: Any) -> pd.DataFrame:
            package = sys.modules[function.__module__.partition(".")[0]]
            declared = checked.declared or signatures.signature(name, Path(package.__path__[0]))
            named = inspect.signature(function).bind(*args, **given).arguments
            return function(**declared.bind(**named))

        checked.declared = None  # its signature, where `load` has read it
        LOADED[name] = checked
        return checked

    return register


def load(name: str, root: Path | None = None) -> Callable[..., pd.DataFrame]:
    """Import the module of an experiment, and torch with it, and return its function. `root` is the
    folder of another package that has it; its parent joins `sys.path`. Raises UnknownName where
    there is none such, and AnatomyError where importing did not register it."""
    declared = signatures.signature(name, root)
    if root is not None and (above := str(Path(root).resolve().parent)) not in sys.path:
        sys.path.insert(0, above)
    importlib.import_module(declared.module)
    if name not in LOADED:
        raise AnatomyError(
            f"{declared.module} defines {declared.function}, and importing it did not register "
            f"{name}: decorate it with anatomy.record.declare.experiment, at the top level."
        )
    LOADED[name].declared = declared
    return LOADED[name]
