"""What pages may call: markup with provenance, gaps for what is missing, errors for wrong names."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from anatomy import page
from anatomy.chapters.memory_layout import figures
from anatomy.figures import tables
from anatomy.figures.charts import strips
from anatomy.figures.charts.strips import notices, sources
from anatomy.figures.text import inline
from anatomy.record import signatures
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.showing import Asked, Showing, record_command, shown_machine, using
from anatomy.site.collecting import PageProblems, on_page
from anatomy.table.errors import AnatomyError, UnknownName
from tests.fakes import synthetic

SIZES = [2048, 4096, 8192]
GRID = {
    "rows": "dtype",
    "by": ("m", "n", "k"),
    "quantity": "gpu_warm",
    "dtype": ["fp16", "fp32"],
    "m": SIZES,
}
CALLS = [
    ("show", ("contiguity.bench",), {"op": "matmul", "quantity": "gpu_warm"}),
    ("show", ("contiguity.bench",), {"op": "matmul", "chart": "times", "caption": "See `x`."}),
    ("show", ("contiguity.bench",), {"quantity": "gpu_warm", "chart": "ratios", "unfold": True}),
    ("show", ("contiguity.bench",), {"op": "matmul", "chart": "rates"}),
    ("show", ("alignment.thresholds",), {"op": "matmul", "chart": "sweep"}),
    ("show", ("alignment.thresholds",), {"chart": "sweep-rates"}),
    ("show", ("alignment.thresholds",), {"chart": "sweep-ratios"}),
    ("show", ("tensor_layout.report",), {}),
    ("matrix", ("contiguity.bench", "ratio"), GRID),
    ("matrix", ("contiguity.bench", "median_s"), GRID | {"op": "matmul"}),
    ("matrix", ("contiguity.bench", "rate"), GRID | {"variants": ["contiguous"]}),
    ("limits", (), {}),
    *(("limits", (part,), {}) for part in ("roofline", "bandwidth", "floors", "graphs")),
    ("claims", ("slice-doubles-fp16", "split-transactions"), {}),
    ("seed_beside", ("fp16-2048",), {}),
    ("seed_beside", ("fp32-8192", "layer_norm_chain"), {"dtype": "tf32", "chart": True}),
    ("kernels", ("contiguity.bench",), {"quantity": "gpu_warm"}),
    ("command", ("contiguity.bench",), {}),
    ("output", ("contiguity.bench",), {"op": "matmul", "quantity": "gpu_warm"}),
    ("output", ("tensor_layout.report",), {}),
]
IDS = [f"{name} {' '.join(a)} {' '.join(map(str, k))}" for name, a, k in CALLS]


class Balance(HTMLParser):
    """Raises if tags are not closed in order."""

    VOID = ("br", "img", "input", "meta", "link")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(re.sub(r"<svg .*?</svg>", "", html, flags=re.DOTALL))
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def text(html: str) -> str:
    plain = re.sub(r"<svg .*?</svg>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", plain))).strip()


def call(name: str, *arguments, showing: Showing | None = None, **options) -> str:
    with using(showing or synthetic.showing()):
        room = page if hasattr(page, name) else figures  # the seed's are of its chapter
        return getattr(room, name)(*arguments, **options)


@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=IDS)
def test_every_function_renders_balanced_markup_with_its_provenance(name, arguments, options):
    showing = synthetic.showing()
    html = call(name, *arguments, showing=showing, **options) + sources(showing)
    Balance(html)
    told = text(html)
    if name != "command":
        for part in ("Toy GPU", "torch 2.13.0+cu130", "CUDA 13.0", "driver 580.1", "W ", "MHz"):
            assert part in told, part
        assert "recorded 2026-11-21" in told and "commit 0123456" in told
        assert re.search(r'href="[^"]*recordings/toy-gpu/[^"]+\.json"', html)
    assert "nan" not in told.lower() and "None" not in told


@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=IDS)
def test_while_collecting_every_function_notes_its_recordings_and_shows_nothing(
    name, arguments, options
):
    collecting = Showing(root=None, machine="", page="a.md", line=7, collecting=True)
    assert call(name, *arguments, showing=collecting, **options) == ""
    assert collecting.asked and {asked.place for asked in collecting.asked} == {"a.md:7"}
    rendered = synthetic.showing()
    call(name, *arguments, showing=rendered, **options)
    looked = {(found.name, *found.params.items()) for found in rendered.looked_up()}
    noted = {(asked.name, *asked.params.items()) for asked in collecting.asked}
    assert looked == noted, "a build would render what it did not measure, or the other way round"


@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=IDS)
def test_without_recordings_every_function_shows_a_gap_with_the_command(
    name, arguments, options, tmp_path
):
    html = call(name, *arguments, showing=synthetic.showing(root=tmp_path), **options)
    Balance(html)
    assert "pytorch-gpu-anatomy record" in html


@pytest.mark.parametrize(
    ("name", "arguments", "options", "says"),
    [
        ("show", ("contiguity.benhc",), {}, "no experiment 'contiguity.benhc'. Did you mean"),
        ("show", ("contiguity.bench",), {"dtpye": "fp16"}, "called 'dtpye'. Did you mean 'dtype'"),
        ("show", ("contiguity.bench",), {"dtype": "fp17"}, "it must be one of fp16, bf16"),
        ("show", ("contiguity.bench",), {"op": "matmull"}, "no op 'matmull'. Did you mean"),
        ("show", ("contiguity.bench",), {"quantity": "warm"}, "no quantity 'warm'"),
        ("show", ("contiguity.bench",), {"rows": ["contiguos"]}, "no row 'contiguos'. Did you"),
        ("show", ("contiguity.bench",), {"columns": ["ratoi"]}, "no column 'ratoi'. Did you mean"),
        ("show", ("contiguity.bench",), {"chart": "bars"}, "no chart 'bars'. The nearest of"),
        ("show", ("tensor_layout.report",), {"chart": "times"}, "no column with values to draw"),
        ("matrix", ("contiguity.bench",), {"by": "m", "rows": "dtype"}, "needs lists of values"),
        ("matrix", ("contiguity.bench",), GRID | {"by": "size"}, "called 'size'"),
        ("matrix", ("contiguity.bench",), GRID | {"n": [1, 2]}, "give equally many"),
        ("matrix", ("contiguity.bench",), GRID | {"quantity": None}, "choose of gpu_warm, gpu"),
        ("claims", ("slice-doubles-fp61",), {}, "no claim 'slice-doubles-fp61'. Did you mean"),
        ("claims", (), {}, "needs the ids"),
        ("seed_beside", ("fp16-4096",), {}, "no run of the seed 'fp16-4096'. Did you mean"),
        ("seed_beside", ("fp16-2048", "layer_norm"), {}, "Did you mean 'layer_norm_chain'"),
        ("command", ("contiguity.bench",), {"options": ["mm"]}, "called 'mm'"),
    ],
)
def test_a_wrong_name_is_an_error_that_suggests_the_right_one(name, arguments, options, says):
    with pytest.raises(AnatomyError) as error:
        call(name, *arguments, **options)
    assert says in str(error.value)


def stale(showing: Showing, name: str, state: str = "code-changed", **params) -> Showing:
    found = showing.find(name, **params)
    key = (showing.machine, found.name, *sorted(found.params.items()))
    reason = Freshness(state, "The reason.")
    showing.known[key] = type(found)(found.name, found.params, found.recording, reason)
    return showing


@pytest.mark.parametrize("state", ["code-changed", "software-other", "machine-other"])
def test_what_is_not_current_shows_its_figures_under_a_badge(state):
    showing = stale(synthetic.showing(), "contiguity.bench", state)
    html = call("show", "contiguity.bench", op="matmul", showing=showing)
    assert 'class="notice badge"' in html and "The reason." in html
    assert "<code>pytorch-gpu-anatomy record contiguity.bench</code>" in html
    assert "sliced_offset_view" in html


def test_a_row_that_an_outdated_recording_lacks_is_a_badge_and_no_error():
    showing = stale(synthetic.showing(), "contiguity.bench")
    html = call("show", "contiguity.bench", rows=["came_later"], showing=showing)
    assert 'class="notice badge"' in html and "<table" not in html


def test_the_sources_tell_ranges_warnings_dirt_and_a_card_that_was_accepted(monkeypatch):
    showing = synthetic.showing(here={"slug": "toy-gpu", "card": "another"})
    found = showing.find("contiguity.bench")
    found.recording.data["warnings"].append("the fan was <loud>")
    found.recording.data["code"]["dirty"] = True
    try:
        plain = text(sources(showing))
        assert "1700–1730 MHz" in plain and "noise floor 0.17%–0.35%" in plain
        assert "1 warning while recording the fan was <loud>" in plain
        assert "0123456 with uncommitted changes" in plain
        assert "another one of this model" not in plain
        monkeypatch.setenv("ANATOMY_CARD", "any")
        assert "another one of this model, accepted by ANATOMY_CARD=any" in text(sources(showing))
    finally:
        synthetic.shared.cache_clear()


def test_one_notice_stands_for_all_recordings_that_are_missing(tmp_path):
    showing = synthetic.showing(root=tmp_path)
    found = [showing.find("contiguity.bench", m=m) for m in (512, 1024, 512)]
    html = notices(synthetic.showing(), found)
    assert "2 recordings are missing" in html and html.count("record contiguity.bench") == 2


def test_the_matrix_shows_each_ratio_with_interval_and_verdict_and_gaps_for_the_rest(tmp_path):
    synthetic.bench(tmp_path, "fp16", 4096)
    showing = synthetic.showing(root=tmp_path)
    html = call("matrix", "contiguity.bench", showing=showing, **GRID | {"op": "matmul"})
    found = showing.find("contiguity.bench").recording.data["rows"]
    row = next(r for r in found if r["variant"] == "sliced_offset_view")
    told = text(html)
    assert f"▲ {row['ratio']:.2f} slower" in told
    assert f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}], 95%" in html
    assert html.count("<td") == 4 * 2 * 3  # four findings, two formats, three sizes
    assert html.count('title="not recorded"') == 4 * 5
    assert "5 recordings are missing" in told


def test_the_seeds_figures_stand_beside_ours_and_are_called_cited():
    told = text(call("seed_beside", "fp16-2048", "matmul"))
    assert "RTX 5070 (cited)" in told and "0.6576 ms" in told and "1.99×" in told
    assert "cited from the original suite's guide to tensor semantics, on contiguity" in told
    assert "Toy GPU, µs" in told


def test_beside_the_seed_everything_is_over_the_contiguous_matrix_as_it_was_there():
    told = text(call("seed_beside", "fp16-2048", "matmul"))
    strided = told.partition("as_strided_view")[2].partition("transposed_contig_copy")[0]
    assert "0.555×" in strided and "▼ faster" in strided  # half the work, in both columns
    assert " 0.65" in strided, "the synthetic rule: 0.65 of the contiguous time"


def test_the_command_writes_out_its_options_and_the_seconds_it_took():
    html = call("command", "contiguity.bench", dtype="bf16")
    assert "pytorch-gpu-anatomy c01 contiguity-bench --dtype bf16 Took" in text(html)
    assert '<span class="whole">--dtype bf16</span>\n</code>' in html, "no line breaks inside"
    assert "Took 12.5 s on Toy GPU" in text(html)
    showing = synthetic.showing()
    row = showing.find("contiguity.bench", dtype="bf16").recording.rows[0]
    try:
        row |= {"peak_bytes": 2**20, "total_peak_bytes": 2**30}
        html = call("command", "contiguity.bench", dtype="bf16", showing=showing)
        assert "at most 1.00 GiB of GPU memory" in text(html), "with the weights"
    finally:
        del row["peak_bytes"], row["total_peak_bytes"]
    html = call("command", "contiguity.bench", dtype="bf16")
    flags = {p.name for p in signatures.signature("contiguity.bench").parameters}
    assert all(f"<code>--{flag}</code>" in html for flag in flags)
    every = call("command", "contiguity.bench")
    assert (
        "<code>pytorch-gpu-anatomy c01 contiguity-bench \\\n"
        "  --device cuda:0 --dtype fp16 --m 4096 --n 4096 --k 4096 --iters 200\n</code>"
    ) in re.sub(r"</?span[^>]*>", "", every)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::vectorized_layer_norm_kernel<c10::Half, float>(int, float)",
         "vectorized_layer_norm_kernel"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_nn_align1>(T::Params)",
         "cutlass_80_wmma_tensorop_f16_s161616gemm_nn_align1"),
        ("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native"
         "::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
         "{lambda(c10::Half)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
         "elementwise_kernel direct_copy_kernel_cuda"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT"),
        ("void cudnn::fusion::lean_reduction_kernel<false, false>(void*, float*, int, int, in",
         "lean_reduction_kernel"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, (x)0>(T)",
         "gemvx::kernel"),
        ("void transformer_engine::unary_kernel<16, true, float, transformer_engine::Empty, &("
         "float transformer_engine::gelu<float, float>(float, transformer_engine::Empty const&)), ",
         "unary_kernel gelu"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_k0_0",
         "cudnn sdpa_sm90_flash_fprop_wgmma_f16"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_"
         "alignc4_execute_kernel__5x_cublas",
         "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8 cublas"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
    ],
)  # fmt: skip
def test_kernels_have_short_names_that_still_say_which_they_are(name, short):
    from anatomy.table import kernel_names

    assert kernel_names.short(name) == short


def test_a_long_kernel_keeps_both_ends():
    from anatomy.table.kernel_names import LONGEST, short

    told = short("sm90_" + "x" * 200 + "_align8")
    assert told.startswith("sm90_") and told.endswith("_align8") and len(told) <= LONGEST


def test_each_recording_behind_a_page_is_told_of_once():
    showing = synthetic.showing(
        shown=[Asked("contiguity.bench", {}, "a:1"), Asked("tensor_layout.report", {}, "a:2")]
    )
    figures = [call("show", "contiguity.bench", op="matmul", showing=showing) for _ in range(2)]
    for figure in figures:
        assert 'href="#from-contiguity-bench"' in figure and "driver" not in text(figure)
    inline.replace(showing, "[[tensor_layout.report.variant=contiguous.is_contiguous]]")
    html = sources(showing)
    assert html.count("raw JSON") == 3, "the ceilings that shares are of included"
    for name in ("contiguity-bench", "tensor-layout-report", "limits-ceilings"):
        assert html.count(f'id="from-{name}"') == 1
    assert text(html).count("driver") == 1, "what all have in common is said once"


def test_variants_can_be_called_by_the_code_that_they_run():
    labels = {"transposed_view": "A.t() @ B", "contiguous": "A @ B"}
    how = {"op": "matmul", "quantity": "gpu_warm", "chart": "times"}
    told = text(call("show", "contiguity.bench", labels=labels, **how))
    assert "A.t() @ B" in told and "A @ B (again)" in told and "transposed_view" not in told
    with pytest.raises(UnknownName, match="transposed"):
        call("show", "contiguity.bench", labels={"transposed": "A.t()"}, **how)


def test_what_the_host_paces_names_its_cpu_under_the_figure():
    showing = synthetic.showing()
    found = showing.find("contiguity.bench")
    assert "Toy CPU" not in strips.under(showing, [found], "a table")
    assert "what the host paces follows the CPU: Toy CPU" in strips.under(
        showing, [found], tables.times([{"variant": "a", "median_s": 1.0, "paced_by": "host"}])
    )


def test_what_an_occasion_is_is_said_once_on_a_page():
    showing = synthetic.showing()
    found = showing.find("contiguity.bench")
    said = strips.FURTHER
    assert said not in strips.under(showing, [found], "time (95% interval)")
    under = [strips.under(showing, [found], "interval over 2 occasions") for _ in range(2)]
    assert [said in each for each in under] == [True, False]
    assert "how-we-measure.md#would-you-get-the-same" in under[0]
    elsewhere = synthetic.showing(pages={"index.md": ""})  # a site without that page
    assert f"further, {said}</p>" in strips.under(elsewhere, [found], "interval over 2 occasions")


def test_occasions_of_several_machines_are_told_of_each():
    assert strips._each({"Toy": 3, "Other": 2}) == "intervals over 3 occasions (Toy) and 2 (Other)"


def test_links_to_raw_files_follow_the_page_they_stand_on():
    for url, up in (("", ""), ("a/b/", "../../"), ("a/b.html", "../")):
        showing = synthetic.showing(url=url)
        call("show", "contiguity.bench", op="matmul", showing=showing)
        assert f'href="{up}recordings/toy-gpu/contiguity.bench/default.json"' in sources(showing)


def test_collecting_lists_each_recording_once_with_its_first_place(tmp_path):
    (tmp_path / "a.md").write_text(
        '---\ntitle: A\n---\n\n```python exec="on" html="1"\nfrom anatomy.page import show\n'
        'print(show("contiguity.bench", m=512))\nprint(show("contiguity.bench", m=512))\n```\n'
        "And [[contiguity.bench(m=256).matmul.gpu_warm.contiguous.ratio]].\n"
    )
    found = page.collect(docs=tmp_path)
    places = {(a.name, a.params.get("m")): a.place for a in found}
    assert places[("contiguity.bench", 512)] == "a.md:5"
    assert places[("contiguity.bench", 256)] == "a.md:10"
    assert len(found) == 3 and ("limits.ceilings", None) in places
    bench = next(asked for asked in found if asked.params.get("m") == 512)
    assert bench.params == signatures.signature("contiguity.bench").bind(m=512)


def test_collecting_tells_everything_that_is_wrong_at_once(tmp_path):
    (tmp_path / "a.md").write_text("```python exec=on\nx\n```\n\n[[claim:nope]]\n")
    (tmp_path / "b.md").write_text(
        '```python exec="on"\nfrom anatomy.page import show\nshow("nope.nope")\n```\n'
    )
    with pytest.raises(PageProblems) as error:
        page.collect(docs=tmp_path)
    assert [told.partition(": ")[0] for told in error.value.problems] == [
        *("a.md:1", "a.md:5", "b.md:3"),
    ]


def test_a_block_that_fails_for_want_of_data_is_left_to_rendering():
    code = 'from anatomy.page import show\nprint(show("contiguity.bench", m=512)[10_000])\n'
    asked, wrong = on_page("a.md", f'```python exec="on"\n{code}```\n')
    assert not wrong and {each.name for each in asked} == {"contiguity.bench", "limits.ceilings"}


def test_the_command_that_mends_a_gap_names_what_is_not_default():
    params = signatures.signature("contiguity.bench").bind(dtype="bf16", m=512)
    command = "pytorch-gpu-anatomy record contiguity.bench --dtype bf16 --m 512"
    assert record_command("contiguity.bench", params) == command


def test_the_machine_shown_comes_from_the_environment_or_the_sites_settings(tmp_path, monkeypatch):
    monkeypatch.delenv("ANATOMY_MACHINE", raising=False)
    with pytest.raises(AnatomyError, match="Nothing says which machine"):
        shown_machine(tmp_path)
    (tmp_path / "mkdocs.yml").write_text("a: 1\nextra:\n  # a word\n  b: 2\n  machine: some-gpu\n")
    assert shown_machine(tmp_path) == "some-gpu"
    monkeypatch.setenv("ANATOMY_MACHINE", "other-gpu")
    assert shown_machine(tmp_path) == "other-gpu"


def test_the_sites_own_pages_ask_for_what_exists():
    assert {asked.name for asked in page.collect()} <= set(signatures.experiments())
