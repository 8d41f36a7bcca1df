"""Which definition a dotted name means, in a package that is read and never imported."""

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import resolve_name

from anatomy.record.provenance.syntax import NAMED_MODULE, Chain, bound_names, is_text
from anatomy.table.errors import AnatomyError

NEVER_ON_IMPORT = ("__name__ == '__main__'", "TYPE_CHECKING", "typing.TYPE_CHECKING")

# An import inside of something, or behind it on its line.
_INNER_IMPORT = re.compile(rb"^[ \t]+(?:import|from)\b|[:;\\][ \t]*(?:import|from)\b", re.MULTILINE)

# What was made of the sources of a package; only an edit makes another.
remembered = lru_cache(maxsize=8)

Target = tuple[str, str]  # module of the package, and a name in it; "*" is what runs on import


@lru_cache(maxsize=1024)
def parsed(text: bytes, place: str) -> ast.Module:
    """The syntax tree of a file; AnatomyError where it does not parse."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise AnatomyError(f"{place}:{error.lineno} does not parse: {error.msg}.") from None


class Modules:
    """The modules of a package, by name without the package's own: `experiments.contiguity`."""

    def __init__(self, name: str, sources: tuple[tuple[str, bytes], ...]) -> None:
        self.name = name
        self._modules: dict[str, Module] = {}
        self.files: dict[str, str] = {}  # module -> its file, relative to the package
        self.texts: dict[str, bytes] = {}
        for file, text in sources:
            module = file.removesuffix(".py").replace("/", ".")
            module = "" if module == "__init__" else module.removesuffix(".__init__")
            self.files[module], self.texts[module] = file, text

    def module(self, name: str) -> "Module | None":
        """The module, parsed when first asked for, or None where the package has none such."""
        if name not in self.files:
            return None
        if name not in self._modules:
            file = self.files[name]
            tree = parsed(self.texts[name], f"{self.name}/{file}")
            # To walk through all of a module takes long, and few import anywhere but at its top.
            nodes = ast.walk(tree) if _INNER_IMPORT.search(self.texts[name]) else tree.body
            is_package = file.endswith("__init__.py")
            self._modules[name] = Module(tree, nodes, name, self.name, is_package)
        return self._modules[name]

    def targets(self, at: str, chain: Chain) -> set[tuple[Target, Chain]]:
        """Definitions that a dotted name means in module `at`, each with what of the name is left
        behind it: `counts.Row.width` is the definition `Row` of `counts`, and `width` is left."""
        if chain[0] == NAMED_MODULE:
            return self.everything(chain[1], ())
        found: set[tuple[Target, Chain]] = set()
        seen = set()
        waiting = [(at, chain)]
        while waiting:
            at, chain = waiting.pop()
            if (at, chain) in seen or (source := self.module(at)) is None:
                continue
            seen.add((at, chain))
            head, rest = chain[0], chain[1:]
            if head in source.names:
                found.add(((at, head), rest))
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
                    found |= self.everything(inner, left)
        return found

    def has(self, module: str, name: str) -> bool:
        """Whether a module defines or imports a name."""
        source = self.module(module)
        return source is not None and (name in source.names or name in source.imports)

    def everything(self, module: str, rest: Chain) -> set[tuple[Target, Chain]]:
        """All definitions of a module, each with its name, by which they may be asked for."""
        source = self.module(module)
        return {((module, name), (name, *rest)) for name in source.names} if source else set()


class Module:
    """Top-level definitions and imports of one file."""

    def __init__(
        self, tree: ast.Module, nodes: Iterable[ast.AST], name: str, package: str, is_package: bool
    ) -> None:
        """Of a tree with these nodes, all that may import among them."""
        self.name, self.package, self.is_package = name, package, is_package
        self.names: dict[str, list[ast.stmt]] = {}
        # Local name -> (module of this package, name in it or None); from all imports of it.
        self.imports: dict[str, list[tuple[str, str | None]]] = {}
        self.foreign: dict[str, str] = {}  # local name -> what of another package it is
        self.loose: list[ast.stmt] = []  # runs on import and defines nothing
        for node in nodes:
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
        if not bound or isinstance(statement, ast.For | ast.While | ast.With):
            self.loose.append(statement)  # a loop may fill a table that it does not define

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                head, _, below = alias.name.partition(".")
                name, imported, text = alias.asname or head, None, alias.name
                below = below if alias.asname else ""  # `import anatomy.table` binds anatomy itself
            else:
                here = f"{self.package}.{self.name}" if self.name else self.package
                here = here if self.is_package else here.rpartition(".")[0]
                module = resolve_name("." * node.level + (node.module or ""), here)
                head, _, below = module.partition(".")
                name, imported = alias.asname or alias.name, alias.name
                text = f"{module} {alias.name}"
            if head != self.package:
                self.foreign[name] = " ".join(filter(None, (self.foreign.get(name), text)))
            elif name == "*":
                raise AnatomyError(
                    f"{self.name}, line {node.lineno}: `import *` of the package hides what is "
                    "used; name it."
                )
            else:
                self.imports.setdefault(name, []).append((below, imported))


def _below(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name
