"""Every parameter of every experiment takes what its annotation says, and nothing else.

Nothing is listed here by name: what to ask follows from what each experiment declares.
"""

import math
import os
import random
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from anatomy import cli
from anatomy.cli.measure import LAYOUT_FIRST
from anatomy.record import signatures
from anatomy.record.signatures import FLAGS, Parameter, Signature
from anatomy.table.errors import BadParameter

SEED = random.SystemRandom().randrange(2**32)  # in the report of a failure, to be set here
EXAMPLES = 2000 if os.environ.get("THOROUGH") else 500
EXPERIMENTS = signatures.experiments()
ALL = [(each, p) for each in EXPERIMENTS.values() for p in each.parameters]
NUMBERS = [(each, p) for each, p in ALL if p.type in (int, float) and p.choices is None]
# Of each kind something; `possible` says which of them a parameter may be.
ODD = [0, -1, 10**30, -(10**5000), 1.5, 1e308, -1e308, 1e-308, math.nan, math.inf, -math.inf]
ODD += [None, True, b"1", 1j, [], [4096], {}, (), object, "", " ", "nan", "inf", "1e999", "0", "-1"]
ODD += ["many", "½", "∞", "cuda:-1", "gpu", "\n", "\0", "x" * 10**5, "9" * 5000, "🙂", "none"]


def possible(parameter: Parameter, value: object) -> bool:
    """Whether a parameter may have a value, by its declaration and not by how that is checked."""
    if value is None or (parameter.optional and value == "none"):
        return parameter.optional
    if parameter.choices is not None:
        return any(
            value == str(each) or (type(value) is type(each) and value == each)
            for each in parameter.choices
        )
    if parameter.type is bool:
        return isinstance(value, bool | str) and str(value).strip().casefold() in FLAGS
    if parameter.type is str:
        return isinstance(value, str) and bool(re.fullmatch(r"(cpu|cuda)(:\d+)?", value))
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        number = parameter.type(value)
    except (ValueError, OverflowError):
        return False
    same = isinstance(value, str) or number == value
    return same and parameter.bounds.least <= number <= parameter.bounds.most


def ask(experiment: Signature, parameter: Parameter, value: object) -> None:
    """Bind one value, which is taken as it is or refused in one sentence that says what to do."""
    name = parameter.name
    if possible(parameter, value):
        bound = experiment.bind(**{name: value})[name]
        assert bound is None or type(bound) is parameter.type
        return
    with pytest.raises(BadParameter) as error:
        experiment.bind(**{name: value})
    said = str(error.value)
    assert re.match(rf"{re.escape(experiment.name)}: {name}\b", said), said
    assert re.search(r"must be |Use cuda:0", said) and len(said.splitlines()) == 1, said
    if parameter.bounds:
        assert str(parameter.bounds) in said


def ask_everything() -> int:
    """Ask every parameter about every odd value; how many that were."""
    for experiment, parameter in ALL:
        for value in ODD:
            ask(experiment, parameter, value)
    return len(ALL) * len(ODD)


def test_every_number_has_bounds():
    assert [f"{each.name}({p.name})" for each, p in NUMBERS if p.bounds is None] == []


def test_what_is_not_possible_is_refused_where_torch_can_not_be_imported():
    code = "import sys; sys.modules['torch'] = None; from tests.record import test_bounds as t; "
    code += "print(t.ask_everything())"
    where = signatures.PACKAGE.parent
    ran = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True)
    assert ran.stdout == f"{len(ALL) * len(ODD)}\n", ran.stderr


def test_the_ends_of_its_bounds_are_possible_and_what_is_just_beyond_is_not():
    for experiment, parameter in NUMBERS:
        ends = parameter.bounds.least, parameter.bounds.most
        for end, beyond in zip(ends, (-math.inf, math.inf), strict=True):
            end = parameter.type(end)
            for given_as in (end, str(end)):
                assert experiment.bind(**{parameter.name: given_as})[parameter.name] == end
            step = math.nextafter(end, beyond)
            ask(experiment, parameter, end + (1 if beyond > 0 else -1))
            ask(experiment, parameter, step if parameter.type is float else int(end) - 10**9)


@pytest.mark.skipif(find_spec("torch") is None, reason="experiments import torch")
def test_an_experiment_that_is_called_directly_refuses_it_too():
    from anatomy.record.declare import load

    for experiment, parameter in NUMBERS:
        with pytest.raises(BadParameter, match=rf"{experiment.name}: {parameter.name}="):
            load(experiment.name)(**{parameter.name: parameter.bounds.least - 1})


anything = st.one_of(
    st.integers(), st.floats(), st.text(), st.booleans(), st.binary(), st.complex_numbers(),
    st.integers().map(str), st.floats().map(str), st.lists(st.integers()), st.none(),
)  # fmt: skip


@seed(SEED)
@settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(asked=st.sampled_from(ALL), value=anything)
def test_anything_at_all_is_taken_as_declared_or_refused_in_a_sentence(asked, value):
    print(f"SEED = {SEED}")
    text = value if isinstance(value, str) else ""
    if text.split(":")[0] not in ("mps", "xpu", "hpu", "mtia", "npu", "vulkan", "xla"):
        ask(*asked, value)


@pytest.mark.parametrize("command", ["run", "record"])
def test_the_command_line_refuses_it_with_one_sentence_and_status_2(command, capfd):
    print(f"SEED = {SEED}")
    sample = random.Random(f"{command} {SEED}").sample(NUMBERS, 6)
    sample += [(each, p) for each, p in NUMBERS if each.name in LAYOUT_FIRST]
    for experiment, parameter in sample:
        for value in (parameter.bounds.least - 1, parameter.bounds.most * 2):
            option = f"--{parameter.name.replace('_', '-')}={parameter.type(value)}"
            with pytest.raises(SystemExit) as end:
                cli.main([command, experiment.name, option])
            out, err = capfd.readouterr()
            out = out.replace(f"SEED = {SEED}\n", "")
            assert (end.value.code, out) == (2, ""), err
            assert err.startswith(f"error: {experiment.name}: {parameter.name}="), err
            assert str(parameter.bounds) in err and err.count("\n") == 1, err
