"""`python3 make.py method`: whether the measuring room still does what METHOD.json says.

    make.py method                              compare, and say what differs
    make.py method -- --verify                  take over code whose traces are the same
    make.py method -- --raise --because "..."   make a new method; every recording is stale then
    make.py method -- --table                   what is seen of an edit, and what is not held
                                                against it

The file is written here and nowhere else; see `anatomy.record.provenance.method` for what is in it.
"""

import argparse
import ast
import base64
import datetime
import json
import sys
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from anatomy.record import signatures
from anatomy.record.provenance import method
from anatomy.record.provenance.syntax import normalised
from anatomy.table.errors import AnatomyError
from tests.fakes import fake_driver, fake_gpu
from tests.measure.method import scenarios, scenarios_beside, traced_gpu, traces
from tests.measure.method.traced_gpu import OPERATIONS
from tests.measure.method.traces import SCENARIOS, Trace, traced

INSTRUMENT = (
    *(fake_driver, fake_gpu, traced_gpu, traces),
    *(scenarios, scenarios_beside),
)
LINE = 96  # characters of packed letters in a line of the file
Traces = Mapping[str, Trace]


def main() -> int:
    """Do what the command line asks for. Returns the exit status: 1 if something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--verify", action="store_true")
    what.add_argument("--raise", action="store_true", dest="anew")
    what.add_argument("--table", action="store_true")
    parser.add_argument("--because", default="", help="why the method changes, in a sentence")
    asked = parser.parse_args()
    if asked.table:
        from tests.measure.method import edits

        print(edits.table())
        return 0
    try:
        if asked.anew:
            said = raise_method(signatures.PACKAGE, asked.because)
        elif asked.verify:
            said = verify(signatures.PACKAGE)
        else:
            found = differences(signatures.PACKAGE)
            print("\n".join(found) or "The room does what METHOD.json says.")
            return 1 if found else 0
    except AnatomyError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    print(said)
    return 0


def run_all() -> Traces:
    """The trace of every scenario."""
    return {name: traced(each) for name, each in SCENARIOS.items()}


def differences(root: Path, traces: Traces | None = None) -> list[str]:
    """How the room in the package at `root` differs from its METHOD.json, one line each."""
    golden = method.load(root)
    now = method.read(root)
    found = [*method.changes(golden, now), *trace_differences(golden, traces or run_all())]
    if found:
        return [
            *found,
            f"This is no longer method {golden['number']}. Undo it; or, if it is meant, make it a "
            'new method (make.py method -- --raise --because "..."), with which every timed '
            "recording must be measured again.",
        ]
    if golden["code"] != now.code or golden["instrument"] != instrument():
        return ["The same traces by other code: take it over with make.py method -- --verify."]
    return []


def trace_differences(golden: Mapping, traces: Traces) -> list[str]:
    """Scenarios whose traces differ from the file's, each with the first operation that does."""
    kinds = unpacked(golden["operations"], golden["scenarios"])
    names = {letter: kind for kind, letter in OPERATIONS.items()}
    found = []
    for name in sorted({*golden["scenarios"], *traces}):
        if name not in traces or name not in golden["scenarios"]:
            found.append(f"{name}: {'no such' if name not in traces else 'a new'} scenario")
            continue
        then, now = golden["scenarios"][name].split(), traces[name]
        if then == summary(now).split():
            continue
        was, did = kinds[name], now.kinds
        first = next((i for i, (a, b) in enumerate(zip(was, did, strict=False)) if a != b), None)
        if first is None and len(was) != len(did):
            first = min(len(was), len(did))
        if first is not None:
            wanted, got = (
                names[each[first]] if first < len(each) else "the end" for each in (was, did)
            )
            found.append(f"{name}, operation {first}: expected {wanted}, got {got}")
        elif then[1] != now.operations:
            found.append(f"{name}: the same {len(did)} operations with other lengths or bytes")
        else:
            found.append(f"{name}: the same {len(did)} operations, other figures made of them")
    return found


