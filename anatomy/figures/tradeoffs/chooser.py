"""A shape to choose under a pay-off map, which its script fills; without one there is the table."""

import json
from collections.abc import Sequence
from html import escape

Axis = tuple[str, Sequence[str]]  # a coordinate, and the names of its values
Panel = tuple[str, Sequence[str], Sequence[str]]  # a variant, and its map's columns and rows


def chooser(axes: tuple[Axis, Axis], panels: Sequence[Panel]) -> str:
    """Room for the choice of two coordinates, and for a line of each variant's map: what its mark
    in that cell tells. A panel's marks are its cells, row by row from below; it may lack some of
    the columns and rows that can be chosen."""
    cells = json.dumps({"axes": axes, "panels": panels}, separators=(",", ":"))
    room = f'style="--lines: {len(panels)}"'
    return f'<div class="choose" {room} data-cells="{escape(cells)}"></div>'
