"""Text that is what it was when compared or looked up, and an attack as soon as it is printed."""

from html.parser import HTMLParser
from typing import Any

TAG, ATTRIBUTE = "x-evil", "onevil"
# Out of a text, out of an attribute of either quotes, and by Markdown's links and attribute lists.
PAYLOAD = f"""\"'><{TAG}>&[a](x {ATTRIBUTE}=y)<{TAG} {ATTRIBUTE}='1'>{{: {ATTRIBUTE}=1 }}"""


class Poison(str):
    """A text with the payload behind it, wherever it is put into another one."""

    def _whole(self) -> str:
        return "".join((self, PAYLOAD))

    def __str__(self) -> str:
        return self

    def __format__(self, spec: str) -> str:
        return format(self._whole(), spec)

    def __add__(self, other: str) -> str:
        return self._whole() + other

    def __radd__(self, other: str) -> str:
        return other + self._whole()

    def __hash__(self) -> int:
        return str.__hash__(self)

    def replace(self, *given: Any) -> str:  # which html.escape begins with
        """As of the whole text."""
        return self._whole().replace(*given)

    def translate(self, table: Any) -> str:
        """As of the whole text."""
        return self._whole().translate(table)


def poisoned(data: Any, but: tuple[str, ...] = ("slug",)) -> Any:
    """Nested plain data, each text in it poisoned but those under these keys."""
    if isinstance(data, dict):
        return {k: v if k in but else poisoned(v, but) for k, v in data.items()}
    if isinstance(data, list):
        return [poisoned(each, but) for each in data]
    return Poison(data) if isinstance(data, str) else data


class Reader(HTMLParser):
    """What a browser would make of a page: the elements and attributes of an attack, if any."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.evil: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note what should not be there."""
        if tag == TAG or any(ATTRIBUTE in name for name, _ in attrs):
            self.evil.append(self.get_starttag_text())
