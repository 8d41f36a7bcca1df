"""What the source declares is read without importing it, and is what `inspect` would say."""

import contextvars
import importlib
import inspect
import subprocess
import sys
import types
import typing
from importlib.util import find_spec

import pytest

from anatomy import page
from anatomy.cli import measure
from anatomy.record import signatures
from anatomy.record.bounds import Between
from anatomy.record.signatures import arguments
from anatomy.table.errors import AnatomyError, UnknownName

TOY = '''
"""A topic."""
import nothing_of_that_name  # importing this module would fail
import typing
from typing import Annotated, Literal, TypeAlias
from anatomy.record.bounds import Between
from toys.kinds import Share, Speed as Pace
from .nested import HOW

Dtype: TypeAlias = Literal["fp16", "bf16"]
Size = Literal[1, 2, 4]
DEVICE = "cuda:0"
TIMES = MOST = 5
KERNEL = "b.cu"


@experiment(
    "topic.measure",
    page="topic.md",
    command="c01 toy",
    timeout_s=60,
    files=["snippets/a.py", KERNEL],
    processes=3,
)
def measure(
    device: str = DEVICE,
    dtype: Dtype = "fp16",
    size: Size = 2,
    pace: Pace = "slow",
    how: HOW = "eager",
    m: int = 4096,
    share: float = 0.5,
    cold: bool = False,
    seed: int | None = None,
    tag: typing.Optional[str] = "x",
    quoted: "int | None" = TIMES,
    low: Annotated[int, Between(-5, MOST)] = -1,
    above: Share | None = None,
    *,
    both: Literal["a", "b"] | None = None,
):
    """Measure a toy
    in two lines.

    Args:
        m: Rows M of A.
        dtype: Number format,
            of both operands.
    """


@anatomy.record.declare.experiment("topic.by_attribute")
def by_attribute(): ...


@experiment("topic.bare")
def bare(m: int = 1): ...


def no_experiment(m=1): ...


class NoExperiment:
    @experiment("topic.method")
    def method(self): ...
'''


