"""A hash of the code that makes a number, by content, the same on every Python from 3.11 on.

A recording is stale when the code that measured it has changed, and only then. So the hash is taken
definition by definition: of the normalised syntax (`syntax`), in which each name of this package is
replaced by the hash of what it names. Statements that run when a reached module is imported count
with what is in it. Names and places of modules and helpers do not count; names of parameters,
methods and columns do.

Not followed are the measuring room, for which METHOD's id stands, what words, keeps or judges
numbers (`Layout.unfollowed`), and other packages. A name used in a way that can't be followed (a
module passed as a value, `getattr`) counts as all of that module, and where reached code reads a
`__name__`, functions handed on as values count with theirs: hashing too much costs a measurement,
too little the truth."""

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from anatomy.record import signatures
from anatomy.record.provenance import method
from anatomy.record.provenance.content import UNFOLLOWED, CodeHash, Definitions, Layout, digest
from anatomy.record.provenance.definitions import parsed, remembered
from anatomy.record.provenance.syntax import is_text, normalised
from anatomy.table.errors import AnatomyError

SCHEME = 2  # raised when the hash of unchanged code would come out otherwise; recordings carry it
PACKAGE_NAME = signatures.PACKAGE.name
# The door that judges what the measuring room took; it stands for the method as the room does.
JUDGED_COMPARISON = "comparison"


def present(root: Path) -> Layout:
    """How this version of the package is laid out, and the method that the one in `root` follows;
    code of the room that differs from what METHOD.json was made of has an id of its own."""
    standing = method.standing(root)
    number = standing.id if standing.differences else standing.id.partition("-")[0]
    return Layout((method.ROOM, JUDGED_COMPARISON), UNFOLLOWED, number)


def code_hash(
    name: str, parameters: Mapping[str, Any] | None = None, *, root: Path | None = None
) -> CodeHash:
    """Hash of the experiment `name`, of the package in `root`: all code that it reaches, its files
    and its parameters. Raises UnknownName or BadParameter for a call that is not possible, and
    AnatomyError where a declared file is missing, or one does not parse."""
    root = Path(root or signatures.PACKAGE).resolve()
    declared = signatures.signature(name, root)
    module = declared.module.partition(".")[2]
    bound = declared.bind(**(parameters or {}))
    sources = signatures.sources(root)
    reached = _package(root.name, sources, present(root)).reached(module, declared.function)
    parts = [str(SCHEME), reached.hash]
    files = {f"{root.name}/{file}" for file in reached.files}
    for file in sorted(set(declared.files)):
        try:
            content = (root.parent / file).read_bytes()
        except OSError as error:
            raise AnatomyError(
                f"{module}.{declared.function} declares the file {file}, which can't be read: "
                f"{error.strerror}. It is part of a checkout of the project; looked for it in "
                f"{root.parent}."
            ) from None
        parts.append(_file_hash(file, content))
        files.add(file)
    return CodeHash(digest(*parts, json.dumps(dict(bound), sort_keys=True)), sorted(files))


@cache
def _file_hash(file: str, content: bytes) -> str:
    """Hash of a declared file: of a script its normalised syntax, of anything else its bytes."""
    if not file.endswith(".py"):
        return sha256(content).hexdigest()
    statements = [each for each in parsed(content, file).body if not is_text(each)]
    return digest(",".join(normalised(each, package=PACKAGE_NAME) for each in statements))


@remembered
def _package(name: str, sources: tuple[tuple[str, bytes], ...], layout: Layout) -> Definitions:
    """A package with these sources; only an edit makes a new one."""
    return Definitions(name, sources, layout)
