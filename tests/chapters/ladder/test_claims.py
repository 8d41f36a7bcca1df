"""Claims on the ladder's training step: each verdict turns when the rows behind it are edited."""

import pytest

from anatomy import claims
from anatomy.chapters.ladder.claims import rungs
from anatomy.chapters.ladder.shown import scripts
from anatomy.record import recording
from tests.chapters.ladder import ladder_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import verdict

STEP, WHOLE = rungs.STEP, rungs.WHOLE
WORDS = {
    "baseline-has-no-cublas": claims.FAILS,
    "tf32-for-fp32": claims.HOLDS,
    "amp-is-fp16": claims.FAILS,
    "every-step-is-faster": claims.IN_PART,
    "baseline-makes-intermediates": claims.HOLDS,
    "triton-for-the-mlp": claims.IN_PART,
    "whole-block-fused": claims.FAILS,
    "compile-avoids-launches": claims.IN_PART,
    "cpp-backend": claims.HOLDS,
}
READ = {
    "pytorch-2-suffices": claims.IN_PART,
    "container-25-11": claims.NOT_MEASURABLE,
    "scripts-benchmark-themselves": claims.NOT_MEASURABLE,
}


@pytest.fixture
def root(tmp_path):
    """Recordings at every width, to be edited."""
    for need in rungs.TRAINING:
        ladder_rows.training(tmp_path, **need.params)
    return tmp_path


def edit(root, change) -> None:
    """Change the rows of all recordings, and save them again."""
    for file in sorted((root / synthetic.MACHINE / "ladder.training").glob("*.json")):
        data = recording.load(file).data
        for row in data["rows"]:
            change(row)
        data["rows"] = synthetic.as_said(data["rows"])
        recording.save(data, root)


def retimed(label: str, factor: float):
    """A change of a way's times in every comparison, and of what is stored of them."""

    def change(row):
        if row["variant"] == label and row.get("blocks_s"):
            row["blocks_s"] = [factor * each for each in row["blocks_s"]]
            names = ("median_s", "low_s", "high_s", "ratio", "ratio_low", "ratio_high")
            names += ("ratio_before", "ratio_before_low", "ratio_before_high")
            row |= {n: factor * row[n] for n in names if row.get(n) is not None}
            for ratio, word in (("ratio", "verdict"), ("ratio_before", "verdict_before")):
                if row.get(ratio) is not None:
                    row[word] = "faster" if row[ratio] < 1 else "slower"

    return change


def kernels(label: str, *listed: list):
    """A change of a way's kernels."""

    def change(row):
        if row["variant"] == label and row["op"] == STEP:
            row["kernel_seconds"] = [list(each) for each in listed]

    return change


@pytest.mark.parametrize(("name", "word"), WORDS.items())
def test_verdicts_follow_from_the_recordings(name, word, root):
    found = verdict(root, name)
    assert found.word == word, found.evidence


@pytest.mark.parametrize(("name", "word"), READ.items())
def test_what_only_reading_settles_has_its_reason(name, word, tmp_path):
    found = verdict(tmp_path, name)
    assert found.word == word and found.evidence.startswith("By reading: ")


@pytest.mark.parametrize("name", WORDS)
def test_without_its_recordings_a_claim_has_no_verdict(name, tmp_path):
    assert verdict(tmp_path, name).word == claims.NOT_RECORDED


def test_a_baseline_whose_products_are_pytorchs_own_has_no_cublas(root):
    own = ["void at::native::gemm_kernel<float>(float*)", "product", 24, 2e-3]
    edit(root, kernels("0 fp32", own))
    found = verdict(root, "baseline-has-no-cublas")
    assert found.word == claims.HOLDS and "gemm_kernel, not of cuBLAS" in found.evidence
    edit(root, kernels("1 amp bf16", own))
    assert verdict(root, "baseline-has-no-cublas").word == claims.FAILS


def test_a_baseline_without_a_product_says_nothing_of_cublas(root):
    edit(root, kernels("0 fp32", [ladder_rows.ELEMENTWISE, "pointwise", 8, 1e-4]))
    found = verdict(root, "baseline-has-no-cublas")
    assert found.word == claims.NOT_MEASURABLE and "known to be a matmul" in found.evidence


def test_a_type_of_pytorchs_in_a_kernel_of_cublas_does_not_make_it_pytorchs(root):
    theirs = ["void gemmk1_kernel<at::BFloat16, 256>(float*)", "product", 24, 2e-3]
    edit(root, kernels("0 fp32", theirs))
    assert verdict(root, "baseline-has-no-cublas").word == claims.FAILS


def test_tf32_that_is_no_faster_does_not_help(root):
    edit(root, retimed("1 tf32", 3.0))
    assert verdict(root, "tf32-for-fp32").word == claims.FAILS


def test_fp16_is_the_format_of_autocast_where_it_is_faster(root):
    edit(root, retimed("1 amp fp16", 0.5))
    assert verdict(root, "amp-is-fp16").word == claims.HOLDS


def test_fp16_is_shown_without_the_optimizer_too_which_decides_nothing(root):
    def quick(row):
        if row["op"] == rungs.STEP:
            retimed("1 amp fp16", 0.5)(row)

    edit(root, quick)
    found = verdict(root, "amp-is-fp16")
    assert found.word == claims.FAILS
    assert "Without AdamW: at width 1024 0.5" in found.evidence


