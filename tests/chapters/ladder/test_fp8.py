"""Rungs 4 and 5: their ways compute what rung 0 does, rung 4's with a library that is played."""

import importlib.util
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = Path(__file__).parents[3] / "snippets" / "ladder"
WIDTH, LAYERS, B, T = 128, 2, 2, 32


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tested_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def problem():
    return torch.randn(2, B, T, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def wanted(problem):
    """Loss and gradients of rung 0."""
    baseline = script("0_baseline")
    model = baseline.build(WIDTH, LAYERS, "cpu")
    return baseline.step(model, *problem)(), gradients(model)


@pytest.fixture
def quick(monkeypatch):
    """torch.compile without the compiler of kernels."""
    plain = torch.compile

    def compile_quickly(model=None, *, dynamic=None):
        return plain(model, backend="aot_eager", dynamic=dynamic)

    monkeypatch.setattr(torch, "compile", compile_quickly)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def gradients(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.detach().double().flatten() for p in model.parameters()])


def strays(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


# What rounding may move all gradients together by: 2**-8 at most for each factor in bfloat16, and
# 2**-4 or 2**-3 in FP8; a wrong scale or a matrix turned the wrong way is off by half or more.
ALLOWED = {"bf16": 2**-6, "fp8": 2**-3}


# On a CPU no way has a graph.
@pytest.mark.parametrize("way", [w for w in script("5_fastest").WAYS if "without a graph" not in w])
def test_every_way_of_rung_5_has_the_gradients_of_rung_0(way, problem, wanted, quick):
    fastest = script("5_fastest")
    model = fastest.build(WIDTH, LAYERS, "cpu")
    loss = fastest.step(model, *problem, way)()
    assert float(loss) == pytest.approx(float(wanted[0]), rel=2**-8)
    off = strays(gradients(model), wanted[1])
    assert off < ALLOWED[way[:4].strip()]
    assert (off > 2**-6) == way.startswith("fp8"), "FP8 rounds more than bfloat16"


def test_layers_compiled_one_by_one_are_compiled_as_often_for_many_as_for_few(problem, quick):
    fastest = script("5_fastest")

    def compiled(layers: int, way: str) -> int:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        fastest.step(fastest.build(WIDTH, layers, "cpu"), *problem, way)()
        return torch._dynamo.utils.counters["stats"]["unique_graphs"]

    assert compiled(5, "bf16 by blocks") == compiled(3, "bf16 by blocks") == 3
    assert compiled(3, "bf16") == 1


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("active", [False, True])
def test_a_cast_has_its_largest_element_at_the_largest_of_the_format(own, active):
    fastest = script("5_fastest")
    x = torch.randn(48, 32, dtype=torch.bfloat16)
    wanted = (F.gelu(x, approximate="tanh") if active else x).float()
    cast = fastest.cast_by_kernel if own else fastest.cast_by_operators
    x8, x8_t, undo, largest = cast(x, wanted.abs().amax().view(1), fastest.E4M3, active)
    assert x8.float().abs().max() == 448 and undo.shape == (1,)
    torch.testing.assert_close(x8.float() * undo, wanted, rtol=2**-4, atol=float(undo))
    assert x8_t.is_contiguous() and torch.equal(x8_t.float(), x8.float().t())
    assert largest.shape == (fastest.PROGRAMS,) and largest.max() == wanted.abs().max()


def test_what_is_larger_than_the_step_before_becomes_the_largest_and_no_nan():
    fastest = script("5_fastest")
    x = torch.tensor([[1.0, -2.0, 4.0]], dtype=torch.bfloat16)
    x8, undo = fastest.to_fp8(x, torch.tensor([0.5, 2.0, 1.0]))
    assert (x8.float() * undo).tolist() == [[1.0, -2.0, 2.0]]


@pytest.mark.parametrize("kind", ["E4M3", "E5M2"])
def test_a_nan_is_kept_through_the_cast(kind):
    fastest = script("5_fastest")
    kind, x = getattr(fastest, kind), torch.tensor([[1.0, float("nan"), 4.0]])
    x8, turned, undo, largest = fastest.cast_by_operators(x, torch.tensor([2.0]), kind, False)
    assert x8.float().isnan().tolist() == [[False, True, False]] and not undo.isnan()
    assert turned[1].float().isnan() and largest.isnan().all(), "and the next step's scale is one"
    assert fastest.to_fp8(x[:, :1], largest)[0].float().isnan().all()


# Casts of the kernel and of the operators: M, K, format, GELU, parts that the largest comes in.
CASTS = """
import importlib.util, torch
spec = importlib.util.spec_from_file_location("fastest", {path!r})
fastest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fastest)
for M, K, kind, active, parts in (
    (130, 70, fastest.E4M3, False, 1), (128, 64, fastest.E5M2, False, 1024),
    (70, 130, fastest.E4M3, True, 1024),
):
    x, seen = 3 * torch.randn(M, K).bfloat16(), torch.zeros(parts)
    seen[parts // 2] = 2.5
    most = torch.finfo(kind).max
    made = fastest._shapes(x, seen, kind, active)
    fastest.cast_kernel[(fastest.PROGRAMS,)](x, seen, *made, M, K, most, parts, active)
    wanted = fastest.cast_by_operators(x, seen, kind, active)
    eight, turned = made[0].float(), made[1].float()
    # Triton's interpreter loses the carry where rounding reaches the next power of two.
    near = (eight - wanted[0].float()).abs() <= 2**-3 * wanted[0].float().abs() + 2**-6
    assert near.float().mean() > 0.95
    assert torch.equal(turned, eight.t())
    torch.testing.assert_close(made[2], wanted[2])
    torch.testing.assert_close(made[3].max(), wanted[3].max())
x[5, 7] = float("nan")
for kind in (fastest.E4M3, fastest.E5M2):
    made = fastest._shapes(x, seen, kind, False)
    fastest.cast_kernel[(fastest.PROGRAMS,)](x, seen, *made, M, K, most, parts, False)
    assert made[3].isnan().any(), "what is largest is not known"
assert made[0][5, 7].isnan() and made[1][7, 5].isnan()  # the interpreter has none in e4m3
seen[3] = float("nan")
fastest.cast_kernel[(fastest.PROGRAMS,)](x, seen, *made, M, K, most, parts, False)
assert made[2].isnan()
print("equal")
"""


def test_the_kernel_casts_as_the_operators_do():
    pytest.importorskip("triton")
    code = CASTS.format(path=str(FOLDER / "5_fastest.py"))
    told = {"env": os.environ | {"TRITON_INTERPRET": "1"}, "capture_output": True, "text": True}
    ran = subprocess.run([sys.executable, "-c", code], check=False, **told)
    assert ran.stdout.strip() == "equal", ran.stderr[-2000:]


def test_delayed_scales_are_those_of_the_step_before(problem, quick):
    """Current scales follow at once when inputs grow, delayed ones within a few steps."""
    fastest = script("5_fastest")
    x, target = problem
    model = fastest.build(WIDTH, LAYERS, "cpu")
    first = model.blocks[0].attention.qkv
    call = fastest.step(model, x, target, "fp8 delayed")
    small = fastest.largest_of(model.blocks[0].before(x.bfloat16())).item()
    assert first.seen[0].max().item() == pytest.approx(small, rel=1e-2)
    call()
    begun = gradients(model)
    fastest.step(model, x, target, "fp8")()
    assert strays(begun, gradients(model)) < 2**-3, "the first step has scales that fit"
    call = fastest.step(model, x, target, "fp8 delayed")
    with torch.no_grad():
        for norm in (block.before for block in model.blocks):
            norm.weight *= 4
    call()
    assert first.seen[0].max().item() == pytest.approx(4 * small, rel=1e-2)
    assert first.seen[0].grad is None, "nothing adds up from step to step"
    assert [p.shape for p in model.parameters()] == [
        p.shape for p in fastest.build(WIDTH, LAYERS, "cpu").parameters()
    ], "scales are no parameters"
    late = gradients(model)
    # What was cut off in one product made the next one's input too small.
    for _ in range(4 * LAYERS):
        call()
    settled = gradients(model)
    fastest.step(model, x, target, "fp8")()
    assert strays(settled, gradients(model)) < 2**-3 < strays(late, gradients(model))


def test_what_a_step_that_failed_has_left_is_not_added_to_the_next_ones_scales(problem, quick):
    fastest = script("5_fastest")
    model = fastest.build(WIDTH, LAYERS, "cpu")
    call = fastest.step(model, *problem, "fp8 delayed")
    call()
    kept = [each for linear in fastest.linears(model) for each in linear.seen]
    before = [each.max().item() for each in kept]
    for each in kept:
        each.grad = torch.full_like(each, 100.0)
    call()
    assert [each.max().item() for each in kept] == pytest.approx(before, rel=0.1)


def test_one_operator_serves_all_copies_of_a_script():
    first, second = script("5_fastest"), script("5_fastest")
    assert first.cast_by_kernel is second.cast_by_kernel
    cast = first.cast_by_kernel(torch.ones(2, 4), torch.ones(1), first.E4M3, False)
    assert (cast[0].float() == 448).all()


@pytest.mark.parametrize("way", ["fp8", "fp8 delayed"])
def test_weights_are_put_into_8_bits_once_for_inference(way, problem, quick):
    fastest = script("5_fastest")
    model, x = fastest.build(WIDTH, LAYERS, "cpu"), problem[0]
    plain = fastest.inference(model, x, "bf16")().float()
    found = fastest.inference(model, x, way)()
    assert 0 < strays(found.double(), plain.double()) < 2**-4
    ready = model.blocks[0].up.ready
    fastest.inference(model, x, way)
    assert model.blocks[0].up.ready is ready, "a graph made before still reads it"
    fastest.step(model, *problem, way)
    assert model.blocks[0].up.ready is None, "in training they change"


# Rung 4, with a library that is played.


class Norms(nn.Module):
    """A product behind a norm, with the names that Transformer Engine has for them."""

    def __init__(self, width: int, kind: torch.dtype) -> None:
        super().__init__()
        self.layer_norm_weight = nn.Parameter(torch.ones(width, dtype=kind))
        self.layer_norm_bias = nn.Parameter(torch.zeros(width, dtype=kind))

    def norm(self, x):
        return F.layer_norm(x, x.shape[-1:], self.layer_norm_weight, self.layer_norm_bias)


class Layer(nn.Module):
    """A layer with the parameters of te.TransformerLayer, in its order."""

    def __init__(self, **given) -> None:
        super().__init__()
        C, kind = given["hidden_size"], given["params_dtype"]
        self.given, self.heads, self.heard = given, given["num_attention_heads"], []

        def weight(n, k):
            return nn.Parameter(torch.zeros(n, k, dtype=kind))

        self.self_attention = nn.Module()
        self.self_attention.layernorm_qkv = Norms(C, kind)
        self.self_attention.layernorm_qkv.weight = weight(3 * C, C)
        self.self_attention.proj = nn.Module()
        self.self_attention.proj.weight = weight(C, C)
        self.layernorm_mlp = Norms(C, kind)
        self.layernorm_mlp.fc1_weight = weight(given["ffn_hidden_size"], C)
        self.layernorm_mlp.fc2_weight = weight(C, given["ffn_hidden_size"])

    def forward(self, x, is_first_microbatch=None, **more):
        self.heard.append((is_first_microbatch, torch.is_grad_enabled(), more))
        B, T, C = x.shape
        qkv = self.self_attention.layernorm_qkv
        qkv = F.linear(qkv.norm(x), qkv.weight).view(B, T, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(mixed.transpose(1, 2).reshape(B, T, C), self.self_attention.proj.weight)
        inner = F.linear(self.layernorm_mlp.norm(x), self.layernorm_mlp.fc1_weight)
        return x + F.linear(F.gelu(inner, approximate="tanh"), self.layernorm_mlp.fc2_weight)


class Remembering:
    """Plays te.InferenceParams, which counts each further step as one token."""

    def __init__(self, batch, tokens, num_heads_kv, head_dim_k, dtype) -> None:
        self.shape, self.dtype = (batch, tokens, num_heads_kv, head_dim_k), dtype
        self.cache_manager = SimpleNamespace(cache={})
        self.lengths: dict[int, int] = {}

    def allocate_memory(self, number):
        both = (torch.zeros(self.shape, dtype=self.dtype) for _ in range(2))
        self.cache_manager.cache[number] = tuple(both)

    def pre_step(self, tokens):
        self.lengths = {
            who: self.lengths[who] + 1 if who in self.lengths else count
            for who, count in tokens.items()
        }


@pytest.fixture
def engine(monkeypatch):
    """Rung 4's script with the library played; `.recipes` are those that were asked for."""
    recipes = []

    @contextmanager
    def autocast(enabled, recipe):
        recipes.append(recipe if enabled else None)
        yield

    def named(name):
        return lambda **given: (name, given)

    kinds = ("DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling")
    adam = SimpleNamespace(FusedAdam=lambda parameters, **given: given)
    library = SimpleNamespace(
        TransformerLayer=Layer, autocast=autocast, optimizers=adam, InferenceParams=Remembering
    )
    recipe = SimpleNamespace(Recipe=object, **{kind: named(kind) for kind in kinds})
    package, common = ModuleType("transformer_engine"), ModuleType("transformer_engine.common")
    package.pytorch, common.recipe = library, recipe
    monkeypatch.setitem(sys.modules, "transformer_engine", package)
    monkeypatch.setitem(sys.modules, "transformer_engine.pytorch", library)
    monkeypatch.setitem(sys.modules, "transformer_engine.common", common)
    found = script("4_transformer_engine")
    found.recipes = recipes
    return found


def test_each_weight_of_rung_4_goes_where_it_belongs(engine, problem, wanted):
    model = engine.build(WIDTH, LAYERS, "cpu")
    loss = engine.step(model, *problem, "bf16")()
    assert float(loss) == pytest.approx(float(wanted[0]), rel=2**-8)
    assert strays(gradients(model), wanted[1]) < ALLOWED["bf16"]
    assert engine.recipes == [None]
    assert [layer.given["layer_number"] for layer in model] == [1, 2]


def test_each_way_of_rung_4_asks_for_its_recipe(engine, problem):
    asked = {way: engine.scaling(way) for way in engine.WAYS}
    plain = {"fp8_dpa": False, "fp8_mha": False}
    assert asked["delayed"] == asked["delayed in a graph"] == ("DelayedScaling", plain)
    assert asked["delayed, attention too"][1] == {"fp8_dpa": True, "fp8_mha": True}
    assert asked["block in a graph"][0] == "Float8BlockScaling"
    assert asked["current"][0] == "Float8CurrentScaling"
    assert asked["bf16 in a graph"] is asked["bf16"] is None
    engine.step(engine.build(WIDTH, 1, "cpu"), *problem, "block")()
    assert engine.recipes == [("Float8BlockScaling", {})]


def test_its_optimizer_decays_weights_as_adamw_does(engine):
    given = engine.optimizer_of(engine.build(WIDTH, 1, "cpu"), lr=0.5)
    assert given["weight_decay"] == torch.optim.AdamW([torch.zeros(1)]).defaults["weight_decay"]
    assert given["lr"] == 0.5 and given["master_weights"] and given["capturable"]


@pytest.mark.parametrize(("way", "before"), [("current", []), ("delayed", [(None, True)] * 2)])
def test_weights_are_cast_once_and_delayed_scales_come_from_steps_before(
    way, before, engine, problem
):
    model = engine.build(WIDTH, 1, "cpu")
    call = engine.inference(model, problem[0], way)
    call(), call()
    heard = [(first, graded) for first, graded, _ in model[0].heard]
    assert heard == [*before, (True, False), (False, False), (False, False)]
    assert not model.training


def test_decoding_looks_at_the_tokens_so_far_and_stays_at_its_place(engine):
    model, S = engine.build(WIDTH, 2, "cpu"), 5
    x, caches = torch.randn(1, 1, WIDTH), [torch.randn(2, 1, 1, S, WIDTH) for _ in range(2)]
    engine.inference(model, x, "bf16", caches)()
    more = model[1].heard[-1][2]
    kept = more["inference_params"]
    assert more["self_attn_mask_type"] == "padding_causal" and kept.lengths == {0: S}
    keys, values = kept.cache_manager.cache[2]
    assert torch.equal(keys, caches[1][0].transpose(1, 2).bfloat16())
    assert torch.equal(values, caches[1][1].transpose(1, 2).bfloat16())


def test_what_rung_4_can_not_decode_is_refused(engine):
    model, caches = engine.build(WIDTH, 1, "cpu"), [torch.randn(2, 1, 1, 5, WIDTH)]
    with pytest.raises(NotImplementedError, match="multiple of 8 tokens, not 1"):
        engine.inference(model, torch.randn(1, 1, WIDTH), "current", caches)
    with pytest.raises(NotImplementedError, match="one by one, not 2"):
        engine.inference(model, torch.randn(1, 2, WIDTH), "bf16", caches)


@pytest.mark.parametrize("error", [ImportError("no library"), OSError("libcudnn is missing")])
def test_without_its_library_rung_4_says_how_to_get_it(error, monkeypatch):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("transformer_engine"):
                raise error

    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(SystemExit, match=f"{error}.*pip install"):
        script("4_transformer_engine")
