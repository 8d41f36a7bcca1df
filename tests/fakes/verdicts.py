"""What claims say of made-up recordings, for the tests of a chapter."""

from pathlib import Path

from anatomy import claims
from tests.fakes import synthetic


def words(root: Path, *names: str) -> list[str]:
    """The verdicts on some claims, by the recordings in a folder."""
    showing = synthetic.showing(root)
    return [claims.evaluate(showing, name).word for name in names]
