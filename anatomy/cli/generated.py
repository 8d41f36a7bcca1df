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
    """A function whose signature is the experiment's parameters and the command's own options.

    Args:
        experiment: What the options are made from.
        own: Options of the command: name -> (annotation, default).
        act: Called with the experiment, its parameters, and the command's own options.
        defaults: Whether a parameter that is not given has the experiment's default; otherwise
            it is left out.

    Returns:
        The function for `typer.Typer.command`.
    """
    parameters = [
        _parameter(each.name, _annotation(each, defaults), each.default if defaults else None)
        for each in experiment.parameters
    ]
    parameters += [_parameter(name, kind, default) for name, (kind, default) in own.items()]

    def call(**values: Any) -> None:
        theirs = {each.name: values.pop(each.name) for each in experiment.parameters}
        if not defaults:
            theirs = {name: value for name, value in theirs.items() if value is not None}
        act(experiment, theirs, values)

    call.__signature__ = inspect.Signature(parameters)
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__doc__ = help_text(experiment)
    return call


def help_text(experiment: Signature) -> str:
    """The experiment's summary, and a word on m, n and k where it has them."""
    names = {each.name for each in experiment.parameters}
    parts = [experiment.summary]
    if {"m", "n", "k"} <= names:
        parts.append(BLAS)
    return escape("\n\n".join(parts))


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
    kind: Any = parameter.type
    if parameter.choices and parameter.type is str:
        kind = Literal[parameter.choices]
    help = parameter.help
    if parameter.choices and parameter.type is not str:
        help = f"{help} One of {', '.join(map(str, parameter.choices))}."
    if parameter.bounds:
        help = f"{help} {str(parameter.bounds).capitalize()}."
    dashed = parameter.name.replace("_", "-")
    declared = f"--{dashed}/--no-{dashed}" if parameter.type is bool else f"--{dashed}"
    shown = True if is_default or parameter.default is None else str(parameter.default)
    option = typer.Option(declared, help=escape(help), show_default=shown)
    return Annotated[kind | None, option]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
