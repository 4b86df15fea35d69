"""What `Suppress` is told: plain data is read, and wrong input is explained."""

import re
import resource

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import DiscreetError, ParameterError, UnknownNameError
from discreet.suppress import describe_pattern

COUNTS = np.array([3, 11, 32, 30, 1, 9, 13, 8, 12, 22, 2, 2, 18, 19, 16, 3])
TABLE = dc.Table.from_inner(dc.Design.product({"row": 4, "col": 4}, "row*col"), COUNTS)


class HalfARule:
    name, why = "half", "because"

    def primaries(self, table):
        return table.z < 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": dc.rules.Threshold}, "rules such as Threshold"),
        ({"rules": HalfARule()}, "rules such as Threshold"),
        ({"priorities": [{"row": 1}]}, "each entry a cell and a factor; got {'row': 1}"),
        ({"priorities": {"row": 1}}, "each entry a cell and a factor"),
        ({"priorities": 5}, "each entry a cell and a factor; got 5"),
        ({"priorities": [({"row": 1}, "2")]}, "must be positive"),
        ({"bounds": [({"row": 1}, 0)]}, "each entry a cell, a smallest and a largest value"),
        ({"bounds": 5}, "each entry a cell, a smallest and a largest value"),
        ({"bounds": [({"row": 1}, float("nan"), 4)]}, "a smallest and a largest value"),
        ({"decimals": True}, "decimals are Decimals()"),
        ({"decimals": 3}, "decimals are Decimals()"),
        ({"zeros": "no"}, "zeros must be True or False, got 'no'"),
        ({"zeros": 0}, "zeros must be True or False"),
        ({"singletons": "False"}, "singletons must be True or False"),
        ({"singletons": None}, "singletons must be True or False"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
def test_wrong_options_are_explained(options, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        dc.Suppress(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dc.rules.PPercent("10"), "p must be a percentage"),
        (lambda: dc.rules.PPercent(None), "p must be a percentage"),
        (lambda: dc.rules.Dominance(1, "80"), "k must be a percentage"),
        (lambda: dc.rules.PPercent(10, waivers=5), "waivers is a list"),
        (lambda: dc.rules.Threshold(3, zeros="no"), "zeros must be True or False"),
        (lambda: dc.rules.KDisclosure(1, zeros="no"), "zeros must be True or False"),
        (lambda: dc.suppress.Pattern.from_labels(TABLE, {("1",): "p"}), "a code of each variable"),
        (lambda: dc.suppress.Pattern.from_labels(TABLE, {1: "p"}), "a code of each variable"),
        (
            lambda: dc.suppress.consistent(dc.Suppress(), TABLE, None),
            "an earlier release was expected",
        ),
        (lambda: registry.build("methodd", "suppress"), "unknown kind 'methodd'"),
        (lambda: registry.build("method", []), "method is given by its name"),
        (lambda: registry.build("method", None), "method is given by its name"),
    ],
)
def test_wrong_input_is_an_error_with_a_remedy(call, message):
    with pytest.raises(DiscreetError, match=message):
        call()


def test_decimals_are_plain_data():
    plain = {"name": "suppress", "max": 3, "decimals": {"residual": "rmse", "rmse": 2.0}}
    assert registry.build("method", plain).decimals == dc.suppress.Decimals("rmse", rmse=2.0)
    table = TABLE.with_secret(dc.Secret.demo())
    made = table.protect("suppress", max=3, decimals={"rmse": 2.0})
    same = table.protect(
        dc.Suppress(dc.rules.Threshold(3), decimals=dc.suppress.Decimals(rmse=2.0))
    )
    np.testing.assert_array_equal(made.z, same.z)
    with pytest.raises(UnknownNameError, match="Did you mean 'residual'"):
        dc.Suppress(decimals={"residul": "rmse"})


def test_a_large_threshold_needs_no_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    method = dc.Suppress(dc.rules.Threshold(10**9))
    assert method.claims.blocked[-1] == 10**9
    released = dc.Table.from_inner(TABLE.design, COUNTS * 10**8).protect(method)
    assert "Values of 1 to 1000000000 are never published." in released.statement.text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_table_without_hidden_cells_is_not_said_to_have_some():
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    full, small = (dc.Table.from_inner(design, [n, 20, 30, 40]) for n in (10, 2))
    said = repr(full.protect(dc.Suppress()).statement)
    assert said == repr(small.protect(dc.Suppress()).statement)  # it follows from the method alone
    assert "Where there are any, further cells are not shown" in said
    forced = dc.Suppress(forced=[{"a": "1", "b": "1"}])
    shown = small.protect(forced)
    assert not shown.hidden.any()
    report = str(describe_pattern(forced.pattern(small), small, forced.rules))
    assert "No cell is sensitive" not in report
    assert "forced=" in report
