"""What autograd, autocast and Python among the dispatch keys add to a call, for the CPU."""

from anatomy.claims import Finding, Need, claim
from anatomy.claims.table import Table, judged

CALLS = Need("dispatch.calls")
ONE = "one call"
IN_PYTHON = ("subclass", "dispatch mode", "custom op")


@claim(CALLS, topic="dispatcher")
def falling_through_is_free(calls: Table) -> Finding:
    """A key that an operator has no code for costs its call nothing.

    An addition under autocast, which leaves additions alone, takes the CPU at most 5 % longer
    than one outside of it."""
    return calls.at_most(1.05, "autocast", op=ONE)


@claim(CALLS, topic="dispatcher")
def recording_costs_less_than_a_call(calls: Table) -> Finding:
    """Recording a node for the backward pass less than doubles a small call's time.

    An addition of a tensor that requires a gradient takes the CPU at most twice as long."""
    return calls.at_most(2.0, "requires_grad", op=ONE)


@claim(CALLS, topic="dispatcher")
def inference_mode_makes_calls_cheaper(calls: Table) -> Finding:
    """inference_mode makes a small call a twentieth cheaper or more.

    An addition in inference_mode takes the CPU at most 0.95 of one outside of it, of tensors
    that require no gradient."""
    return calls.at_most(0.95, "inference_mode", op=ONE)


@claim(CALLS, topic="dispatcher")
def python_makes_calls_dearer(calls: Table) -> Finding:
    """Python among the dispatch keys makes a small call dearer.

    An addition of a subclass, in a dispatch mode, and as a custom operator: each takes the CPU
    longer than a plain one."""
    ways = (({"way": way}, calls.row(way, op=ONE)) for way in IN_PYTHON)
    cases = judged(ways, lambda over: over.says("slower"))
    return cases.finding(f"Over a plain addition: {cases.spans('way')}.")


@claim(CALLS, topic="dispatcher")
def a_view_is_cheap(calls: Table) -> Finding:
    """A view launches nothing, and costs the CPU less than a third of an addition.

    `x.view(1)` takes the CPU at most a third of what `torch.add(x, y)` takes it."""
    return calls.at_most(1 / 3, "x.view(1)", op=ONE)


@claim(CALLS, topic="dispatcher")
def one_call_for_many_is_cheaper(calls: Table) -> Finding:
    """One call for many tensors costs the CPU at most two thirds of a call for each.

    A tensor more in `torch._foreach_add` takes the CPU two thirds of a `torch.add` at most."""
    return calls.at_most(2 / 3, "torch._foreach_add", op=ONE)
