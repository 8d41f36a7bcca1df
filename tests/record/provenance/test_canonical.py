"""One measurement has one form on disk, whatever types it came in."""

import json

import numpy as np
import pandas as pd
import pytest

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
