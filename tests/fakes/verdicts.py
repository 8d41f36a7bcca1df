"""What claims say of made-up recordings, for the tests of a chapter."""

from pathlib import Path

from anatomy import claims
from tests.fakes import synthetic


def verdict(root: Path, name: str) -> claims.Result:
    """The verdict on a claim, by the recordings in a folder."""
    return claims.evaluate(synthetic.showing(root), name)


def words(root: Path, *names: str) -> list[str]:
    """The verdicts on some claims, each in its word."""
    return [verdict(root, name).word for name in names]
