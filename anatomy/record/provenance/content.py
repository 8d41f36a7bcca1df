"""Definitions of a package, hashed by their content and by that of all that they reach."""

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from anatomy.record.provenance.definitions import Modules, Target
from anatomy.record.provenance.syntax import FUNCTIONS, NAMED_MODULE, Chain, normalised

CALLABLE = (*FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True)
class Layout:
    """Which parts of a package stand for the method, and which make no number; a part is a module,
    a package with all in it, or one definition as `module:name`."""

    method: tuple[str, ...]  # the measuring room
    unfollowed: tuple[str, ...]  # what words, keeps or judges numbers
    method_id: str  # of the method that `method` holds


def _within(parts: tuple[str, ...], target: Target) -> bool:
    module, name = target
    whole = (module, f"{module}:{name}")
    return any(part in whole or module.startswith(f"{part}.") for part in parts)


# Rewording an error, adding a field to recordings or a better statistic costs no measurement.
UNFOLLOWED = (
    *("judge", "record", "table.errors", "table.units"),
    *(f"table.intervals:{n}" for n in ("ratio_interval", "noise_floor", "verdict", "break_even")),
)


def digest(*parts: str) -> str:
    """sha256 of texts with their lengths, so that no two sequences give the same bytes."""
    framed = "".join(f"{len(part.encode())} {part}" for part in parts)
    return sha256(framed.encode()).hexdigest()


@dataclass
class Definition:
    """A definition without names and places."""

    text: str = ""  # its normalised syntax, with `<0>`, `<1>`, ... for what it refers to
    uses: list[Target] = field(default_factory=list)  # what these are
    values: set[Target] = field(default_factory=set)  # what it hands on rather than calls
    uses_method: bool = False  # it refers to the measuring room
    reads_names: bool = False  # it reads a `__name__` that may be a function's


@dataclass(frozen=True)
class CodeHash:
    """sha256 of the code that is reached from somewhere, and the files that hold it, sorted."""

    hash: str
    files: list[str]


class Definitions(Modules):
    """The definitions of a package with their hashes."""

    def __init__(self, name: str, sources: tuple[tuple[str, bytes], ...], layout: Layout) -> None:
        super().__init__(name, sources)
        self.layout = layout
        self._definitions: dict[Target, Definition] = {}
        self._hashes: dict[Target, str] = {}
        self._reached: dict[Target, CodeHash] = {}

    def reached(self, module: str, function: str) -> CodeHash:
        """The hash of a function with all that it reaches."""
        if known := self._reached.get((module, function)):
            return known
        origins = [target for target, _ in self.targets(module, (function,))]
        definitions = self.with_all_reached(origins)
        parts = sorted(self.hash(target) for target in origins)
        if any(each.uses_method for each in definitions.values()):
            parts.append(f"METHOD {self.layout.method_id}")
        if any(each.reads_names for each in definitions.values()):
            values = set().union(*(each.values for each in definitions.values()))
            parts += sorted(f"{name} {self.hash((at, name))}" for at, name in values)
        found = CodeHash(digest(*parts), sorted({self.files[at] for at, _ in definitions}))
        return self._reached.setdefault((module, function), found)

    def with_all_reached(
        self, targets: Iterable[Target], but: Container[Target] = ()
    ) -> dict[Target, Definition]:
        """These definitions and all that they reach, but for some and what is behind them."""
        found: dict[Target, Definition] = {}
        waiting = [*targets]
        while waiting:
            if (target := waiting.pop()) not in found:
                found[target] = self.definition(target)
                waiting += [use for use in found[target].uses if use not in but]
        return found

    def hash(self, target: Target) -> str:
        """Hash of a definition by its content, and by that of all that it reaches."""
        if target not in self._hashes:
            new = self.with_all_reached([target], but=self._hashes)
            reached = {each: self.with_all_reached([each], but=self._hashes).keys() for each in new}
            # What refers to something reaches more than it does, unless both refer to each other.
            for each in sorted(new, key=lambda each: len(reached[each])):
                if each not in self._hashes:
                    self._hash_group([other for other in reached[each] if each in reached[other]])
        return self._hashes[target]

    def _hash_group(self, group: list[Target]) -> None:
        """Hash definitions in a circle, or a single one: each starts as its own text, and in each
        round takes in what it refers to. Circles of n that differ at all do so after 2 n rounds."""
        labels = {target: self.definition(target).text for target in group}
        for _ in 2 * group:
            labels = {
                target: digest(
                    self.definition(target).text,
                    *(labels.get(use) or self._hashes[use] for use in self.definition(target).uses),
                )
                for target in group
            }
        size = str(len(group))
        self._hashes |= {target: digest(size, label) for target, label in labels.items()}

    def of_module(self, module: str) -> list[Target]:
        """All definitions of a module."""
        source = self.module(module)
        return [(module, name) for name in source.names] + [(module, "*")] * bool(source.loose)

    def statements(self, target: Target) -> list[ast.stmt]:
        """The statements that make a definition."""
        source = self.module(target[0])
        return source.loose if target[1] == "*" else source.names[target[1]]

    def definition(self, target: Target) -> Definition:
        """A definition without names and places."""
        if known := self._definitions.get(target):
            return known
        at, name = target
        source, inside = self.module(at), _within(self.layout.method, target)
        statements = self.statements(target)
        there = any(name in self.texts[at] for name in (b"__name__", b"__qualname__"))
        found = Definition(reads_names=there and any(map(_reads_a_name, statements)))
        # What runs on import counts with whichever part of the module is used.
        if name != "*" and source.loose:
            found.uses.append((at, "*"))

        def refer(chain: Chain, called: bool) -> str:
            texts = []
            for target, rest in sorted(self.targets(at, chain)):
                if _within(self.layout.unfollowed, target):
                    continue
                if _within(self.layout.method, target) and not inside:
                    found.uses_method = True
                    texts.append(".".join(("METHOD", target[1], *rest)))
                    continue
                if not called and isinstance(self.module(target[0]).names[target[1]][0], CALLABLE):
                    found.values.add(target)
                found.uses.append(target)
                texts.append(".".join((f"<{len(found.uses) - 1}>", *rest)))
            if texts:
                return "&".join(texts)
            if chain[0] in source.imports or chain[0] == NAMED_MODULE:
                return "unfollowed"
            outside = source.foreign.get(chain[0])
            return ".".join((outside, *chain[1:])) if outside else ".".join(chain)

        texts = [normalised(each, name, refer, self.name) for each in statements]
        found.text = "\n".join(texts)
        return self._definitions.setdefault(target, found)


def _reads_a_name(statement: ast.stmt) -> bool:
    """Whether a `__name__` is read, other than that of a type."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__"):
            holder = node.value.func if isinstance(node.value, ast.Call) else None
            if not (isinstance(holder, ast.Name) and holder.id == "type"):
                return True
    return False
