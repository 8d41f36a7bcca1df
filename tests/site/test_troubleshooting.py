"""Each entry of the page on troubleshooting: its message is one that really comes."""

import os
import re
import runpy
import socket
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch.utils import cpp_extension

import make
from anatomy.chapters.launches import launches
from anatomy.cli import text as terminal
from anatomy.diagnosis import profiles, scripts, steps
from anatomy.machine import host, versions
from anatomy.record.processes import isolation, worker
from anatomy.record.provenance.freshness import freshness
from anatomy.record.recording import Recording
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT
from tests.fakes.toy_recording import made

PAGE = (CHECKOUT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^## (?P<heading>.+)\n\n```text\n(?P<message>.+)\n```$", re.MULTILINE)
MESSAGES = {found["heading"]: found["message"] for found in ENTRY.finditer(PAGE)}

WAYS: dict[str, Callable] = {}


def way(heading: str) -> Callable:
    """Declare how an entry's message is brought about."""

    def declare(function: Callable) -> Callable:
        WAYS[heading] = function
        return function

    return declare


def said(call: Callable) -> str:
    """The message of the error that a call raises."""
    with pytest.raises((Exception, SystemExit)) as raised:
        call()
    return str(raised.value)


def without_cuda(monkeypatch, build: str | None, visible: str = "0") -> str:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    return said(lambda: host.require_device("cuda:0"))


@way("PyTorch is built for the CPU")
def _(monkeypatch, tmp_path):
    return without_cuda(monkeypatch, None)


@way("The driver is missing or too old")
def _(monkeypatch, tmp_path):
    return without_cuda(monkeypatch, "13.0")


@way("The GPU is hidden")
def _(monkeypatch, tmp_path):
    return without_cuda(monkeypatch, "13.0", visible="")


@way("The command is not found")
def _(monkeypatch, tmp_path):
    typed = ["/bin/bash", "-c", "pytorch-gpu-anatomy"]
    return subprocess.run(typed, env={"PATH": str(tmp_path)}, capture_output=True, text=True).stderr


@way("The script has no step()")
def _(monkeypatch, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("def train():\n    pass\n")
    return said(lambda: scripts.diagnose_script(script, device="cpu"))


@way("PyTorch is missing")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr(versions, "torch_build", lambda: versions.Build(versions.NO_TORCH))
    return said(versions.require_torch)


@way("Somebody else computes on the GPU")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "foreign_processes", lambda device: [4711])
    return said(lambda: worker.refuse_company("cuda:0"))


@way("Two commands measure at once")
def _(monkeypatch, tmp_path):
    monkeypatch.setenv("ANATOMY_LOCKS", str(tmp_path))
    with isolation.only_recorder():
        return said(lambda: isolation.only_recorder().__enter__())


@way("It runs out of memory")
def _(monkeypatch, tmp_path):
    error = torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 7.60 GiB "
        "of which 1.00 GiB is free."  # in torch's words
    )
    return worker.failure(error)["message"]


@way("Another profiler runs")
def _(monkeypatch, tmp_path):
    def taken(*arguments):
        raise RuntimeError("Profiler is already enabled on this thread")

    monkeypatch.setattr(profiles, "take", taken)
    weight = torch.ones(8, 8)
    brief = {"settle_cap_s": 0.05, "block_s": 0.001}
    found = steps.diagnose(lambda: weight @ weight, device="cpu", **brief)
    return next(each for each in found.warnings if "profile" in each)


@way("nvcc is missing")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    return said(launches._from_cpp)


@way("An exercise is still to be written")
def _(monkeypatch, tmp_path):
    check = CHECKOUT / "snippets" / "days" / "day_02" / "check.py"
    return subprocess.run([sys.executable, str(check)], capture_output=True, text=True).stderr


@way("torch.compile finds no compiler")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", ("no-such-compiler",))
    torch._dynamo.reset()
    return said(lambda: torch.compile(lambda x: (x + 3).sin())(torch.ones(64))).splitlines()[0]


@way("Rung 4 can't import Transformer Engine")
def _(monkeypatch, tmp_path):
    class TwoCudnns:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("transformer_engine"):
                symbol = "_ZTVN5cudnn7backend12OperationSetE, version libcudnn_graph.so.9"
                raise OSError(f"libcudnn_cnn.so.9: undefined symbol: {symbol}")

    monkeypatch.setattr(sys, "meta_path", [TwoCudnns(), *sys.meta_path])
    script = CHECKOUT / "snippets" / "ladder" / "4_transformer_engine.py"
    return said(lambda: runpy.run_path(str(script)))


@way("A figure is out of date")
def _(monkeypatch, tmp_path):
    return freshness(Recording(made(code=made()["code"] | {"hash": "0" * 16}))).reason


@way("It was measured with another PyTorch")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr("anatomy.record.provenance.freshness.code_hash", _same_code)
    return freshness(Recording(made()), {"slug": made()["machine"]["slug"], "torch": "9.9"}).reason


def _same_code(*arguments, **options):
    return SimpleNamespace(**made()["code"])


@way("The card is held at its power limit")
def _(monkeypatch, tmp_path):
    found = synthetic.showing().find("contiguity.bench").recording
    return next(line for line in terminal.notes(found)[0].split("\n") if "power" in line)


@way("The checkout can't be written to")
def _(monkeypatch, tmp_path):
    monkeypatch.setattr(make, "CHECKOUT", tmp_path)
    monkeypatch.setattr(make.os, "access", lambda folder, how: False)
    monkeypatch.setattr(sys, "argv", ["make.py", "site"])
    monkeypatch.chdir(tmp_path)
    return said(make.main)


@way("The preview's port is taken")
def _(monkeypatch, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        serve = [sys.executable, "-m", "mkdocs", "serve", "-a", address]
        ended = subprocess.run(serve, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    return ended.stderr.strip().splitlines()[-1]


def test_each_entry_has_a_way_to_its_message_and_each_way_an_entry():
    *entries, last = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert list(MESSAGES) == list(WAYS) == entries and last == "Where next?"


@pytest.mark.parametrize("heading", list(WAYS))
def test_the_message_is_the_one_on_the_page(heading, monkeypatch, tmp_path):
    pattern = ".+".join(re.escape(part) for part in MESSAGES[heading].split("…"))
    message = WAYS[heading](monkeypatch, tmp_path)
    assert re.search(pattern, message), message


def test_the_command_for_cudnn_prints_the_folder_of_torchs_own(tmp_path):
    """As its wheel lays it out: a namespace package with the libraries in `lib`."""
    (tmp_path / "nvidia" / "cudnn" / "lib").mkdir(parents=True)
    (tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn_graph.so.9").touch()
    home, path = re.findall(r"^export \w+=.+$", PAGE, re.MULTILINE)
    told = f'python() {{ {sys.executable} "$@"; }}\n{home}\n{path}\nls ${{LD_LIBRARY_PATH%%:*}}'
    known = os.environ | {"PYTHONPATH": str(tmp_path), "LD_LIBRARY_PATH": "/system"}
    ended = subprocess.run(["bash", "-c", told], env=known, capture_output=True, text=True)
    assert ended.stdout.split() == ["libcudnn_graph.so.9"], ended.stderr
