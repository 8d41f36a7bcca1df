"""One measurement has one form on disk, whatever types it came in."""

import json
from fractions import Fraction
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from anatomy.record import loading, recording
from anatomy.record.provenance import canonical
from anatomy.record.provenance.canonical import render
from anatomy.table.errors import RecordingError
from tests.fakes.toy_recording import DEFAULTS, ROWS, made


@pytest.fixture
def saved(tmp_path):
    return recording.save(made(), tmp_path, defaults=DEFAULTS)


def test_the_file_is_sorted_one_row_a_line_and_ends_with_a_newline(saved):
    text = saved.read_text()
    data = json.loads(text)
    assert text.endswith("}\n") and text == render(data)
    assert list(data) == sorted(data)
    rows = [line for line in text.splitlines() if line.startswith('  {"')]
    assert [json.loads(line.rstrip(","))["variant"] for line in rows] == ["contiguous", "padded"]


def test_the_same_measurement_gives_the_same_bytes(tmp_path, saved):
    before = saved.read_bytes()
    backwards = dict(reversed(made().items()))
    backwards["rows"] = [dict(reversed(row.items())) for row in backwards["rows"]]
    assert recording.save(backwards, tmp_path, defaults=DEFAULTS) == saved
    assert saved.read_bytes() == before
    recording.save(recording.load(saved).data, tmp_path, defaults=DEFAULTS)
    assert saved.read_bytes() == before


def test_floats_are_rounded_and_counts_stay_whole(saved):
    row = recording.load(saved).data["rows"][0]
    assert row["median_s"] == 3.33333333e-05
    assert row["blocks_s"] == [3.33333e-05, 3.22581e-05]
    assert '"samples": 240,' in saved.read_text()


def test_a_table_is_saved_as_its_rows_with_nothing_for_what_is_missing(tmp_path):
    table = pd.DataFrame(ROWS).assign(clock=[np.float32(1.5), np.nan], when=[pd.NaT, pd.NA])
    table["sm_count"] = np.array([132, 132])
    loaded = recording.load(recording.save(made(rows=table), tmp_path, defaults=DEFAULTS))
    control, padded = loaded.data["rows"]
    assert (control["samples"], padded["samples"]) == (240, None)
    assert isinstance(control["samples"], int)  # pandas made it 240.0
    assert (padded["median_s"], padded["wide"], padded["kernels"]) == (None, None, None)
    assert (control["clock"], control["when"], control["sm_count"]) == (1.5, None, 132)