def test_a_rung_that_goes_backwards_is_named(root):
    found = verdict(root, "every-step-is-faster")
    assert "3 default at width 4096" in found.evidence
    assert "3 default" in found.condition and found.condition.startswith("except for")
    edit(root, retimed("3 default", 0.5))
    # What is made faster leaves the next rung behind it, whose stored ratio stays as it was.
    assert verdict(root, "every-step-is-faster").word == claims.HOLDS


def test_the_seeds_steps_are_the_ways_that_the_ladder_counts():
    counted = [f"{rung[0]} {scripts.ways(rung)[0]}" for rung in scripts.names()]
    assert list(rungs.SEED_STEPS) == counted[1:5]


def test_a_rung_that_was_not_measured_is_counted_apart(root):
    def refuse(row):
        if row["variant"] == "4 current":
            row |= {name: None for name in row if name.endswith("_s") or "ratio" in name}
            row |= {"note": "Rung 4 needs Transformer Engine", "verdict_before": None}

    edit(root, refuse)
    found = verdict(root, "every-step-is-faster")
    assert "6 of 24 cases can't be measured: Rung 4 needs" in found.evidence


def test_intermediates_are_many_where_memory_is_saved_without_them(root):
    def same(row):
        if row["op"] == STEP and row["variant"] == "1 amp bf16":
            row["peak_bytes"] = ladder_rows.PEAK_BYTES["2"]

    edit(root, same)
    assert verdict(root, "baseline-makes-intermediates").word == claims.FAILS


def test_without_an_account_of_memory_there_is_no_verdict_on_it(root):
    edit(root, lambda row: row.update(peak_bytes=None))
    found = verdict(root, "baseline-makes-intermediates")
    assert found.word == claims.NOT_MEASURABLE and "allocator" in found.evidence


def test_the_parts_that_are_triton_are_told_apart(root):
    found = verdict(root, "triton-for-the-mlp")
    assert found.condition == "except for products, in 6 of 9 cases"
    assert "nvjet" in found.evidence
    triton = [[name, "pointwise", 8, 1e-4] for name in ladder_rows.TRITON]
    edit(root, kernels("3 default", *triton, ["triton_tem_fused_mm_0", "product", 24, 2e-3]))
    assert verdict(root, "triton-for-the-mlp").word == claims.HOLDS


def test_a_block_is_one_kernel_only_if_it_is(root):
    found = verdict(root, "whole-block-fused")
    assert found.measured.value == pytest.approx(96 / 4) and "50.0 eager" in found.evidence
    edit(root, lambda row: row.update(kernels_per_call=4) if row["op"] == STEP else None)
    assert verdict(root, "whole-block-fused").word == claims.HOLDS
    edit(root, lambda row: row.update(kernels_per_call=8) if row["op"] == STEP else None)
    assert verdict(root, "whole-block-fused").word == claims.FAILS, "two kernels are not one"


def test_the_kernels_of_the_loss_make_no_second_kernel_of_a_block(root):
    edit(root, lambda row: row.update(kernels_per_call=4 + 3) if row["op"] == STEP else None)
    assert verdict(root, "whole-block-fused").word == claims.HOLDS


def test_what_clears_memory_is_no_kernel_of_a_block(root):
    def cleared(row):
        if row["op"] == STEP and row.get("kernel_seconds"):
            row["kernels_per_call"] = 4 + 28
            row["kernel_seconds"].append(["Memset (Device)", "other", 28, 1e-5])

    edit(root, cleared)
    found = verdict(root, "whole-block-fused")
    assert found.word == claims.HOLDS and found.measured.value == pytest.approx(1)


def test_a_launch_that_nothing_waits_for_says_nothing_of_fusing(root):
    def ahead(row):
        if row["variant"].startswith("3 default"):
            row["enqueue_s"] = 0.4 * row["median_s"] * 0.9

    edit(root, ahead)
    found = verdict(root, "compile-avoids-launches")
    assert found.word == claims.FAILS and "2 of 6 cases can't be measured" in found.evidence
    edit(root, retimed("3 reduce-overhead", 0.5))
    found = verdict(root, "compile-avoids-launches")
    assert found.word == claims.FAILS and "can't be measured" not in found.evidence


def test_launches_are_avoided_where_graphs_gain_nothing(root):
    assert "width 4096" in verdict(root, "compile-avoids-launches").condition
    edit(root, retimed("3 reduce-overhead", 0.5))
    assert verdict(root, "compile-avoids-launches").word == claims.FAILS


def test_the_compilers_code_is_that_of_the_device(root):
    def other(row):
        if row["op"] == "first call":
            row["cpu_code"] = "triton"

    edit(root, other)
    assert verdict(root, "cpp-backend").word == claims.IN_PART
    edit(root, kernels("3 default", [ladder_rows.ELEMENTWISE, "pointwise", 8, 1e-4]))
    assert verdict(root, "cpp-backend").word == claims.FAILS


@pytest.mark.parametrize(
    "name", ["baseline-has-no-cublas", "triton-for-the-mlp", "whole-block-fused"]
)
def test_on_a_machine_without_kernels_it_says_so(name, root):
    edit(root, lambda row: row.update(kernel_seconds=None, kernels_per_call=None))
    found = verdict(root, name)
    assert found.word == claims.NOT_MEASURABLE and "NVIDIA GPU" in found.evidence
