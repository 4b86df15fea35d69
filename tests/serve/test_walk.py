"""Visitors who follow links at random meet no broken page, and files with a page's figures."""

import secrets
from dataclasses import replace

import pytest

from discreet.serve.api.pxweb import data
from discreet.serve.web import charts, grid, pages
from tests.serve.walk import FaultError, small_walk

STEPS = 1_000


@pytest.mark.parametrize("part", range(2))
def test_random_visitors_meet_no_fault(part):
    seed = secrets.randbelow(10**6)
    try:
        seen = small_walk(seed, STEPS)
    except FaultError as fault:
        pytest.fail(f"{fault}; again with: python -m tests.serve.walk {seed} {STEPS}")
    assert sum(seen.values()) > STEPS
    assert sum(n for (kind, status), n in seen.items() if kind == "table" and status == 200) > 500


def test_a_chart_that_fails_is_met(monkeypatch):
    broken = dict.fromkeys(charts.CHARTS, charts.ChartKind(lambda data: 1 / 0, 40, 6, 72))
    monkeypatch.setattr(charts, "CHARTS", broken)
    with pytest.raises(FaultError, match="500"):
        small_walk(1, 50)


def test_a_column_that_is_lost_on_the_page_is_met(monkeypatch):
    def lay_out_less(*arguments):
        found = layout(*arguments)
        if len(found.columns) < 2:
            return found
        return replace(
            found,
            columns=found.columns[:-1],
            values=found.values[:, :-1],
            status=found.status[:, :-1],
        )

    layout = pages.layout_of
    monkeypatch.setattr(pages, "layout_of", lay_out_less)
    with pytest.raises(FaultError, match="CSV differ"):
        small_walk(1, 100)


def test_a_column_that_is_lost_on_paper_is_met(monkeypatch):
    print_all = grid.print_blocks
    monkeypatch.setattr(grid, "print_blocks", lambda *given: print_all(*given)[:-1])
    with pytest.raises(FaultError, match="what is printed differs"):
        small_walk(1, 300)


def test_an_interface_with_other_figures_is_met(monkeypatch):
    def change(*given):
        found = write(*given)
        return {**found, "value": [v and v + 1 for v in found["value"]]}

    write = data.json_stat
    monkeypatch.setattr(data, "json_stat", change)
    with pytest.raises(FaultError, match="an interface and the page's CSV differ"):
        small_walk(1, 600)
