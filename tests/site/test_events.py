"""The hooks file: MkDocs passes over an event whose name is mistyped without a word."""

import importlib.util

from mkdocs.plugins import EVENTS

from tests.fakes.sites import CHECKOUT


def test_the_hooks_are_what_mkdocs_calls():
    spec = importlib.util.spec_from_file_location("events", CHECKOUT / "hooks" / "events.py")
    events = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(events)
    named = {name for name in vars(events) if name.startswith("on_")}
    assert named and named <= {f"on_{event}" for event in EVENTS}
