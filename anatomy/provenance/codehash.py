"""A hash of the code that makes a number, the same on every Python from 3.11 on.

A recording is stale when the code that measured it has changed, and only then: not when a file
was touched, a comment was written, or another experiment in the same file was edited. So the hash
is taken definition by definition. It starts at the experiment's function, follows every
module-level name that a definition uses, through the imports of this package, and covers what
this reaches, with the statements that run when a reached module is imported.

Dropped, because they can't change a number: comments, docstrings, formatting, the annotations of
functions, and the `@experiment(...)` decorator, which only says where the result is shown.
`ast.dump` won't do: it prints fields that came with later versions of Python.

Not followed are the modules in BOOKKEEPING: they word numbers and keep them, and make none.

A name that is used in a way that can't be followed (a module passed as a value, `getattr`) counts
as a use of everything in that module: hashing too much costs a measurement, too little the truth.
"""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from anatomy import signatures
from anatomy.errors import AnatomyError
from anatomy.provenance.syntax import NAMED_MODULE, bound_names, is_text, names_used, serialized

# Rewording an error or adding a field to recordings must not cost a measurement.
BOOKKEEPING = frozenset(
    {"docstrings", "errors", "handover", "printing", "recording", "signatures", "units"}
    | {f"provenance.{name}" for name in ("canonical", "codehash", "freshness", "schema", "syntax")}
)
NEVER_ON_IMPORT = ("__name__ == '__main__'", "TYPE_CHECKING", "typing.TYPE_CHECKING")


@dataclass(frozen=True)
class CodeHash:
    """Hash of the code behind an experiment.

    Attributes:
        hash: sha256 in hexadecimal.
        files: Files that hold that code, relative to the checkout, sorted.
    """

    hash: str
    files: list[str]


def code_hash(
    name: str, parameters: Mapping[str, Any] | None = None, *, root: Path | None = None
) -> CodeHash:
    """Hash of the experiment `name`: all code that it reaches, its files and its parameters.

    Args:
        name: The experiment.
        parameters: Parameters other than the defaults.
        root: Folder of the package, the one that holds experiments/. Default: this package.

    Raises:
        UnknownName: There is no such experiment or parameter.
        BadParameter: A parameter's value is not possible.
        AnatomyError: A file that the experiment declares is missing, or one does not parse.
    """
    root = Path(root or signatures.PACKAGE).resolve()
    declared = signatures.signature(name, root)
    package = _package(root.name, signatures.sources(root))
    reached = package.reached(declared.module.partition(".")[2], declared.function)
    digest = sha256()
    files = {f"{root.name}/{package.files[label.partition(':')[0]]}" for label in reached}
    for label, content in sorted(reached.items()):
        digest.update(_framed(label, content))
    for file in sorted(set(declared.files)):
        try:
            content = (root.parent / file).read_bytes()
        except OSError as error:
            raise AnatomyError(
                f"{name} declares the file {file}, which can't be read: {error.strerror}. It is "
                f"part of a checkout of the project; looked for it in {root.parent}."
            ) from None
        digest.update(_framed(file, content))
        files.add(file)
    bound = declared.bind(**(parameters or {}))
    digest.update(_framed("parameters", json.dumps(bound, sort_keys=True)))
    return CodeHash(digest.hexdigest(), sorted(files))


def _framed(label: str, content: str | bytes) -> bytes:
    """Label and content with their lengths, so that no two sequences give the same bytes."""
    content = content.encode() if isinstance(content, str) else content
    return f"{len(label)} {len(content)} {label} ".encode() + content


@lru_cache(maxsize=8)
def _package(name: str, sources: tuple[tuple[str, bytes], ...]) -> "_Package":
    """A package with these sources; only an edit makes a new one."""
    return _Package(name, sources)


