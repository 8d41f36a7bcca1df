"""What PyTorch does on a GPU: experiments that measure, recordings that last, pages that show.

`from anatomy import compare` gives the function that measures your own callables, and
`from anatomy import diagnose` the one that says what holds one back. They are looked up on first
use, so that importing this package loads neither torch nor a plotting library: a page that replays
a recording, and a command that prints its help, must not wait for either.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anatomy.comparison import compare_in_python as compare
    from anatomy.diagnosis.readers import diagnose

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "diagnose"]


def __getattr__(name: str) -> Any:
    """Load `compare` or `diagnose`, and torch with it, when it is first asked for."""
    if name == "compare":
        from anatomy.comparison import compare_in_python as compare

        return compare
    if name == "diagnose":
        from anatomy.diagnosis.readers import diagnose

        return diagnose
    raise AttributeError(f"module 'anatomy' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what is not loaded yet, so that completion finds it."""
    return sorted({*globals(), *__all__})
