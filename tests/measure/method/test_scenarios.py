"""What the measuring room does in each scenario on the virtual GPU is what METHOD.json holds."""

import re

import pytest

from anatomy.record import signatures
from anatomy.record.provenance import method
from tests.measure.method.command import trace_differences
from tests.measure.method.traces import SCENARIOS, traced

GOLDEN = method.load(signatures.PACKAGE)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_operations_and_figures_of_a_scenario_are_those_of_the_method(name):
    told = trace_differences(GOLDEN, {name: traced(SCENARIOS[name])})
    assert [each for each in told if re.split("[,:]", each)[0] == name] == []
