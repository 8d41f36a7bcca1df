"""The places where a claim is true, in words: what several of them share is said once."""

from collections.abc import Sequence
from itertools import takewhile

Place = tuple[str, ...]  # what the columns of a case say: `("matmul", "fp16", "N=512")`
# Several places at once: of each column the values that it may have, none where it may have any.
Pattern = tuple[tuple[str, ...], ...]


def said(places: Sequence[Place], among: Sequence[Place]) -> tuple[str, ...]:
    """`for layer_norm, matmul 2048/4096`: these places, told apart from the others `among` which
    they are, without the columns that don't matter; of `for a (b or c)` also `only for a`."""
    patterns = _patterns(places, among)
    shared = [len({place[at] for place in places}) == 1 for at in range(len(places[0]))]
    # What several share tells more than what each is called, though that alone would do.
    lists = any(len(values) > 1 for values in patterns[0])
    hidden = any(same and not said for same, said in zip(shared, patterns[0], strict=True))
    if not any(shared) or (len(patterns) == 1 and not (lists and hidden)):
        texts = [_words(pattern) for pattern in patterns]
        named = [", ".join(texts)]
    else:
        texts = [" ".join(value for value, same in zip(places[0], shared, strict=True) if same)]
        own = (
            _words([() if same else values for values, same in zip(pattern, shared, strict=True)])
            for pattern in patterns
        )
        named = [f"{texts[0]} ({' or '.join(own)})", texts[0]]
    word = "" if all(text.startswith("where ") for text in texts) else "for "
    return tuple(f"{only}{word}{text}" for only, text in zip(("", "only "), named, strict=False))


def _patterns(places: Sequence[Place], among: Sequence[Place]) -> list[Pattern]:
    """Few patterns that match these places, and of those `among` which they are no other."""
    others = [place for place in among if place not in places]
    found = list(dict.fromkeys(_widened(place, others) for place in places))
    for pattern in list(found):
        rest = [each for each in found if each != pattern]
        if all(any(_matches(each, place) for each in rest) for place in places):
            found = rest
    for column in reversed(range(len(places[0]))):
        merged: dict[Pattern, list[str]] = {}
        for pattern in found:
            beside = (*pattern[:column], (), *pattern[column + 1 :])
            merged.setdefault(beside if pattern[column] else pattern, []).extend(pattern[column])
        found = [
            (*beside[:column], tuple(dict.fromkeys(values)), *beside[column + 1 :])
            for beside, values in merged.items()
        ]
    return found


def _widened(place: Place, others: Sequence[Place]) -> Pattern:
    """A place without the columns whose values don't matter, the first of them first."""
    pattern = [(value,) for value in place]
    for column, values in enumerate(list(pattern)):
        pattern[column] = ()
        if any(_matches(pattern, other) for other in others):
            pattern[column] = values
    return tuple(pattern)


def _matches(pattern: Sequence[tuple[str, ...]], place: Place) -> bool:
    return all(not some or value in some for some, value in zip(pattern, place, strict=True))


def _words(pattern: Sequence[tuple[str, ...]]) -> str:
    return " ".join(_either(values) for values in pattern if values)


def _either(values: Sequence[str]) -> str:
    """`fp16`, `N=512/2048`, `16/32 breaks`, `small products or large elementwise`."""
    texts = [value.split(" ") for value in values]
    first = _same(texts)
    last = _same([text[:first:-1] for text in texts])
    middles = [" ".join(text[first : len(text) - last]) for text in texts]
    if not all(middles) or any(" " in middle for middle in middles):
        return " or ".join(values)
    names = {middle.rpartition("=")[0] for middle in middles}
    if len(names) == 1:
        middles[1:] = [middle.rpartition("=")[2] for middle in middles[1:]]
    return " ".join([*texts[0][:first], "/".join(middles), *texts[0][len(texts[0]) - last :]])


def _same(texts: Sequence[Sequence[str]]) -> int:
    """How many words all begin with; of one text none."""
    columns = zip(*texts, strict=False) if len(texts) > 1 else ()
    return len(list(takewhile(lambda words: len(set(words)) == 1, columns)))
