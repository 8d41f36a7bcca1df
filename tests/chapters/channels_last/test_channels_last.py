"""channels_last: switches, layouts and checks of the experiments, and the verdict."""

import pandas as pd
import pytest
import torch

from anatomy import claims
from anatomy.chapters.channels_last import channels_last, requirements, residual
from anatomy.table.errors import DisagreementError
from tests.chapters.cuda_graphs.test_graph_capture import say
from tests.claims.test_claims import edited
from tests.fakes import synthetic

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", requirements.DTYPES)
def test_the_switches_are_what_a_format_means_and_are_put_back(dtype):
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32
    with pytest.raises(ZeroDivisionError), channels_last.convolutions_in(dtype, tuned=True):
        assert cudnn.allow_tf32 == matmul.allow_tf32 == (dtype == "tf32")
        assert cudnn.benchmark
        raise ZeroDivisionError
    assert (cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32) == before


@pytest.fixture
def compared(monkeypatch):
    """What `compare` is given, in place of a measurement."""
    given = []

    def compare(calls, **told):
        given.append((calls, told))
        raise RuntimeError("seen\nenough")

    monkeypatch.setattr(channels_last, "compare", compare)
    return given


def test_each_variant_has_its_layout_and_only_one_converts(compared):
    channels_last.map(device="cpu", dtype="fp32", scale=0.04)
    ops = [told["op"] for _, told in compared]
    assert len(set(ops)) == len(ops) == 3 * (1 + 1 + 1)
    calls, told = compared[0]
    assert told["quantity"] == "gpu_warm" and list(calls) == [
        "NCHW",
        "channels_last",
        "channels_last, input converted",
    ]
    plain, last, converted = (call() for call in calls.values())
    assert plain.is_contiguous() and last.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last, plain, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(converted, plain, rtol=1e-4, atol=1e-4)
    exact = told["reference"]()
    assert exact.dtype == torch.float64 and told["reference"]() is exact


def test_training_has_gradients_of_the_weight_and_of_inputs_that_are_no_images(compared):
    channels_last.map(device="cpu", dtype="bf16", scale=0.04)
    outputs = {told["op"]: calls["NCHW"]() for calls, told in compared if "NCHW" in calls}
    assert len(outputs["C=3 training bf16 N=4"]) == 2
    assert len(outputs["C=64 training bf16 N=4"]) == 3
    assert outputs["C=64 training bf16 N=4"][0].dtype == torch.bfloat16


def test_what_fails_is_a_row_with_the_reason_and_no_time(compared):
    table = channels_last.map(device="cpu", dtype="tf32", scale=0.04)
    assert set(table.note) == {"failed: RuntimeError: seen"} and table.median_s.isna().all()
    assert list(dict.fromkeys(table.op))[:2] == ["C=3 inference tf32 N=4", "C=3 training tf32 N=4"]
    assert list(table.variant[:3]) == ["NCHW", "channels_last", "channels_last, input converted"]
    assert set(table.channels) == {3, 64, 256} and not table.cudnn_benchmark.any()


def test_tuning_is_measured_at_the_largest_batch_and_every_cell_has_a_name(compared):
    toy = {"device": "cpu", "width": 4, "side": 32, "short": True, "scale": 1.0}
    other = channels_last.network(**toy, dtype="fp16")
    assert not other.cudnn_benchmark.any() and set(other.batch) == {8, 32}
    table = channels_last.network(**toy, dtype="bf16")
    assert not table.duplicated(["op", "variant"]).any() and len(table) == 3 * (1 + 2 + 4)
    assert set(table[table.cudnn_benchmark].batch) == {128}
    assert set(table[table.phase == "training"].batch) == {32, 128}
    assert all(op.endswith(", tuned") for op in table[table.cudnn_benchmark].op)


def test_a_wrong_layout_of_a_network_would_be_found_out(monkeypatch):
    real = channels_last.compare

    def compare(calls, **told):
        wrong = lambda: calls["NCHW"]().flip(0)  # noqa: E731 - images in another order
        return real(calls | {"channels_last": wrong}, **told)

    monkeypatch.setattr(channels_last, "compare", compare)
    images = torch.randn(4, 3, 32, 32)
    base = residual.network(4, requirements.SHORT, images)
    told = {"op": "x", "phase": "inference", "dtype": "bf16", "cudnn_benchmark": False}
    with pytest.raises(DisagreementError, match="channels_last strays"):
        channels_last._network(base, images, CPU, told, 6, 0.05)


def test_the_deep_network_has_the_weights_of_resnet_50():
    base = residual.network(64, requirements.DEEP, torch.randn(2, 3, 32, 32))
    # The published count of ResNet-50's parameters, which follows from its table of layers.
    assert sum(each.numel() for each in base.parameters()) == 25_557_032
    again = residual.network(64, requirements.DEEP, torch.randn(2, 3, 32, 32))
    assert torch.equal(base[0].weight, again[0].weight)


def test_uses_are_conversion_over_saving_and_null_unless_it_is_faster():
    def table(verdict):
        rows = [("NCHW", 3.0, "control"), ("channels_last", 1.0, verdict)]
        rows.append(("channels_last, input converted", 2.0, "faster"))
        columns = ("variant", "blocks_s", "verdict")
        rows = [dict(zip(columns, (n, [s] * 12, v), strict=True)) for n, s, v in rows]
        return channels_last._with_uses(pd.DataFrame(rows)).set_index("variant").uses

    assert table("faster")["channels_last"] == 0.5
    assert table("slower").isna().all() and table("undecided").isna().all()


@pytest.fixture
def recorded(tmp_path):
    for name in ("map", "network"):
        synthetic.MAKERS[f"channels_last.{name}"](tmp_path)
    return tmp_path


def verdict(root) -> claims.Result:
    return claims.evaluate(synthetic.showing(root=root), "channels-last-is-faster")


def test_where_a_format_has_no_tensor_cores_the_claim_says_so(recorded):
    found = verdict(recorded)
    assert found.word == claims.IN_PART and "never for fp32" in found.condition
    assert found.deviation == pytest.approx(1.0, abs=0.05), "1.25 lies within 1.1 to 1.3"


@pytest.mark.parametrize(
    ("word", "ratio", "expected"),
    [
        ("faster", 0.8, claims.HOLDS),
        ("same", 1.0, claims.FAILS),
        ("faster", 0.95, claims.FAILS),
        ("faster", 1 / 1.1, claims.INCONCLUSIVE),
    ],
)
def test_the_verdict_follows_the_rows(word, ratio, expected, recorded):
    edited(recorded, "channels_last.network", lambda row: say(row, word, ratio))
    assert verdict(recorded).word == expected


def test_a_machine_that_can_run_none_of_it_says_why(recorded):
    def refuse(row):
        row |= {name: None for name in row if name.endswith("_s") or name.startswith("ratio")}
        row["note"] = "cuDNN is not there"

    edited(recorded, "channels_last.network", refuse)
    found = verdict(recorded)
    assert (found.word, found.evidence) == (claims.NOT_MEASURABLE, "cuDNN is not there")
