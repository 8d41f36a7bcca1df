"""Commands made from the signatures of experiments: options, defaults, choices and help."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from anatomy.record.signatures import Parameter, Signature

# How an experiment is called: its parameters and the command's own options, by name.
Act = Callable[[Signature, dict[str, Any], dict[str, Any]], None]

BLAS = (
    "m, n and k are BLAS terms: A is M x K, B is K x N, and K is the reduction. (The suite that "
    "these commands come from called the reduction n, and the columns of B k.)"
)


def callback(
    experiment: Signature, own: Mapping[str, tuple[Any, Any]], act: Act, *, defaults: bool = True
) -> Callable[..., None]:
    """What `typer.Typer.command` needs: a function with all options as its signature. Those are the
    experiment's and the command's `own`: name -> (annotation, default). Without `defaults`, a
    parameter that is not given is left out of what `act` is called with."""
    theirs = {
        each.name: (_annotation(each, defaults), each.default if defaults else None)
        for each in experiment.parameters
    }
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in {**theirs, **own}.items()
    ]

    def call(**values: Any) -> None:
        params = {name: values.pop(name) for name in theirs}
        if not defaults:
            params = {name: value for name, value in params.items() if value is not None}
        act(experiment, params, values)

    call.__signature__ = inspect.Signature(parameters)
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    has_sizes = theirs.keys() >= {"m", "n", "k"}
    also = f"Typed as any of {', '.join(experiment.commands)}."
    told = [experiment.summary, also, *([BLAS] if has_sizes else [])]
    call.__doc__ = escape("\n\n".join(told))
    return call


def example(command: str, experiment: Signature) -> str:
    """A command line that works as it stands: every default said aloud."""
    options = " ".join(
        f"{_flag(each)} {each.default}" if each.type is not bool else _flag(each)
        for each in experiment.parameters
        if each.default is not None and str(each.default) != ""
    )
    return escape(f"Example: pytorch-gpu-anatomy {command} {options}".rstrip())


def _flag(parameter: Parameter) -> str:
    name = parameter.name.replace("_", "-")
    return f"--no-{name}" if parameter.type is bool and parameter.default is False else f"--{name}"


def _annotation(parameter: Parameter, is_default: bool) -> Any:
    kind, help = parameter.type, parameter.help
    if parameter.choices and kind is str:
        kind = Literal[parameter.choices]
    elif parameter.choices:
        help = f"{help} One of {', '.join(map(str, parameter.choices))}."
    if parameter.bounds:
        help = f"{help} {str(parameter.bounds).capitalize()}."
    dashed = parameter.name.replace("_", "-")
    declared = f"--{dashed}/--no-{dashed}" if parameter.type is bool else f"--{dashed}"
    shown = True if is_default or parameter.default is None else str(parameter.default)
    option = typer.Option(declared, help=escape(help), show_default=shown)
    return Annotated[kind | None, option]
