"""What claims say of made-up recordings, for the tests of a chapter."""

from pathlib import Path

from tests.fakes import synthetic


def words(root: Path, *names: str) -> list[str]:
    """The verdicts on some claims, in a word each, by the recordings in a folder."""
    return [synthetic.verdict(root, name).word for name in names]
