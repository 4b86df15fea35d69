"""Large tables are announced or refused before they are built."""

import logging

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError
from discreet.records import QueryEngine
from discreet.records import tabulate as plan


class Counting(QueryEngine):
    """An engine that counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def group(self, data, variables):
        self.asked += 1
        return super().group(data, variables)


def people(n_codes=300, *, declared):
    codes = [f"c{i}" for i in range(n_codes)]
    columns = {name: [codes[0], codes[-1]] for name in ("a", "b", "c", "d")}
    trees = {name: dc.Hierarchy.flat(codes) for name in columns}
    return dc.open(columns, hierarchies=trees if declared else None)


def test_a_crossing_too_large_for_memory_is_refused_before_the_engine_is_asked():
    engine = Counting()
    with pytest.raises(DesignError, match=r"8,100,000,000 cells.*support='occurring'"):
        people(declared=True).tabulate("a:b:c:d", engine=engine)
    assert engine.asked == 0


def test_a_large_table_is_announced_with_its_memory(monkeypatch, caplog):
    monkeypatch.setattr(plan, "ANNOUNCED", 1000)
    with caplog.at_level(logging.WARNING, logger="discreet"):
        people(20, declared=True).tabulate("a*b")
        assert not caplog.messages
        people(20, declared=True).tabulate("a*b*c")
    assert caplog.messages == ["the table has 8,000 cells and takes about 0.0 GB of memory."]


def test_a_large_table_of_found_codes_is_announced_once(monkeypatch, caplog):
    monkeypatch.setattr(plan, "ANNOUNCED", 16)
    with caplog.at_level(logging.WARNING, logger="discreet"):
        people(declared=False).tabulate("a*b*c*d")
    assert len(caplog.messages) == 1


def test_a_table_that_the_machine_cannot_hold_is_refused(monkeypatch):
    monkeypatch.setattr(plan, "_memory", lambda: 1000.0)
    with pytest.raises(DesignError, match="this machine has"):
        people(20, declared=True).tabulate("a*b")


@pytest.mark.parametrize(("weights", "keys"), [(False, False), (False, True), (True, True)])
def test_the_memory_that_is_announced_covers_the_values_of_a_table(weights, keys):
    n, values = 10_000, 1 + keys + 2 * weights
    size = plan.Size(n, n, values)
    held = values * (np.zeros(n).nbytes + np.zeros(n).nbytes)
    assert held <= size.memory <= 2 * held


def test_protecting_some_cells_of_a_crossing_too_large_is_refused_before_anything_is_drawn():
    table = people(declared=True).tabulate("a:b:c:d", support="occurring")

    class Never:
        name, source = "never", "table"

        def __call__(self, table, *, draws):
            raise AssertionError

    with pytest.raises(DesignError, match="8,100,000,000"):
        table.protect(Never())
    with pytest.raises(DesignError, match="8,100,000,000"):
        table.simulate(Never(), seed=1)
