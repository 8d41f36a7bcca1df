"""Code that nobody touched keeps its hash: recordings hold hashes that were made years ago, and a
hash that came out otherwise would have them all measured again.

Where an edit of the package is meant to change these, `codehash.SCHEME` goes up with it, and the
new values are written here.
"""

import ast

import pytest

from anatomy.record.provenance import content, definitions
from anatomy.record.provenance.codehash import code_hash
from anatomy.record.provenance.content import Definitions, Layout
from anatomy.record.provenance.syntax import normalised

# Something of each kind of syntax that is read in a way of its own: how it was always read.
READ = {
    "x = y = None": "Assign(targets=[$self,$other0],value=None)",
    "x, y, z = y": "Assign(targets=[Tuple(elts=[$self,$other0,$other1])],value=y)",
    "x: int": "",
    "x: int = f(a.b, k=1)": (
        "Assign(targets=[$self],value=Call(func=f(),args=[a.b],keywords=[keyword(arg='k',valu"
        "e=Constant(value=1))]))"
    ),
    "x += 'é'": "AugAssign(target=$self,op=Add(),value=Constant(value='\\xe9'))",
    "x = f'a{y!r:>{w}}' 'b' ''": (
        "Assign(targets=[$self],value=JoinedStr(values=[Constant(value='a'),FormattedValue(va"
        "lue=y,conversion=114,format_spec=JoinedStr(values=[Constant(value='>'),FormattedValu"
        "e(value=w,conversion=-1)])),Constant(value='b')]))"
    ),
    "x = f'{y}a' 'b' f'c{z}' ''": (
        "Assign(targets=[$self],value=JoinedStr(values=[FormattedValue(value=y,conversion=-1)"
        ",Constant(value='abc'),FormattedValue(value=z,conversion=-1)]))"
    ),
    "x = Path(__file__).resolve().parents[1] / 'a'": (
        "Assign(targets=[$self],value=BinOp(left=$place,op=Div(),right=Constant(value='a')))"
    ),
    "x = f(Path(__file__), g().parent, g().resolve())": (
        "Assign(targets=[$self],value=Call(func=f(),args=[$place,Attribute(value=Call(func=g("
        ")),attr='parent'),Call(func=Attribute(value=Call(func=g()),attr='resolve'))]))"
    ),
    "x = 'toys.deep.inner', 'toys', 'toy.s', b'toys.a'": (
        "Assign(targets=[$self],value=Tuple(elts=[<module>.deep.inner,Constant(value='toys'),"
        "Constant(value='toy.s'),Constant(value=b'toys.a')]))"
    ),
    "x = [y.a for y in y for z in y.b if z if y]": (
        "Assign(targets=[$self],value=ListComp|y|$0.0|0|Attribute(value=$0.0,attr='b')|$0.1|$"
        "0.1|$0.0|0:[Attribute(value=$0.0,attr='a')])"
    ),
    "x = {k: v for k, v in a}": (
        "Assign(targets=[$self],value=DictComp|a|Tuple(elts=[$0.0,$0.1])|0:[$0.0,$0.1])"
    ),
    "x = lambda a, /, b=c, *d, e, f=g, **h: a + i": (
        "Assign(targets=[$self],value=Lambda|(a;b;d;e,f;h;c;-,g):BinOp(left=a,op=Add(),right=i))"
    ),
    (
        "def x(a, b: int = 2, *c, d=None, **e) -> int:\n  'doc'\n  f: int\n  g = h = a\n  fro"
        "m m import n\n  import o.p, o.q\n  return g + x"
    ): (
        "FunctionDef|$self|(;a,b;c;d;e;Constant(value=2);None):[Assign(targets=[$0.0,$0.1],va"
        "lue=a),Import(m),Import(o.p),Import(o.q),Return(value=BinOp(left=$0.0,op=Add(),right"
        "=x))]"
    ),
    (
        "def x():\n  if a:\n    'text'\n    b.warnings.append('a')\n  else:\n    warnings.ext"
        "end(b)\n  c.append(1)\n  warnings.pop()\n  d.add_note('e')"
    ): (
        "FunctionDef|$self|(;;;;;;):[If(test=a),Expr(value=Call(func=c.append(),args=[Constan"
        "t(value=1)])),Expr(value=Call(func=warnings.pop()))]"
    ),
    ("@cache\n@experiment('a.b')\n@m.experiment\nasync def x():\n  async with a() as b: await b"): (
        "AsyncFunctionDef|$self|(;;;;;;)|cache:[AsyncWith(items=[withitem(context_expr=Call(f"
        "unc=a()),optional_vars=$0.0)],body=[Expr(value=Await(value=$0.0))])]"
    ),
    (
        "def x():\n  def y():\n    nonlocal a\n    global b\n    a = b = 1\n  a = 2\n  class "
        "C:\n    a = 1\n    def m(self): return a"
    ): (
        "FunctionDef|$self|(;;;;;;):[FunctionDef|$0.1|(;;;;;;):[Nonlocal($0.0),Global(b),Assi"
        "gn(targets=[$0.0,b],value=Constant(value=1))],Assign(targets=[$0.0],value=Constant(v"
        "alue=2)),ClassDef|$0.2:[Assign(targets=[a],value=Constant(value=1)),FunctionDef|m|(;"
        "self;;;;;):[Return(value=$0.0)]]]"
    ),
    (
        "@d\nclass x(B, metaclass=M):\n  'doc'\n  a: int\n  b: int = 1\n  def m(self):\n    d"
        "ef inner(): return m\n    return inner"
    ): (
        "ClassDef|$self|d|B|keyword(arg='metaclass',value=M):[AnnAssign(target=a,annotation=i"
        "nt),AnnAssign(target=b,annotation=int,value=Constant(value=1)),FunctionDef|m|(;self;"
        ";;;;):[FunctionDef|$1.0|(;;;;;;):[Return(value=m)],Return(value=$1.0)]]"
    ),
    (
        "def x(a):\n  try: y()\n  except E as e: raise F(e) from e\n  except G: raise\n  asse"
        "rt a, 'b'"
    ): (
        "FunctionDef|$self|(;a;;;;;):[Try(body=[Expr(value=Call(func=y()))],handlers=[ExceptH"
        "andler(type=E,name=$0.0,body=[Raise(exc=F,cause=$0.0)]),ExceptHandler(type=G,body=[R"
        "aise()])]),Assert(a)]"
    ),
    ("def x(a):\n  match a:\n    case [1, *b] as c: return b\n    case {'d': _, **e}: return e"): (
        "FunctionDef|$self|(;a;;;;;):[Match(subject=a,cases=[match_case(pattern=MatchAs(patte"
        "rn=MatchSequence(patterns=[MatchValue(value=Constant(value=1)),MatchStar(name=$0.1)]"
        "),name=$0.0),body=[Return(value=$0.1)]),match_case(pattern=MatchMapping(keys=[Consta"
        "nt(value='d')],patterns=[MatchAs()],rest=$0.2),body=[Return(value=$0.2)])])]"
    ),
    "def x(a):\n  b = locals()\n  return vars(a)": (
        "FunctionDef|$self|(;a;;;;;):[Assign(targets=[b],value=Call(func=locals())),Return(va"
        "lue=Call(func=vars(),args=[a]))]"
    ),
    "def x(a):\n  b = dir()": (
        "FunctionDef|$self|(;a;;;;;):[Assign(targets=[b],value=Call(func=dir()))]"
    ),
    (
        "def x():\n  from toys.a import b\n  from . import c\n  from .. import d\n  from e im"
        "port f, g"
    ): ("FunctionDef|$self|(;;;;;;):[Import(e)]"),
}


