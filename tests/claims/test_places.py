"""Places of a claim in words: what several share is said once, what doesn't matter not at all."""

from itertools import product

import pytest

from anatomy.claims import places

EVERY = [*product(("matmul", "softmax"), ("fp16", "fp32"), ("N=1", "N=2", "N=3"))]


def said(*wanted: str) -> str:
    """The places that have one of these texts, each `op dtype N` with `*` for any."""
    patterns = [text.split() for text in wanted]
    there = [
        place
        for place in EVERY
        if any(all(p in ("*", v) for p, v in zip(one, place, strict=True)) for one in patterns)
    ]
    return places.said(there, EVERY)[0]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["matmul fp16 N=1"], "for matmul fp16 N=1"),
        (["matmul * *"], "for matmul"),
        (["* fp16 N=1", "* fp16 N=3"], "for fp16 N=1/3"),
        (["matmul * *", "softmax fp32 *"], "for matmul, fp32"),
        (["matmul fp16 N=1", "softmax fp32 N=2"], "for matmul fp16 N=1, softmax fp32 N=2"),
        (["matmul fp16 N=1", "matmul fp32 N=2"], "for matmul (fp16 N=1 or fp32 N=2)"),
    ],
)
def test_columns_without_matter_are_left_out_and_what_all_share_is_said_once(wanted, words):
    assert said(*wanted) == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["fp16", "fp32"], "for fp16/fp32"),
        (["4 breaks", "16 breaks"], "for 4/16 breaks"),
        (["C=1024", "C=2048"], "for C=1024/2048"),
        (["small products", "large elementwise"], "for small products or large elementwise"),
        (["layer", "layer norm"], "for layer or layer norm"),
        (["where it rains", "where it snows"], "where it rains/snows"),
    ],
)
def test_of_several_values_what_is_the_same_is_said_once(values, words):
    every = [(each,) for each in [*values, "z"]]
    assert places.said(every[:-1], every) == (words,)


def test_what_several_share_is_said_though_their_names_alone_would_do():
    every = [("host-paced", "a"), ("host-paced", "b"), *(("GPU-paced", name) for name in "cde")]
    assert places.said(every[2:4], every) == ("for GPU-paced (c/d)", "only for GPU-paced")
    assert places.said(every[2:3], every) == ("for c",)