def package(folder, **files):
    """A package called toys; `experiments__topic` is the file experiments/topic.py."""
    root = folder / "toys"
    for name, text in files.items():
        file = root / (name.replace("__", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def toys(tmp_path):
    return package(
        tmp_path,
        experiments__topic=TOY,
        experiments__nested="from typing import Literal\nHOW = Literal['eager', 'compiled']\n",
        kinds="from typing import Literal\nSpeed = Literal['slow', 'fast']\n"
        "Share = Annotated[float, bounds.Between(0.000001, 1000)]\n",
    )


def test_experiments_are_found_by_topic_and_function_without_importing(toys):
    found = signatures.experiments(toys)
    assert list(found) == ["topic.bare", "topic.by_attribute", "topic.measure"]
    assert found["topic.measure"].module == "toys.experiments.topic"
    assert found["topic.measure"].function == "measure"


def test_the_decorator_says_where_it_is_shown(toys):
    declared = signatures.signature("topic.measure", toys)
    assert (declared.page, declared.command, declared.timeout_s) == ("topic.md", "c01 toy", 60)
    assert declared.files == ("snippets/a.py", "b.cu")
    bare = signatures.signature("topic.bare", toys)
    assert (bare.page, bare.command, bare.files) == (None, None, ())
    assert (declared.processes, bare.processes) == (3, 1)


def test_the_decorators_own_default_is_the_one_read_here():
    from anatomy.record.declare import experiment

    parameters = inspect.signature(experiment).parameters
    assert parameters["timeout_s"].default == signatures.TIMEOUT_S
    assert parameters["processes"].default == signatures.PROCESSES


def test_parameters_have_type_default_choices_and_help(toys):
    by_name = {p.name: p for p in signatures.signature("topic.measure", toys).parameters}
    assert {name: (p.type, p.default, p.choices, p.optional) for name, p in by_name.items()} == {
        "device": (str, "cuda:0", None, False),
        "dtype": (str, "fp16", ("fp16", "bf16"), False),
        "size": (int, 2, (1, 2, 4), False),
        "pace": (str, "slow", ("slow", "fast"), False),
        "how": (str, "eager", ("eager", "compiled"), False),
        "m": (int, 4096, None, False),
        "share": (float, 0.5, None, False),
        "cold": (bool, False, None, False),
        "seed": (int, None, None, True),
        "tag": (str, "x", None, True),
        "quoted": (int, 5, None, True),
        "low": (int, -1, None, False),
        "above": (float, None, None, True),
        "both": (str, None, ("a", "b"), True),
    }
    bounds = {name: str(p.bounds) for name, p in by_name.items() if p.bounds}
    assert bounds == {"low": "from -5 to 5", "above": "from 0.000001 to 1,000"}
    assert by_name["m"].help == "Rows M of A."
    assert by_name["dtype"].help == "Number format, of both operands."
    assert signatures.signature("topic.measure", toys).summary == "Measure a toy in two lines."


def test_an_edited_file_is_read_again(toys):
    assert signatures.signature("topic.bare", toys).defaults == {"m": 1}
    file = toys / "experiments" / "topic.py"
    file.write_text(TOY.replace("def bare(m: int = 1)", "def bare(m: int = 22)"))
    assert signatures.signature("topic.bare", toys).defaults == {"m": 22}


def test_an_edited_file_of_choices_is_read_again(toys):
    assert signatures.signature("topic.measure", toys).bind()["pace"] == "slow"
    kinds = toys / "kinds.py"
    kinds.write_text(kinds.read_text().replace("fast", "swift"))
    assert signatures.signature("topic.measure", toys).bind(pace="swift")["pace"] == "swift"


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("def f(m=1): ...", r"toys/experiments/bad.py:2: bad.f\(m\) needs a type and a default"),
        ("def f(m: int): ...", r"bad.f\(m\) needs a type and a default"),
        ("def f(*args: int): ...", "must name every parameter"),
        ("def f(m: int = 1, /): ...", "must name every parameter"),
        ("def f(m: int = 2**10): ...", r"2 \*\* 10 is not a literal"),
        ("def f(m: list[int] = None): ...", r"the type of m, list\[int\], is none of int"),
        ("def f(m: int | str = 1): ...", r"the type of m, int \| str, is none of int"),
        ("def f(m: Nowhere = 1): ...", "the type of m, Nowhere, is none of"),
        ("def f(m: Literal['a', 1] = 1): ...", "Literal.* is none of"),
        ("def f(m: Literal['a'] = 'b'): ...", "the default 'b' of m is not of its type"),
        ("def f(m: int = None): ...", "the default None of m is not of its type"),
        ("def f(m: int = 'a'): ...", "the default 'a' of m is not of its type"),
        ("def f(m: int = 1.5): ...", "the default 1.5 of m is not of its type"),
        ("def f(m: int = True): ...", "the default True of m is not of its type"),
        ("def f(m: Annotated[int, Between(1, 9)] = 0): ...", "the default 0 of m is not of its ty"),
        (
            "def f(m: Annotated[int, Above(1)] = 1): ...",
            "the type of m, Annotated.* is none of int",
        ),
        ("def f(m: Annotated[int, Between(1, len(x))] = 1): ...", r"len\(x\) is not a literal"),
        (
            "def f(rows: int = 1): ...",
            "bad.f has a parameter called rows, which pages and commands",
        ),
        ("def f(columns: int = 1): ...", "called columns, which .*; choose another name"),
        ("def f(**options: int): ...", "must name every parameter"),
        ("def f(*, m: int): ...", r"bad.f\(m\) needs a type and a default"),
        ("def f(*, rows: int = 1): ...", "called rows, which .*; choose another name"),
        ("def f(m: int = PAIR): ...\nPAIR, OTHER = 1, 2", "PAIR is not a literal"),
        ("def f(m: int = f): ...", "f is not a literal"),
        ("def f(m: 'int' = 1, n: 5 = 1): ...", "the type of n, 5, is none of"),
        (
            "def f(m: int = 1): ...\n@experiment('bad.f')\ndef g(): ...",
            "bad.py:4: toys.experiments.bad has an experiment called bad.f already",
        ),
        ("def f(m: ", r"toys/experiments/bad.py:2 does not parse"),
    ],
)
def test_what_cannot_be_read_names_the_line(tmp_path, source, match):
    root = package(tmp_path, experiments__bad=f"@experiment('bad.f')\n{source}")
    with pytest.raises(AnatomyError, match=match):
        signatures.experiments(root)


@pytest.mark.parametrize("told", ["", "()", "('bench')", "(7)", "('bad.g', 1)", "('../bad.g')"])
def test_a_name_that_is_not_of_two_words_is_refused(tmp_path, told):
    root = package(tmp_path, experiments__bad=f"@experiment{told}\ndef g(): ...")
    with pytest.raises(AnatomyError, match=r"g needs a name of two words: @experiment\(\"topic.g"):
        signatures.experiments(root)


