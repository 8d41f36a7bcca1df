"""The code's hash is the same on every Python that is here."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from anatomy.record import signatures
from anatomy.record.provenance.codehash import code_hash
from tests.record.provenance.test_codehash import toys as toys

TRICKY = '''
import asyncio
from dataclasses import dataclass

def fstrings(x, width=3):
    return (f"{x!r:>{width}}" f"plain" "and" f"{x=}" f"{x:.2f}é\\n{{}}" f"{'a' 'b'}" f""
            f"only text" rf"\\d{x}" f"{x:}" f"a" "b" f"c{x}" "" f"{f'{x}' + 'in'}\\N{BULLET}")

def arguments(a, b=1, /, c=2, *rest, d, e=-1, **more): return lambda x, *, y=None: (x, y, *rest)
async def waits(x):
    async with x as y, x: return [z async for z in y if await z]
def matches(x):
    match x:
        case {"a": [1, *rest], **others} if (n := len(others)): return rest, n
        case str() | None: return ...
        case object(real=0.5 as half): return half
        case _: raise ValueError from None
def groups():
    try: pass
    except* (OSError, ValueError) as group: del group
    else: return {**{}, "a": 1, 2: (yield)}
    finally: nonlocal_ = 1j, b"\\x00\\xff", 10**400, 1e400, "\\u2028\\U0001fae8\\ud800"
@dataclass
class Kept:
    """Doc."""
    value: int = 1
    """Doc of the attribute."""
    def only_doc(self):
        """Doc."""
X = [fstrings, arguments, waits, matches, groups, Kept, not 1 < 2 <= 3 if 4 else 5, X[1:2, ::3]]

@experiment("hard.tricky")
def tricky(m: int = 1, *, text: str = "\\u00e9") -> "int": return X
'''


@cache
def interpreters():
    """Every Python from 3.11 on that this machine has, by version."""
    found = {}
    places = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    places += [shutil.which(f"python3.{minor}") for minor in range(11, 16)] + [sys.executable]
    ask = "import sys; print(*sys.version_info[:2], sep='.')"
    for place in filter(None, places):
        ran = subprocess.run([place, "-c", ask], capture_output=True, text=True)
        version = ran.stdout.strip()
        if ran.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 11):
            found.setdefault(version, str(place))
    return found


HASH_ALL = """
import json, sys
from functools import cache
sys.path.insert(0, sys.argv[1])
from anatomy.record import signatures
signatures.sources = cache(signatures.sources)  # nobody edits them while this runs
from anatomy.record.provenance.codehash import code_hash
root = sys.argv[2] or None
print(json.dumps({name: code_hash(name, root=root).hash for name in signatures.experiments(root)}))
"""


@cache
def hashes_here(root: Path | None) -> dict[str, str]:
    return {name: code_hash(name, root=root).hash for name in signatures.experiments(root)}


@pytest.mark.parametrize("minor", range(11, 15))
def test_the_hash_is_the_same_on_every_python(toys, minor):
    python = interpreters().get(f"3.{minor}")
    if python is None:
        pytest.skip(f"this machine has no Python 3.{minor}")
    (toys / "experiments" / "hard.py").write_text(TRICKY)
    for root in (toys, None):  # the toys, and the package itself
        ran = subprocess.run(
            [python, "-S", "-c", HASH_ALL, str(signatures.PACKAGE.parent), str(root or "")],
            capture_output=True,
            text=True,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == hashes_here(root)
        assert hashes_here(root)
