"""What runs on a CPU, on a site that shows a GPU: pages find it, and the ledger has it once."""

import pytest

from anatomy import claims
from anatomy.claims import ledger
from anatomy.record import recorder, recording
from anatomy.record.showing import Showing
from tests.fakes import synthetic
from tests.fakes.sites import Project, block

CALL = {"device": "cpu", "m": 8, "k": 8}
SHOW = (
    "from anatomy.page import show\n"
    'print(show("tensor_layout.report", device="cpu", m=8, k=8))\n'
    'print(show("tensor_layout.report", device="cpu", m=16, k=8))'
)
REFERENCE = "[[tensor_layout.report(device=cpu, m=8, k=8).contiguous.offset_bytes]]"


@pytest.fixture
def root(tmp_path):
    """A GPU's recordings, and one call on two CPUs."""
    synthetic.MAKERS["limits.ceilings"](tmp_path)
    for slug in ("cpu-b", "cpu-a"):
        made = synthetic.layouts(tmp_path, **CALL)
        data = recording.load(made).data
        data["machine"] |= {"slug": slug, "gpu": None, "card": None, "cpu": f"The {slug}"}
        made.unlink()
        recording.save(data, tmp_path)
    return tmp_path


def found(root, **here):
    showing = Showing(root, synthetic.MACHINE, here or None)
    return showing.find("tensor_layout.report", **CALL)


def test_a_call_on_a_cpu_is_found_beside_the_gpu_that_is_shown(root):
    assert found(root).recording.machine == "cpu-a" and found(root).freshness.current
    assert found(root, slug=synthetic.MACHINE, cpu="cpu-b").recording.machine == "cpu-b"
    here = {"slug": "another-gpu", "card": "0" * 12, "driver": "1.2", "cpu": "cpu-c"}
    assert found(root, **here).recording.machine == "cpu-a"
    assert found(root, **here).freshness.current, "it does not go stale by a GPU"


def test_a_page_shows_it_with_its_own_machine_and_its_gaps_need_no_gpu(root, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    built = Project(folder, root).write(index=f"# T\n\n{REFERENCE}\n\n{block(SHOW)}").build()
    assert built.status == 0, built.said
    home = built.read()
    assert "The cpu-a" in home and 'href="recordings/cpu-a/tensor_layout.report/' in home
    assert 'class="measured"' in home and home.count('class="notice gap"') == 1
    assert "<p><b>Not recorded yet.</b> Record it:</p>" in home


def test_a_check_asks_for_what_the_pages_show(root):
    shown = [("tensor_layout.report", CALL), ("tensor_layout.report", CALL | {"m": 16})]
    items = recorder.plan(shown, root, None, slug=synthetic.MACHINE)
    assert [item.freshness.state for item in items] == ["current", "missing"]
    mine = recorder.plan(shown, root, None)  # as `record` asks, for this machine's own CPU
    assert [item.freshness.state for item in mine] == ["missing", "missing"]


def test_a_claim_of_a_cpu_is_in_the_ledger_once_and_under_its_name(root, monkeypatch):
    synthetic.MAKERS["limits.ceilings"](root)
    second = recording.load(next(root.glob("toy-gpu/limits.ceilings/*.json"))).data
    second["machine"] |= {"slug": "toy-gpu-2"}
    recording.save(second, root)

    def judge(report):
        return claims.Finding(claims.HOLDS, "It does.")

    needs = (claims.Need("tensor_layout.report", CALL),)
    one = claims.Claim("a-cpu", "It does.", needs=needs, judge=judge)
    monkeypatch.setattr(claims, "all_claims", lambda: {"a-cpu": one})
    (result,) = ledger.results(Showing(root, synthetic.MACHINE))
    assert (result.word, result.machine) == (claims.HOLDS, "cpu-a")
    assert ledger.judged_machines(root) == ["toy-gpu", "toy-gpu-2"]
