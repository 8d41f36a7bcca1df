"""What holds for every command there is: help, names, typos, and where its output goes."""

import io
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from anatomy import cli
from anatomy.cli.app import build
from anatomy.record import signatures

APP = get_command(build())


def commands(group, path=()):
    """The words that reach each command and group of the application, and what they reach."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


EVERY = dict(commands(APP))


@pytest.fixture
def run(monkeypatch, capfd):
    """Run a command in this process."""

    def call(*words, stdout=None):
        with monkeypatch.context() as changed:
            if stdout:
                changed.setattr(sys, "stdout", stdout)
            with pytest.raises(SystemExit) as end:
                cli.main(list(words))
        return end.value.code, *capfd.readouterr()

    return call


def one_sentence(err):
    assert err.startswith("error: ") and len(err.splitlines()) == 1, err
    return err


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_is_ascii_for_a_terminal_that_knows_no_more(run, path):
    printed = io.BytesIO()
    status, _, err = run(*path, "--help", stdout=io.TextIOWrapper(printed, encoding="ascii"))
    assert status == 0 and err == ""
    assert f"Usage: pytorch-gpu-anatomy {' '.join(path)} " in printed.getvalue().decode("ascii")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_to_a_full_disk_is_one_sentence_and_status_1(run, path):
    with open("/dev/full", "w") as full:
        status, _, err = run(*path, "--help", stdout=full)
    assert status == 1 and "could not be printed: No space left" in one_sentence(err)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_an_option_or_a_command_that_is_not_there_is_one_sentence_and_status_2(run, path):
    for words in ((*path, "--nonesuch"), (*path[:-1], f"{path[-1]}q")):
        status, out, err = run(*words)
        assert status == 2 and out == ""
        assert "nonesuch" in one_sentence(err) or "Did you mean " in err


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_an_option_without_its_value_is_one_sentence_and_status_2(run, path):
    for option in EVERY[path].params:
        if option.param_type_name == "option" and not (option.is_flag or option.count):
            status, out, err = run(*path, option.opts[0])
            assert status == 2 and out == "" and option.opts[0] in one_sentence(err)


@pytest.mark.parametrize("name", signatures.experiments())
def test_record_wants_values_too(run, name):
    for each in signatures.signature(name).parameters:
        if each.type is not bool:
            dashed = f"--{each.name.replace('_', '-')}"
            status, _, err = run("record", name, dashed)
            assert status == 2 and f"{dashed} needs a value" in one_sentence(err)


def test_an_experiment_is_reached_by_its_name_by_one_rule_and_by_what_it_declares():
    reached = {}
    for name, declared in signatures.experiments().items():
        regular = name.replace(".", "-").replace("_", "-")
        assert {name, regular, f"run {name}"} <= {*declared.commands}
        assert not declared.command or declared.command in declared.commands
        for typed in declared.commands:
            group, _, word = typed.rpartition(" ")
            command = (EVERY[group,] if group else APP).get_command(None, word)
            assert declared.summary in command.help and f"{typed}," in f"{command.help},".replace(
                ".\n", ",\n"
            ).replace(".,", ",")
            assert reached.setdefault(typed, name) == name
    assert not set(reached) & {path[0] for path in EVERY if EVERY[path].rich_help_panel is None}


def test_what_can_not_be_encoded_gets_a_plainer_character(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    monkeypatch.setattr("anatomy.cli._run", lambda *_: print("1.5× ≤ 2 – µs 猫 \udc80") or 0)
    with pytest.raises(SystemExit):
        cli.main([])
    sys.stdout.flush()
    assert sys.stdout.buffer.getvalue().decode("latin-1") == "1.5× <= 2 - µs ? ?\n"
