"""A call is bound to what is declared: converted, told what would be right, and typed again."""

import pytest

from anatomy.record import signatures
from anatomy.record.signatures import Parameter, Signature
from anatomy.table.errors import BadParameter, UnknownName
from tests.record.declared.test_signatures import toys as toys


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"m": "2048"}, {"m": 2048}),
        ({"m": 2048.0}, {"m": 2048}),
        ({"share": "0.25", "cold": "true"}, {"share": 0.25, "cold": True}),
        ({"share": 1}, {"share": 1.0}),
        ({"cold": "No"}, {"cold": False}),
        ({"size": "4"}, {"size": 4}),
        ({"dtype": "bf16"}, {"dtype": "bf16"}),
        ({"seed": "7"}, {"seed": 7}),
        *(({"cold": said}, {"cold": True}) for said in (" TRUE ", "yes", "1", True)),
        *(({"cold": said}, {"cold": False}) for said in ("false", "0", False)),
        ({"seed": "None"}, {"seed": None}),
        ({"seed": "none", "tag": None}, {"seed": None, "tag": None}),
        ({"both": "none"}, {"both": None}),
        ({"device": "cpu"}, {"device": "cpu"}),
        ({"low": "-5"}, {"low": -5}),
        ({"above": 0.5}, {"above": 0.5}),
    ],
)
def test_binding_gives_all_parameters_with_their_types(toys, given, expected):
    declared = signatures.signature("topic.measure", toys)
    bound = declared.bind(**given)
    assert bound == declared.defaults | expected
    assert all(type(bound[name]) is type(value) for name, value in expected.items())
    assert list(bound) == [p.name for p in declared.parameters]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"dtype": "fp61"},
            "topic.measure: dtype='fp61': it must be one of fp16, bf16. Did you mean fp16",
        ),
        ({"size": 3}, "size=3: it must be one of 1, 2, 4"),
        ({"size": True}, "size=True: it must be one of"),
        ({"m": "many"}, "m='many': it must be a whole number"),
        ({"m": 1.5}, "m=1.5: it must be a whole number"),
        ({"m": True}, "m=True: it must be a whole number"),
        ({"m": None}, "m is None; it must be a whole number"),
        ({"m": "1.5"}, "m='1.5': it must be a whole number"),
        ({"share": "nan"}, "share='nan': it must be a number"),
        ({"share": float("inf")}, "share=inf: it must be a number"),
        ({"share": [1]}, r"share=\[1\]: it must be a number"),
        ({"cold": "perhaps"}, "cold='perhaps': it must be true or false"),
        ({"cold": 1}, "cold=1: it must be true or false"),
        ({"device": 0}, "device=0: it must be text"),
        ({"device": "gpu"}, "topic.measure: device='gpu' is not a device. Use cuda:0"),
        ({"low": 6}, "topic.measure: low=6: it must be a whole number from -5 to 5"),
        ({"above": "0"}, "above='0': it must be a number from 0.000001 to 1,000 or none"),
        ({"m": 10**5000}, "m=a number too long to print"),
        ({"dtype": "fp16" * 999}, r"dtype='fp16fp16fp16.*fp16': it must"),
        ({"seed": "x"}, "seed='x': it must be a whole number or none"),
    ],
)
def test_a_wrong_value_is_told_what_would_be_right(toys, given, match):
    with pytest.raises(BadParameter, match=match):
        signatures.signature("topic.measure", toys).bind(**given)


@pytest.mark.parametrize(
    ("own", "typed"),
    [
        (None, ("topic-both-ways",)),
        ("c01 toy", ("c01 toy", "topic-both-ways")),
        ("both", ("topic-both-ways", "both")),
    ],
)
def test_an_experiment_is_typed_as_its_own_command_or_as_its_name(own, typed):
    declared = Signature("topic.both_ways", "toys.topic", "both", "Both.", command=own)
    assert declared.commands == (*typed, "run topic.both_ways", "topic.both_ways")


def test_a_call_is_told_by_what_is_not_its_default():
    parameters = [Parameter("m", int, 4), Parameter("head_width", int, 64)]
    declared = Signature("topic.one", "toys.topic", "one", "One.", parameters)
    given = {"m": 4, "head_width": 8, "beside": None}
    assert declared.title(given) == "topic.one head_width=8"
    assert declared.words(given) == "topic.one --head-width 8"
    assert declared.words({"m": 2, "head_width": 64}) == "topic.one --m 2"


def test_an_unknown_parameter_comes_back_with_the_closest(toys):
    with pytest.raises(
        UnknownName, match=r"no parameter of topic.measure called 'dtyp'. Did you mean"
    ):
        signatures.signature("topic.measure", toys).bind(dtyp="fp16")