def verify(root: Path, traces: Traces | None = None) -> str:
    """Take over code, or scenarios, that leave the method as it is. Returns what was done.

    Raises:
        AnatomyError: They do not, or it can't be told.
    """
    golden, now, traces = method.load(root), method.read(root), traces or run_all()
    if changed := method.changes(golden, now):
        raise AnatomyError(f"The method itself has changed: {'; '.join(changed)}.")
    same_instrument = golden["instrument"] == instrument()
    if differing := trace_differences(golden, traces):
        # Other scenarios on the very code that the old ones saw are new questions, no new answers.
        if same_instrument or golden["code"] != now.code:
            raise AnatomyError(
                "\n".join(differing) + "\nThe room does something else, or scenarios and room "
                "changed at once: verify one of them alone first."
            )
    elif same_instrument and golden["code"] == now.code:
        return f"Method {golden['number']} as it was; there was nothing to verify."
    write(root, golden | {"code": now.code} | seen(traces))
    return f"Method {golden['number']} as it was: {len(traces)} scenarios, the same traces."


def raise_method(root: Path, because: str, traces: Traces | None = None) -> str:
    """Make a new method of what the room does now. Returns its id in a sentence.

    Raises:
        AnatomyError: Nothing has changed, or no reason is given.
    """
    if not because.strip():
        raise AnatomyError('Say why: make.py method -- --raise --because "...".')
    now, traces = method.read(root), traces or run_all()
    golden = method.load(root) if (root / method.FILE).exists() else None
    number, history = 1, []
    if golden is not None:
        changed = [*method.changes(golden, now), *trace_differences(golden, traces)]
        if not changed:
            raise AnatomyError(f"Nothing differs from method {golden['number']}.")
        number, history = golden["number"] + 1, golden["history"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    whole = {"constants": dict(now.constants), "hot_path": now.hot_path, **seen(traces)}
    id_ = f"{number}-{method.short_hash(whole)[:8]}"
    line = {"number": number, "id": id_, "date": today, "because": because.strip()}
    write(
        root, {"id": id_, "number": number, "history": [*history, line], "code": now.code} | whole
    )
    return f"This is method {id_}. Every timed recording must now be measured again."


def write(root: Path, golden: Mapping) -> None:
    """Write METHOD.json and seal it."""
    text = json.dumps({**golden, "seal": method.short_hash(golden)}, indent=1, sort_keys=True)
    (root / method.FILE).write_text(text + "\n", encoding="utf-8")


def seen(traces: Traces) -> dict:
    """What the file keeps of the traces, and of what they were taken with."""
    letters = "".join(traces[name].kinds for name in sorted(traces))
    packed = base64.b85encode(zlib.compress(letters.encode(), 9)).decode()
    return {
        "instrument": instrument(),
        "scenarios": {name: summary(trace) for name, trace in traces.items()},
        "operations": [packed[at : at + LINE] for at in range(0, len(packed), LINE)],
    }


def summary(trace: Trace) -> str:
    """A trace in one line: how many operations, their digest, and that of the figures."""
    return f"{len(trace.kinds)} {trace.operations} {trace.figures}"


def unpacked(lines: list[str], scenarios: Mapping[str, str]) -> dict[str, str]:
    """The letters of each scenario's operations."""
    kinds, found = zlib.decompress(base64.b85decode("".join(lines))).decode(), {}
    for name in sorted(scenarios):
        count = int(scenarios[name].split()[0])
        found[name], kinds = kinds[:count], kinds[count:]
    return found


def instrument() -> str:
    """Hash of the virtual GPU and of the scenarios, without their words."""
    texts = [
        normalised(statement)
        for module in INSTRUMENT
        for statement in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    ]
    return sha256("\n".join(texts).encode()).hexdigest()[:32]


if __name__ == "__main__":
    sys.exit(main())