def told(chain, called):
    """A name as it is asked for."""
    return ".".join(chain) + "()" * called


@pytest.mark.parametrize("code", READ)
def test_syntax_is_read_as_ever(code):
    (statement,) = ast.parse(code).body
    assert normalised(statement, "x", told, "toys") == READ[code]


# As a script, whose names nobody else stands for.


def test_the_statements_of_a_script_are_read_as_ever():
    code = "import os.path as p, toys.a\nfrom toys import b as c\nfrom . import d\nx = y = p"
    assert [normalised(each, package="toys") for each in ast.parse(code).body] == [
        "Import(os.path os.path as p),Import( toys.a as toys.a)",
        "Import( b as c)",
        "Import( d as d)",
        "Assign(targets=[x,y],value=p)",
    ]


def test_what_a_statement_binds_itself_is_never_asked_for():
    asked = []
    (statement,) = ast.parse("def x(a): b = a.c; del b; return x, y(z)").body
    normalised(statement, "x", lambda *each: asked.append(each) or "?")
    assert asked == [(("x",), False), (("y",), True), (("z",), False)]


# Packages: which definitions are reached, and what stands for them.

FILES = {
    "__init__.py": "from toys.low import low as handed\nVERSION = 1\n",
    "top.py": """
import collections.abc
import math as m, os
import toys
import toys.low
import toys.deep.inner as inner
from toys import low as lower, deep
from . import tables
from .tables import TABLE, nowhere as gone
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from toys import never
    NEVER = 1
else:
    ALWAYS = 2
"text"


def go(x, y=inner.LIMIT):
    return (even(x) + lower.low(x) + toys.low.low(y) + tables.fill + toys.low.VERSION
            + toys.handed(m.pi, deep.inner))


def even(x):
    return x == 0 or odd(x - 1)


def odd(x):
    return x != 0 and even(x - 1)


def names(x):
    return [even, low_alone, type(x).__name__, x.__name__, "toys.named", "toys.nowhere.at",
            gone, ALWAYS]


def hands_on():
    return [even]


def low_alone():
    import cmath as m
    return collections.abc, toys.low.Thing().kind, judge(toys.measure.clock.tick)


def judge(x):
    from toys.judge import verdict
    return verdict(x)
""",
    "low.py": "def low(x):\n    return x\n\n\nclass Thing:\n    kind = 1\n\n\nVERSION = 2\n",
    "never.py": "",
    "named.py": "import typing\nif typing.TYPE_CHECKING:\n    NEVER = 1\n"
    "A = 1\ndef b():\n    return A\n",
    "tables.py": "TABLE = []\nfor fill in (1, 2):\n    TABLE.append(fill)\nprint(TABLE)\n"
    "if __name__ == '__main__':\n    print(1)\n",
    "deep/__init__.py": "",
    "deep/inner.py": "LIMIT, OTHER = 1, 2\n",
    "judge/__init__.py": "",
    "judge/verdict.py": "def verdict(x):\n    return x\n",
    "measure/__init__.py": "",
    "measure/clock.py": "def tick():\n    return 1\n",
}
EXPERIMENT = """
from toys.top import low_alone


@experiment("one.two", files=("script.py", "kernel.cu", "kernel.cu"))
def two(m: int = 1, dtype: Literal["a", "b"] = "a"):
    return low_alone()
"""
HASHES = {
    "go": ("a9f17a8dcc289377", "deep/inner.py low.py tables.py top.py"),
    "even": ("84936b0e89aa39aa", "top.py"),
    "odd": ("2ada86f8418ce8a2", "top.py"),
    "names": ("916b1efa48a7f487", "low.py named.py tables.py top.py"),
    "hands_on": ("24e7b02e14ff0fb3", "top.py"),
    "low_alone": ("94b38d04d55c8085", "low.py top.py"),
}


