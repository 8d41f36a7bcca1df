"""A reader's function must be a plain one: calling it runs its body."""

import types

from anatomy.table.errors import BadParameter

# What the call of a function returns that is async, or that yields.
NOT_RUN = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)


def require_run(name: str, returned: object) -> None:
    """Refuse what a call `returned` where nothing of the function's body has run."""
    if isinstance(returned, NOT_RUN):
        kind = type(returned).__name__.replace("_", " ")
        raise BadParameter(
            f"{name} returned {'an' if kind[0] == 'a' else 'a'} {kind}, so nothing of it has run. "
            "Let it be a plain function that does the work, neither async nor one that yields; "
            "what it awaits can be run in it by asyncio.run()."
        )
