"""A reader's own script, diagnosed in a fresh process: its `step()`, fed by its `batches()`. That
process runs this module; what it finds comes back as JSON in a file, so that the reader's script
may print, and crash, as it likes."""

import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from anatomy.diagnosis.plain_functions import require_run
from anatomy.machine import host, versions
from anatomy.record.processes import isolation
from anatomy.table.errors import AnatomyError, BadParameter, MeasurementError, UnknownName

VARIABLE = "ANATOMY_DIAGNOSIS"  # where the child writes what it found
SETUP, BATCHES = "setup", "batches"  # what a script may define beside its step
# A script's module where another one has its name already, such as that of a script `random.py`.
OTHER_NAME = "anatomy_diagnosis"


def diagnose_script(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    function: str = "step",
    device: str = "cuda:0",
    timeout_s: float | None = None,
    heard: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Diagnose the step that a function of a script is, in a fresh process. `heard` is called with
    each line that the script prints; a MeasurementError has the last ones as its `output`. Returns
    `text`, the diagnosis as it prints itself, and `diagnosis`, the same as plain values."""
    if not script.is_file():
        advice = f"Name a Python file that defines {function}()."
        raise BadParameter(f"There is no script {script}. {advice}")
    versions.require_torch()
    host.parse_device(device)
    # -P: modules come from beside the script, as ever, and not from the current folder.
    command = ["-P", "-m", "anatomy.diagnosis.scripts", str(script), function, device, *arguments]
    with (
        isolation.only_recorder(),
        isolation.script_run(
            command, name=str(script), variable=VARIABLE, timeout_s=timeout_s, heard=heard
        ) as file,
    ):
        if not file.is_file():
            raise MeasurementError(
                f"{script} ended by itself before its {function}() could be diagnosed. Take out "
                "what leaves the process, such as sys.exit()."
            )
        found = json.loads(file.read_text(encoding="utf-8"))
    if "error" in found:
        error = isolation.revive(found["error"], found["message"])
        error.output = found["output"]
        raise error
    return found


def main(arguments: Sequence[str]) -> None:
    """What the fresh process does: diagnose the step, and write what was found."""
    script, function, device, *rest = arguments
    file = Path(os.environ[VARIABLE])
    try:
        found = _diagnosed(script, function, device, rest)
    except AnatomyError as error:
        output = getattr(error, "output", "")
        found = {"error": type(error).__name__, "message": str(error), "output": output}
    file.write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    leave()


def leave(status: int = 0) -> NoReturn:
    """End this process without waiting for threads that a script left behind."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _diagnosed(script: str, function: str, device: str, rest: Sequence[str]) -> dict[str, Any]:
    """Load the script, call its `setup()`, and diagnose its step with what `batches()` yields."""
    host.require_device(device)  # before the script runs for minutes
    sys.argv = [script, *rest]
    sys.path.insert(0, str(Path(script).resolve().parent))
    module = _or_failure(f"{script} could not be loaded", _loaded, Path(script))
    found = vars(module)
    if not callable(step := found.get(function)):
        own = (each for each in found.values() if inspect.isfunction(each))
        known = [each.__name__ for each in own if each.__module__ == module.__name__]
        raise UnknownName(f"function in {script} called", function, known)
    if callable(setup := found.get(SETUP)):
        require_run(f"{SETUP}()", _or_failure(f"{SETUP}() of {script} failed", setup))
    batches = found.get(BATCHES)
    inputs = batches if callable(batches) else None
    wanted = [
        each
        for each in inspect.signature(step).parameters.values()
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(wanted) != (1 if inputs else 0):
        needs = f"{function}() takes {', '.join(each.name for each in wanted) or 'nothing'}"
        advice = f"it must take nothing, or one batch of a function {BATCHES}() that yields them"
        if inputs:
            advice = f"with {BATCHES}() in the script it must take one batch"
        raise BadParameter(f"{needs}; {advice}.")
    from anatomy.diagnosis.readers import diagnose  # and torch with it

    name = f"{function}() of {Path(script).name}"
    given = {"inputs": inputs, "device": device, "name": name}
    seen = _or_failure(f"{name} failed", diagnose, step, **given)
    return {"text": str(seen), "diagnosis": seen.as_dict()}


def _loaded(script: Path) -> ModuleType:
    """The script as a module, and not as `__main__`, which would run the whole program."""
    # Known by its name, so that its classes reach a DataLoader's workers.
    name = OTHER_NAME if script.stem in sys.modules else script.stem
    spec = importlib.util.spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise BadParameter(f"{script} is no Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _or_failure(what: str, act: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `act` returns; what it raises becomes one sentence with the end of its traceback."""
    try:
        return act(*given, **named)
    except AnatomyError:
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "")
        failure = MeasurementError(f"{what}: {type(error).__name__}: {first}")
        lines = "".join(traceback.format_exception(error)).strip().splitlines()
        failure.output = "\n".join(lines[-isolation.TAIL_LINES :])
        raise failure from None


if __name__ == "__main__":
    main(sys.argv[1:])