def kept(value):
    """A value as a recording keeps it."""
    return canonical.plain_fields({"experiment": "toy.fine", "seconds": value})["seconds"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.True_, True),
        ((1, (2.5, None)), [1, [2.5, None]]),
        ({1: {"a": pd.NaT}}, {"1": {"a": None}}),
        (float("nan"), None),
        (torch.float16, "torch.float16"),
        (torch.device("cpu"), "cpu"),
        (Fraction(1, 4), 0.25),
        (1 / 3, 0.333333333),
        (123456789012.5, 123456789000.0),
        (3e20, 3e20),
    ],
)
def test_values_become_those_of_json(value, plain):
    found = kept(value)
    assert found == plain and type(found) is type(plain)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("inf"), "seconds is infinite"),
        ({"a": [1, float("-inf")]}, r"seconds\.a\[1\] is infinite"),
        ([{"b": 1j}], r"seconds\[0\]\.b is a complex, which JSON can't hold"),
        (torch.Tensor([1]), "seconds is a Tensor, which JSON can't hold"),
    ],
)
def test_what_json_has_no_word_for_is_told_with_its_place(value, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        kept(value)


def test_the_form_of_a_file_is_the_one_that_all_are_written_in():
    text = render({"rows": [{"b": 1, "a": "é"}, {}], "b": {"y": [1], "x": {}}, "a": {}, "c": None})
    assert text == (
        '{\n "a": {},\n "b": {\n  "x": {},\n  "y": [1]\n },\n "c": null,\n'
        ' "rows": [\n  {"a": "\\u00e9", "b": 1},\n  {}\n ]\n}\n'
    )
    assert render({"rows": []}) == '{\n "rows": []\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        render({"a": float("nan")})


def test_the_hash_of_a_content_is_the_one_that_files_hold():
    seal = "fe9078ac9eac7735"
    data = {"b": [1, {"d": None}], "a": "é"}
    assert canonical.content_sha(data)[:16] == seal
    assert canonical.content_sha(data | {"content_sha": "x"})[:16] == seal


def test_texts_are_shared_from_forty_characters_on_if_they_recur():
    long, short = "l" * 40, "s" * 39
    rows = [{"a": [long, short, {long: short}]}, {"a": long, "b": "o" * 99}]
    kept = canonical.shared({"rows": rows, "warnings": [long]})
    key = sha256(long.encode()).hexdigest()[:8]
    assert kept == {
        "rows": [
            {"a": [{"$text": key}, short, {long: short}]},
            {"a": {"$text": key}, "b": "o" * 99},
        ],
        "texts": {key: long},
        "warnings": [long],
    }
    assert canonical.restored(kept) == {"rows": rows, "warnings": [long]}
    alone = {"rows": [{"a": long, long: 1}]}
    assert canonical.shared(alone) == alone


def test_two_texts_of_one_key_are_written_in_full(monkeypatch):
    same = SimpleNamespace(hexdigest=lambda: "0" * 64)
    monkeypatch.setattr(canonical, "sha256", lambda _: same)
    data = {"rows": [{"a": ["a" * 40, "b" * 40] * 2}]}
    assert canonical.shared(data) == data


KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)"


def test_long_texts_that_recur_stand_once_in_a_file(tmp_path, saved):
    rows = [row | {"kernels": [KERNEL, "short", "short"]} for row in made()["rows"]]
    rows[1]["kernel_seconds"] = [[KERNEL, "pointwise", 2, 1e-5], ["l" * 80, "product", 1, 1e-5]]
    path = recording.save(made(rows=rows), tmp_path, defaults=DEFAULTS)
    text = path.read_text()
    assert text.count(KERNEL) == 1 and text.count('"$text"') == 3
    loaded = recording.load(path)
    assert loaded.data["rows"][0]["kernels"] == [KERNEL, "short", "short"]
    assert loaded.data["rows"][1]["kernel_seconds"][0][0] == KERNEL
    full = loading.published(path)
    assert full.count(KERNEL) == 3 and "$text" not in full and '"texts"' not in full
    assert json.loads(full)["content_sha"] == json.loads(text)["content_sha"]
    path.write_text(full)
    assert recording.load(path).data == loaded.data, "both forms are one recording"
    assert loading.published(path) == full


def test_a_text_that_is_lost_is_told(tmp_path):
    rows = [row | {"note": KERNEL} for row in made()["rows"]]
    path = recording.save(made(rows=rows), tmp_path, defaults=DEFAULTS)
    path.write_text(path.read_text().replace('"texts": {', '"texts": {"00000000": "", ', 1))
    assert recording.load(path).data["rows"][0]["note"] == KERNEL
    path.write_text(path.read_text().replace('{"$text": "', '{"$text": "x', 1))
    with pytest.raises(RecordingError, match=r"refers to the text 'x.*Make it anew"):
        recording.load(path)


def test_nulls_are_left_out_of_a_file_and_come_back():
    data = {"experiment": "toy", "rows": [{"a": 1, "b": None}, {"b": 2, "c": None}]}
    kept = canonical.compacted(data)
    assert kept["rows"] == [{"a": 1}, {"b": 2}] and kept["columns"] == ["a", "b", "c"]
    assert canonical.expanded(kept) == {
        "experiment": "toy",
        "rows": [{"a": 1, "b": None, "c": None}, {"a": None, "b": 2, "c": None}],
    }
    assert canonical.expanded(data) == data, "older files hold their nulls"
