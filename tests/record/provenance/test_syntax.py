"""Two pieces of code read alike exactly when they run alike, whatever the version of Python."""

import ast

import pytest

from anatomy.record.provenance.syntax import bound_names, normalised


def texts(code: str) -> list[str]:
    """The statements of a script, normalised."""
    return [normalised(statement) for statement in ast.parse(code).body]


@pytest.mark.parametrize(
    "one, other",
    [
        ("f'a' 'b'", "f'ab'"),
        ("f'{x}' 'b' f'c'", "f'{x}bc'"),
        ("x = 1", "x=(1)  # one"),
        ("def f(a: int) -> int: return a", "def f(a): return a"),
        ("class A:\n  'doc'\n  x = 1\n  'about x'", "class A:\n  x = 1"),
        ("def f():\n  a = b = 1\n  return a", "def f():\n  x = y = 1\n  return x"),
        ("def f(): return [a for a in B]", "def f(): return [b for b in B]"),
        (
            "def f():\n  try: g()\n  except E as e: h(e)",
            "def f():\n  try: g()\n  except E as x: h(x)",
        ),
        ("def f():\n  x: int = 1", "def f():\n  x = 1"),
        ("Path(__file__).parents[2] / 'a'", "Path(__file__).resolve().parent.parent / 'a'"),
        ("raise E('a', b)", "raise E(f'c{d}')"),
        ("assert a, 'b'", "assert a, 'c'"),
        ("x = u'a'", "x = 'a'"),
        ("class A:\n  (x): int = 1", "class A:\n  x: int = 1"),
        ("def f(x):\n  x.warnings.append('a')\n  g()", "def f(x):\n  g()"),
        ("def f(x):\n  if x:\n    x.warnings.append('a')\n    g()", "def f(x):\n  if x: g()"),
        ("def f(e):\n  e.add_note('a')\n  g()", "def f(e):\n  e.add_note('b')\n  g()"),
    ],
)
def test_code_that_runs_alike_reads_alike(one, other):
    assert texts(one) == texts(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("1", "1.0"),
        ("1", "True"),
        ("'1'", "1"),
        ("b'a'", "'a'"),
        ("f(x)", "f[x]"),
        ("[a, b]", "(a, b)"),
        ("f(None)", "f()"),
        ("return_ = None", "return_: int"),
        ("{**a, 'b': 1}", "{'b': 1, **a}"),
        ("lambda *, a, b=1: 0", "lambda *, a=1, b: 0"),
        ("f'{x!r}'", "f'{x}'"),
        ("f'{x:1}'", "f'{x}1'"),
        ("def f():\n  import a\n  g()", "def f():\n  import b\n  g()"),
        ("a = 1", "b = 1"),
        ("from a import b as c", "from a import d as c"),
        ("from a import b", "from c import b"),
        ("def f():\n  a = b = 1\n  return a", "def f():\n  a = b = 1\n  return c"),
        ("def f():\n  a, b = c\n  return a", "def f():\n  a, b = c\n  return b"),
        ("def f(a): return a", "def f(b): return b"),
        ("def f(): return [a for a in a]", "def f(): return [b for b in a]\na = 1"),
        ("def f():\n  a = 1\n  locals()", "def f():\n  b = 1\n  locals()"),
        ("def f():\n  a = 1\n  eval(x)", "def f():\n  b = 1\n  eval(x)"),
        ("def f():\n  a = 1\n  exec(x)", "def f():\n  b = 1\n  exec(x)"),
        ("def f():\n  a = 1\n  vars()", "def f():\n  b = 1\n  vars()"),
        ("def f():\n  a = 1\n  dir()", "def f():\n  b = 1\n  dir()"),
        ("def f():\n  global a\n  a = 1", "def f():\n  a = 1"),
        ("raise E(a)", "raise F(a)"),
        ("Path(__file__).parents[2] / 'a'", "Path(__file__).parents[2] / 'b'"),
        ("Path(a).parent", "Path(b).parent"),
        ("Path(__file__).parents[2].name", "Path(__file__).parents[2].stem"),
        ("raise E(a) from b", "raise E(a)"),
        ("x.append('a')", "x.append('b')"),
        ("class A:\n  x = 1", "class A:\n  y = 1"),
        ("-1", "1"),
        ("def f(): yield", "def f(): yield 1"),
        ("class A:\n  x: int = 1", "class A:\n  x: float = 1"),
        ("def f():\n  class A:\n    x: int = 1", "def f():\n  class A:\n    x: float = 1"),
        ("x = 'a'", "x = 'b'"),
    ],
)
def test_code_that_runs_otherwise_reads_otherwise(one, other):
    assert texts(one) != texts(other)


def test_a_field_that_a_later_python_adds_changes_nothing_until_it_is_used():
    class Later(ast.Pass):
        _fields = ("type_params", "novelty")

    Later.__name__ = "Pass"
    assert normalised(Later(type_params=[], novelty=None)) == normalised(ast.Pass())
    assert normalised(Later(type_params=[], novelty=1)) != normalised(ast.Pass())


def test_texts_side_by_side_in_an_f_string_are_one_however_python_splits_them():
    def said(*parts):
        x = ast.FormattedValue(ast.Name("x", ast.Load()), -1)
        return normalised(ast.JoinedStr([x if p is None else ast.Constant(p) for p in parts]))

    assert said("a", "b", None, "", "c", "", "d") == said("ab", None, "cd")
    assert said("a", None, None, "b") == said("a", None, "", None, "b") != said("a", None, "b")


def test_names_used_leaves_out_what_a_function_binds_itself():
    code = ast.parse(
        "def f(a, b=B.c, *, d=D):\n"
        "    local = G.h.i(a)\n"
        "    [item for item in L if (seen := item)]\n"
        "    for j in J: pass\n"
        "    def inner(k): return k + local + N\n"
        "    try: pass\n"
        "    except E as e: e\n"
        "    match M:\n        case {'x': m, **rest}: m, rest, seen\n"
        "    return inner(j), f().attribute\n"
    ).body[0]
    used = set()
    normalised(code, "f", lambda chain, called: used.add(chain) or "")
    assert used >= {
        ("B", "c"),
        ("D",),
        ("G", "h", "i"),
        ("L",),
        ("J",),
        ("N",),
        ("E",),
        ("M",),
        ("f",),
    }
    hidden = {"a", "local", "j", "k", "e", "m", "rest", "inner", "seen"}
    assert not hidden & {use[0] for use in used}


def test_what_a_function_that_sees_its_locals_binds_is_no_name_of_the_module():
    code = ast.parse("def f(a):\n    b = a\n    return locals(), b, C\n").body[0]
    used = set()
    normalised(code, "f", lambda chain, called: used.add(chain) or "")
    assert used == {("locals",), ("C",)}


def test_bound_names_stay_out_of_inner_scopes():
    code = ast.parse("x = 1\ndef f():\n    y = 2\nclass A:\n    z = 3\n[w for w in x]\nq: int\n")
    assert bound_names(code.body) == {"x", "f", "A"}
