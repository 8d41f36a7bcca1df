"""Nothing that computes something else gets as far as the clock."""

import pytest
import torch

from anatomy.numerics import agreement
from anatomy.table.errors import DisagreementError

TWO = torch.full((3, 4), 2.0)


def check(variant, reference=lambda: TWO.double(), **options):
    return agreement.check({"v": variant}, {"v": reference}, **options)


def test_the_relative_error_is_returned():
    found = check(lambda: TWO + 2**-17)
    assert found["v"] == pytest.approx(2**-18, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (TWO * 1.1, r"v strays from its reference by 1\.0e-01 \(relative, torch\.float32\)"),
        (TWO * float("nan"), "strays from its reference by nan"),
        (TWO * float("inf"), "strays from its reference by"),
        (TWO[:2], r"v has shape \(2, 4\), its reference \(3, 4\)"),
        ((TWO, TWO), "v returns 2 tensors, its reference 1"),
        (None, "v returns NoneType; return the tensor"),
        (2.0, "v returns float; return the tensor"),
    ],
)
def test_a_wrong_answer_is_refused_and_named(wrong, message):
    with pytest.raises(DisagreementError, match=message):
        check(lambda: wrong)


def test_what_is_allowed_follows_the_type_of_the_output():
    rounded = (TWO * (1 + 2**-10)).half()
    assert check(lambda: rounded)["v"] > 2**-11
    with pytest.raises(DisagreementError, match=r"1\.5e-05 is allowed"):
        check(lambda: rounded.float())


@pytest.mark.parametrize(
    ("dtype", "most"),
    [
        (torch.float64, 2**-40),
        (torch.float32, 2**-16),
        (torch.float16, 2**-9),
        (torch.bfloat16, 2**-6),
    ],
)
def test_each_format_may_stray_by_a_few_of_its_roundings_and_no_further(dtype, most):
    exact = torch.linspace(1, 2, 4096, dtype=torch.float64).to(dtype)

    def stray(share):  # the reference moves, so that no rounding of the output comes to it
        return check(lambda: exact, lambda: exact.double() / (1 + share * most))["v"]

    assert stray(0.9) == pytest.approx(0.9 * most, rel=1e-3)
    with pytest.raises(DisagreementError, match="strays"):
        stray(1.1)


def test_more_may_be_allowed_for_one_variant():
    agreement.check(
        {"a": lambda: TWO, "b": lambda: TWO * 1.05},
        dict.fromkeys("ab", lambda: TWO.double()),
        allowed={"a": 0.0, "b": 0.06},
    )


def test_an_element_nobody_wrote_cannot_pass_on_an_earlier_answer():
    """The second call is what counts; the first one's output is poisoned before it."""
    kept = TWO.clone()
    answers = iter([kept, torch.full((3, 4), float("nan"))])
    with pytest.raises(DisagreementError, match="nan"):
        check(lambda: next(answers))


def test_several_outputs_are_all_checked():
    with pytest.raises(DisagreementError, match="strays"):
        check(lambda: (TWO, TWO * 3), lambda: (TWO, TWO))


def test_a_reference_of_zeros_allows_zeros_alone():
    assert check(lambda: TWO * 0, lambda: TWO * 0) == {"v": 0.0}
    with pytest.raises(DisagreementError):
        check(lambda: TWO * 1e-9, lambda: TWO * 0)


def test_a_large_output_is_compared_in_pieces_with_the_same_result():
    out, ref = torch.rand(4096, 33), torch.rand(4096, 33)
    whole = float((out.double() - ref.double()).norm() / ref.double().norm())
    assert agreement._relative_error(out, ref) == pytest.approx(whole)