def test_sources_that_are_held_are_not_read_again(toys, monkeypatch):
    monkeypatch.setattr(signatures, "PACKAGE", toys)

    def look():
        with signatures.unchanging() as held:
            (toys / "more.py").write_text("")
            assert signatures.sources(toys) == held and "more.py" not in dict(held)
            assert [file for file, _ in signatures.sources(toys / "experiments")] == [
                "nested.py",
                "topic.py",
            ]
        assert "more.py" in dict(signatures.sources(toys))
        given = (("a.py", b""),)
        with signatures.unchanging(given):
            assert signatures.sources(toys) == given

    contextvars.Context().run(look)  # where the tests themselves hold none


@pytest.mark.parametrize("processes", ["0", "-3", "1.5", "'3'", "True", "None"])
def test_processes_that_can_not_be_counted_are_refused(tmp_path, processes):
    root = package(
        tmp_path, experiments__bad=f"@experiment('bad.g', processes={processes})\ndef g(): ..."
    )
    with pytest.raises(AnatomyError, match=r"bad.g has processes=.*; it must be 1 or more"):
        signatures.experiments(root)


def test_a_page_that_is_no_literal_is_refused(tmp_path):
    root = package(tmp_path, experiments__bad="@experiment('bad.g', page=f())\ndef g(): ...")
    with pytest.raises(AnatomyError, match=r"bad.py:1: f\(\) is not a literal"):
        signatures.experiments(root)


def test_an_unknown_experiment_comes_back_with_the_closest(toys):
    with pytest.raises(
        UnknownName, match=r"no experiment 'topic.mesure'. Did you mean 'topic.meas"
    ):
        signatures.signature("topic.mesure", toys)


def test_reading_signatures_imports_neither_torch_nor_pandas():
    script = (
        "import sys; from anatomy.record import signatures; signatures.experiments(); "
        "print([name for name in ('torch', 'pandas', 'numpy') if name in sys.modules])"
    )
    where = signatures.PACKAGE.parent
    ran = subprocess.run([sys.executable, "-c", script], cwd=where, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]", ran.stderr


# The package's own experiments, one by one.


def test_the_package_has_experiments():
    assert "contiguity.bench" in signatures.experiments()


@pytest.mark.skipif(find_spec("torch") is None, reason="experiments import torch, which is absent")
@pytest.mark.parametrize("name", signatures.experiments())
def test_ast_and_inspect_agree(name):
    declared = signatures.signature(name)
    with signatures.unchanging(signatures.declaring(name)):
        assert signatures.signature(name) == declared, "what one worker reads is enough"
    function = getattr(importlib.import_module(declared.module), declared.function)
    seen = inspect.signature(function).parameters
    hints = typing.get_type_hints(function)
    annotated = typing.get_type_hints(function, include_extras=True)
    helps = signatures.SHARED_HELP | arguments(inspect.getdoc(function))
    assert declared.defaults == {each: p.default for each, p in seen.items()}
    for parameter in declared.parameters:
        kinds = set(_kinds(hints[parameter.name]))
        assert parameter.optional == (type(None) in kinds)
        kinds -= {type(None)}
        assert set(parameter.choices or {parameter.type}) == kinds
        said = typing.get_args(annotated[parameter.name])[1:]
        assert parameter.bounds == next((one for one in said if isinstance(one, Between)), None)
        assert parameter.help == helps[parameter.name]


def test_no_parameter_is_kept_by_a_page_function_or_a_command():
    kept = {"help", "machine", *measure.OPTIONS}
    for function in filter(inspect.isfunction, vars(page).values()):
        taken = inspect.signature(function).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in taken):
            kept |= {each.name for each in taken if each.kind is not each.VAR_KEYWORD}
    handed_on = {"op", "quantity"}
    assert kept - handed_on == signatures.TAKEN


def _kinds(hint):
    """A hint's types and choices, unions taken apart."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType, typing.Literal):
        for each in typing.get_args(hint):
            yield from _kinds(each)
    else:
        yield hint


@pytest.mark.parametrize("name", signatures.experiments())
def test_every_parameter_of_every_experiment_has_help(name):
    declared = signatures.signature(name)
    assert declared.summary.endswith(".")
    assert [p.name for p in declared.parameters if not p.help] == []