class _Package:
    """The modules of a package, by name without the package's own: `experiments.contiguity`."""

    def __init__(self, name: str, sources: tuple[tuple[str, bytes], ...]) -> None:
        self.name = name
        self._modules: dict[str, _Module] = {}
        self._reached: dict[tuple[str, str], dict[str, str]] = {}
        self.files: dict[str, str] = {}  # module -> its file, relative to the package
        self._texts: dict[str, bytes] = {}
        for file, text in sources:
            module = file.removesuffix(".py").replace("/", ".")
            module = "" if module == "__init__" else module.removesuffix(".__init__")
            self.files[module], self._texts[module] = file, text

    def module(self, name: str) -> "_Module | None":
        """The module, parsed when first asked for, or None where the package has none such."""
        if name not in self.files:
            return None
        if name not in self._modules:
            try:
                tree = ast.parse(self._texts[name])
            except SyntaxError as error:
                place = f"{self.name}/{self.files[name]}:{error.lineno}"
                raise AnatomyError(f"{place} does not parse: {error.msg}.") from None
            is_package = self.files[name].endswith("__init__.py")
            self._modules[name] = _Module(tree, name, self.name, is_package)
        return self._modules[name]

    def reached(self, module: str, function: str) -> dict[str, str]:
        """Every definition reached from a function: label `module:name` -> normalised content."""
        if (module, function) not in self._reached:
            self._reached[module, function] = self._follow(module, function)
        return self._reached[module, function]

    def _follow(self, module: str, function: str) -> dict[str, str]:
        found: dict[str, str] = {}
        waiting = list(self.targets(module, (function,)))
        while waiting:
            at, name = waiting.pop()
            label = f"{at}:{name}"
            if label in found or at in BOOKKEEPING:
                continue
            source = self.module(at)
            # What runs on import counts with whichever part of the module is used.
            waiting += [(at, "*")] if name != "*" else []
            text, uses = source.definition(name)
            edges = {use: self.targets(at, use) for use in uses}
            found[label] = text + "".join(
                f"\n{'.'.join(use)} is {sorted(edges[use])} {source.foreign.get(use[0], '')}"
                for use in sorted(uses)
                if edges[use] or use[0] in source.foreign
            )
            waiting += [target for targets in edges.values() for target in targets]
        return found

    def targets(self, at: str, chain: tuple[str, ...]) -> set[tuple[str, str]]:
        """Definitions that a dotted chain of names means in module `at`, as (module, name)."""
        if chain[0] == NAMED_MODULE:
            return self.everything(chain[1])
        found: set[tuple[str, str]] = set()
        seen = set()
        waiting = [(at, chain)]
        while waiting:
            at, chain = waiting.pop()
            if (at, chain) in seen or (source := self.module(at)) is None:
                continue
            seen.add((at, chain))
            head, rest = chain[0], chain[1:]
            if head in source.names:
                found.add((at, head))
            for origin, imported in source.imports.get(head, ()):
                inner, left = origin, rest if imported is None else (imported, *rest)
                # Walk down as far as the chain names submodules rather than definitions.
                while (
                    left and not self.has(inner, left[0]) and _below(inner, left[0]) in self.files
                ):
                    inner, left = _below(inner, left[0]), left[1:]
                if left and self.has(inner, left[0]):
                    waiting.append((inner, left))
                else:  # a module used as a value, or a name made at run time
                    found |= self.everything(inner)
        return found

    def has(self, module: str, name: str) -> bool:
        """Whether a module defines or imports a name."""
        source = self.module(module)
        return source is not None and (name in source.names or name in source.imports)

    def everything(self, module: str) -> set[tuple[str, str]]:
        """All definitions of a module."""
        source = self.module(module)
        return {(module, name) for name in source.names} | {(module, "*")} if source else set()


class _Module:
    """Top-level definitions and imports of one file."""

    def __init__(self, tree: ast.Module, name: str, package: str, is_package: bool) -> None:
        self.name, self.package, self.is_package = name, package, is_package
        self.names: dict[str, list[ast.stmt]] = {}
        # Local name -> (module of this package, name in it or None); from all imports of it.
        self.imports: dict[str, list[tuple[str, str | None]]] = {}
        self.foreign: dict[str, str] = {}  # local name -> what of another package it is
        self.loose: list[ast.stmt] = []  # runs on import and defines nothing
        self._definitions: dict[str, tuple[str, set[tuple[str, ...]]]] = {}
        for node in ast.walk(tree):
            # Those inside functions too: a name that several import means each of them.
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for statement in tree.body:
            self._sort(statement)

    def _sort(self, statement: ast.stmt) -> None:
        """Put one top-level statement under the names that it binds."""
        if isinstance(statement, ast.Import | ast.ImportFrom) or is_text(statement):
            return
        if isinstance(statement, ast.If) and ast.unparse(statement.test) in NEVER_ON_IMPORT:
            for inner in statement.orelse:
                self._sort(inner)
            return
        bound = bound_names([statement])
        for name in bound:
            self.names.setdefault(name, []).append(statement)
        if not bound:
            self.loose.append(statement)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, origin, imported, text in _imported(node, self):
            if name == "*" and origin is not None:
                raise AnatomyError(
                    f"{self.name}, line {node.lineno}: `import *` of the package hides what is "
                    "used; name it."
                )
            if origin is None:
                self.foreign[name] = " ".join(filter(None, (self.foreign.get(name), text)))
            else:
                self.imports.setdefault(name, []).append((origin, imported))

    def definition(self, name: str) -> tuple[str, set[tuple[str, ...]]]:
        """Normalised text of a definition, and the dotted names that it uses.

        The name `*` stands for the statements that run on import and define nothing.
        """
        if name not in self._definitions:
            statements = self.loose if name == "*" else self.names[name]
            uses: set[tuple[str, ...]] = set()
            for statement in statements:
                uses |= set(names_used(statement, self.package))
            text = "\n".join(serialized(statement) for statement in statements)
            self._definitions[name] = text, uses
        return self._definitions[name]


def _imported(
    node: ast.Import | ast.ImportFrom, within: _Module
) -> Iterator[tuple[str, str | None, str | None, str]]:
    """Names that an import binds: (name, module of this package or None, name in it, text)."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = alias.name.split(".")
            origin = None
            if parts[0] == within.package:  # `import anatomy.counts` binds anatomy itself
                origin = ".".join(parts[1:]) if alias.asname else ""
            yield alias.asname or parts[0], origin, None, alias.name
        return
    parts = node.module.split(".") if node.module else []
    inside = bool(node.level) or parts[:1] == [within.package]
    if node.level:
        here = within.name.split(".") if within.name else []
        here = here if within.is_package else here[:-1]
        parts = here[: len(here) - node.level + 1] + parts
    elif inside:
        parts = parts[1:]
    for alias in node.names:
        origin = ".".join(parts) if inside else None
        yield alias.asname or alias.name, origin, alias.name, f"{node.module} {alias.name}"


def _below(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name