def package() -> Definitions:
    sources = tuple(sorted((file, text.encode()) for file, text in FILES.items()))
    return Definitions("toys", sources, Layout(("measure",), ("judge",), "7"))


@pytest.mark.parametrize("name", HASHES)
def test_definitions_have_the_hashes_that_they_ever_had(name):
    found = package().reached("top", name)
    assert (found.hash[:16], " ".join(found.files)) == HASHES[name]


def counted(monkeypatch, module, name):
    """What a function is called with from now on."""
    calls, real = [], getattr(module, name)

    def call(*given):
        calls.append(given)
        return real(*given)

    monkeypatch.setattr(module, name, call)
    return calls


def test_each_definition_is_read_and_hashed_once(monkeypatch):
    toys = package()
    read = counted(monkeypatch, content, "normalised")
    hashed = counted(monkeypatch, content, "digest")
    toys.reached("top", "go")
    before = len(hashed)
    assert toys.reached("top", "go") and len(hashed) == before
    statements = [(statement, name) for statement, name, *_ in read]
    assert len(statements) == len(set(statements))
    assert toys.module("top") is toys.module("top")


def test_an_experiment_has_the_hash_that_it_ever_had(tmp_path, monkeypatch):
    files = {f"toys/{file}": text for file, text in FILES.items()}
    files |= {"toys/experiments/one.py": EXPERIMENT, "kernel.cu": "f()\n"}
    for name, text in (files | {"script.py": "'text'\nimport anatomy.table\nprint(1)\n"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = code_hash("one.two", {"m": 2}, root=tmp_path / "toys")
    read = counted(monkeypatch, definitions, "parsed")
    assert code_hash("one.two", {"m": 2}, root=tmp_path / "toys") == found and read == []
    assert (found.hash[:16], found.files) == (
        "f0b12c56398e22bd",
        ["kernel.cu", "script.py", "toys/experiments/one.py", "toys/low.py", "toys/top.py"],
    )
