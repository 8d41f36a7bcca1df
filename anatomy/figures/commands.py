"""How a reader runs an experiment: the command line, its flags, and what it will take."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from anatomy.figures import tables
from anatomy.figures.charts import strips
from anatomy.record.showing import Found, Showing
from anatomy.record.signatures import Parameter, Signature
from anatomy.table import units
from anatomy.table.errors import lookup

PROGRAM = "pytorch-gpu-anatomy"
WIDEST = 70  # characters that fit a page's column
# What no line may break in: an option with its value, and a name with hyphens, each with the sign
# that the command goes on.
WHOLE = re.compile(r"(?:--[\w-]+ [^\s\\]+|\w+(?:-\w+)+)(?: \\)?")


def line(declared: Signature, params: dict[str, Any], options: Iterable[str]) -> str:
    """The command that runs an experiment with `params`, writing out the options named."""
    words = [PROGRAM, declared.command or declared.commands[0]]
    for name in options:
        value = lookup(f"parameter of {declared.name} called", name, params)
        words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


def shown(showing: Showing, declared: Signature, found: Found, command: str) -> str:
    """The command to copy, the seconds it took when recorded, and a fold with its options."""
    ident = showing.unique("command-" + declared.name.replace(".", "-").replace("_", "-"))
    block = f'<div class="language-sh highlight"><pre id="{ident}"><span></span>'
    whole = WHOLE.sub(r'<span class="whole">\g<0></span>', escape(_broken(command)))
    block += f"<code>{whole}\n</code></pre></div>"
    flags = [
        ("option", lambda p: f"<code>--{p.name.replace('_', '-')}</code>"),
        ("what it is", lambda p: escape(p.help.rstrip("."))),
        ("values", _values),
        ("default", lambda p: tables.code(p.default)),
    ]
    label = f"Options of {declared.command or declared.commands[0]}"
    table = tables.by_columns(flags, declared.parameters, label, "flags")
    options = f'<details class="twin"><summary>Options</summary>{table}</details>'
    return f'<div class="command">{block}{_took(showing, found)}{options}</div>'


def printed(
    showing: Showing, declared: Signature, command: str, *parts: str, marked: Sequence[str] = ()
) -> str:
    """A command and what it prints, as a terminal shows them; lines of these rows are `marked`."""
    ident = showing.unique("output-" + declared.name.replace(".", "-").replace("_", "-"))
    lines = escape("\n\n".join([f"$ {_broken(command)}", *parts])).split("\n")
    rows = tuple(f"{escape(name)}  " for name in marked)
    text = "".join(
        f'<span class="hll">{line}\n</span>' if rows and line.startswith(rows) else f"{line}\n"
        for line in lines
    )
    block = f'<pre id="{ident}" class="no-copy"><span></span><code>{text}</code></pre>'
    return f'<div class="language-text highlight output">{block}</div>'


def _broken(command: str) -> str:
    """A long command over several lines, in the way that a shell reads as one."""
    if len(command) <= WIDEST:
        return command
    first, *options = command.split(" --")
    lines = [first]
    for option in options:
        if len(lines) > 1 and len(lines[-1]) + len(option) + 3 <= WIDEST:
            lines[-1] += f" --{option}"
        else:
            lines.append(f"  --{option}")
    return " \\\n".join(lines)


def _took(showing: Showing, found: Found) -> str:
    if found.recording is None:
        return strips.notices(showing, [found])
    data = found.recording.data
    where = data["machine"].get("gpu") or data["machine"]["slug"]
    # With the weights where a row says so: its peak alone is of a step, beside them.
    peaks = [row.get("total_peak_bytes") or row.get("peak_bytes") for row in found.recording.rows]
    peaks = [peak for peak in peaks if peak]
    memory = f" and at most {units.byte_count(max(peaks))} of GPU memory" if peaks else ""
    took = f'Took <span class="measured">{units.seconds(data["seconds"])}</span>{memory}'
    return f'<p class="took">{took} on {escape(where)}, start of the process included.</p>'


def _values(parameter: Parameter) -> str:
    if parameter.choices:
        return " ".join(map(tables.code, parameter.choices))
    kind = {int: "whole number", float: "number", str: "text", bool: "on or off"}[parameter.type]
    return f"{kind} {parameter.bounds}" if parameter.bounds else kind
