"""Ways to train on two ranks: each has the plain model's loss and gradients, or is refused."""

import signal
from functools import partial

import pytest

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import training
from anatomy.parts import ranks as of_parts
from anatomy.record.processes import ranks
from tests.chapters.distributed.rank_ways import ASKING_S, ON_CPU

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT


@pytest.fixture(scope="module")
def found():
    before = {each: signal.getsignal(each) for each in SIGNALS}
    here = __name__.rpartition(".")[0]
    yield ranks.run(f"{here}.rank_ways:gates", 2, "cpu", {"device": "cpu"})
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("name", ON_CPU[1:])
def test_a_way_has_the_plain_models_gradients_and_moves_its_weights(name, found):
    for of_rank in found:
        assert of_rank[name] < 1e-5 and of_rank[f"{name} moves"]


@pytest.mark.parametrize("name", ["DDP", "FSDP2"])
def test_gradients_that_are_sent_at_the_end_are_the_same(name, found):
    assert all(of_rank[f"{name}, late"] < 1e-5 for of_rank in found)


def test_a_layer_with_a_checkpoint_runs_again_in_the_backward_pass(found):
    for of_rank in found:
        passes = {name: of_rank[f"{name} passes"] for name in ON_CPU[1:]}
        again = {name for name, times in passes.items() if times == 2}
        assert again == {of.DDP_CHECKPOINTED, of.CHECKPOINTED} and {*passes.values()} == {1, 2}


def test_of_what_hosts_take_to_ask_the_slowest_ones_counts(found):
    assert all(of_rank["asking_s"] >= ASKING_S for of_rank in found)


def test_gradients_that_were_not_sent_are_refused(found):
    assert all("strays from its reference" in of_rank["wrong"] for of_rank in found)


def test_a_layer_in_parts_adds_up_twice_in_each_pass(found):
    assert [of_rank["talks"] for of_rank in found] == [4, 4]


def test_a_run_whose_time_is_up_has_a_row_for_all_that_pages_and_claims_name():
    wanted = partial(of.training, scale=0.01, world_size=1)
    how = {"promised": of.FIGURES, "scale": 0.01, "blocks": 1}
    table = of_parts.table(training.of_rank, 1, "cpu", wanted, budget_s=-1.0, **how)
    assert table.note.str.startswith("not begun").all()
    for op, names in of.SCALED.items():
        assert tuple(table.variant[table.op == op]) == names
    assert {of.WIDE, of.PARTS} < {*table.op}
    assert len({op for op in table.op if op.startswith(of.TENSOR)}) == len(of.BLOCKS)
