"""The one form in which a recording is written, whatever types the experiment used: plain JSON with
sorted fields, floats rounded, counts whole, and rows one a line, so that git shows which moved."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import isinf, isnan
from numbers import Integral, Real
from typing import Any

import pandas as pd

from anatomy.record.provenance.schema import SCHEMA, texts_in
from anatomy.table import columns

DIGITS = 9  # significant digits of a stored float: a clock that ticks in ns needs no more
BLOCK_DIGITS = 6  # of a block's median
# Texts of rows that are as long, such as names of kernels, stand once in a file, under `texts`, and
# where they recur as {REFERENCE: first digits of their sha256}.
LONG_TEXT, REFERENCE, HASH_DIGITS = 40, "$text", 8


def render(data: Mapping) -> str:
    """The text of a recording: sorted fields, one a line, and one row or occasion a line."""
    lines = []
    for name in sorted(data):
        value = data[name]
        if name in ("rows", "occasions") and value:
            inner = ",\n".join(f"  {_json(each)}" for each in value)
            lines.append(f"{_json(name)}: [\n{inner}\n ]")
        elif isinstance(value, dict) and value:
            inner = ",\n".join(f"  {_json(each)}: {_json(value[each])}" for each in sorted(value))
            lines.append(f"{_json(name)}: {{\n{inner}\n }}")
        else:
            lines.append(f"{_json(name)}: {_json(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def compacted(data: Mapping) -> dict:
    """`data` with the nulls of its rows left out, and `columns`, the names of all columns: a table
    of several kinds of rows is mostly gaps, and a folder of recordings would be half nulls."""
    rows = data["rows"]
    columns = sorted({name for row in rows for name in row})
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return {**data, "rows": kept, "columns": columns}


def expanded(data: Mapping) -> dict:
    """What `compacted` was given: every row with every column. Others are left as they are."""
    columns = data.get("columns")
    if columns is None:
        return dict(data)
    rows = [{name: row.get(name) for name in columns} for row in data["rows"]]
    return {name: value for name, value in data.items() if name != "columns"} | {"rows": rows}


def shared(data: Mapping) -> dict:
    """`data` with each long text that recurs in its rows written once, in `texts`."""
    found = texts_in(data["rows"])
    counts = Counter(text for _, text, name in found if not name and len(text) >= LONG_TEXT)
    recurring = [text for text, count in counts.items() if count > 1]
    keys = {text: sha256(text.encode()).hexdigest()[:HASH_DIGITS] for text in recurring}
    if not keys or len(set(keys.values())) < len(keys):  # two texts of one key: written in full
        return dict(data)

    def refer(value: Any) -> Any:
        return {REFERENCE: keys[value]} if isinstance(value, str) and value in keys else value

    texts = {key: text for text, key in keys.items()}
    return {**data, "rows": _replaced(data["rows"], refer), "texts": texts}


def restored(data: Any) -> Any:
    """What `shared` was given; others as they are. ValueError where a text is not there."""
    texts = data.get("texts") if isinstance(data, Mapping) else None
    if not isinstance(texts, Mapping):
        return data

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != {REFERENCE}:
            return value
        if isinstance(key := value[REFERENCE], str) and key in texts:
            return texts[key]
        raise ValueError(f"a row refers to the text {key!r}, which is not there")

    rows = _replaced(data.get("rows"), read)
    return {name: value for name, value in data.items() if name != "texts"} | {"rows": rows}


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` made to each part of it; what it changes is not looked into."""
    changed = change(value)
    if changed is not value:
        return changed
    if isinstance(value, list):
        return [_replaced(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(item, change) for name, item in value.items()}
    return value


def content_sha(data: Mapping) -> str:
    """sha256 of everything in a recording but this very field, whatever the file's layout."""
    content = {name: value for name, value in restored(data).items() if name != "content_sha"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def plain_fields(recording: Mapping) -> dict:
    """The recording in JSON's own types, floats rounded, counts whole, texts in full."""
    fields = {name: value for name, value in restored(recording).items() if name != "content_sha"}
    rows = fields.get("rows")
    if isinstance(rows, pd.DataFrame):
        fields["rows"] = rows.to_dict("records")
    data = plain(fields | {"schema": SCHEMA}, "", _stored)
    experiment = str(data.get("experiment"))
    for row in data["rows"] if isinstance(data.get("rows"), list) else []:
        if isinstance(row, dict):
            for name, value in row.items():
                # A table with a gap turns counts into 240.0, and here they come back.
                if isinstance(value, float) and value.is_integer():
                    counts = columns.column(name, experiment).kind == columns.COUNT
                    row[name] = int(value) if counts else value
            if isinstance(blocks := row.get("blocks_s"), list):
                row["blocks_s"] = [_rounded(block, BLOCK_DIGITS) for block in blocks]
    return data


def plain(value: Any, place: str, real: Callable[[float, str], float | None]) -> Any:
    """`value` in JSON's own types; what pandas and numpy call missing is None. `real` says what is
    kept of a number that is not whole; it is told the number's place, as errors are."""
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{place}.{k}".lstrip("."), real) for k, v in value.items()}
    if hasattr(value, "tolist") and type(value).__module__ == "numpy":
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item, f"{place}[{index}]", real) for index, item in enumerate(value)]
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return real(float(value), place)
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return str(value)
    raise ValueError(f"{place} is a {type(value).__name__}, which JSON can't hold")


def _stored(number: float, place: str) -> float | None:
    if isinf(number):
        raise ValueError(f"{place} is infinite; write null, and say why in the row's note")
    return None if isnan(number) else _rounded(number, DIGITS)


def _rounded(value: Any, digits: int) -> Any:
    """A float with `digits` significant digits; whole numbers stay whole and exact."""
    if not isinstance(value, float) or value.is_integer():
        return value
    return float(f"{value:.{digits}g}")
