"""Long work says what it is doing: on the error stream, in terminals and notebooks alone."""

import inspect
import io
import re
import sys
import time

import pytest

import discreet as dc
from discreet.display import bars
from discreet.display.bars import show_progress, shows_progress
from discreet.progress import is_heard, report
from discreet.publication.editions import publish, publish_periods

VERBS = [
    dc.compare, dc.attack, dc.attack_method, dc.audit, dc.assess, dc.synthesize,
    dc.Microdata.tabulate, dc.Table.protect, dc.Table.simulate, dc.Release.fit, dc.Release.round,
    dc.attack_service, dc.argus.run_batch, dc.demo.census, dc.demo.sample, publish, publish_periods,
    dc.assessment.select_margins, dc.synthesis.swap_records,
]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    """What ipykernel puts in place of the error stream: no terminal, and lines are written over."""

    __module__ = "ipykernel.iostream"


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(bars, "_PATIENCE", 0.0)
    monkeypatch.setattr(bars, "_PAUSE", 0.0)
    monkeypatch.setenv("TERM", "xterm")


def work(steps=4):
    for k in range(steps):
        report("counting [b]", k / steps)
        time.sleep(0.03)
    return is_heard()


def divide():
    time.sleep(0.05)
    return 1 / 0


def watched(monkeypatch, stream, title="working", **options):
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress(title, **options):
        time.sleep(0.05)
        work()
    return stream.getvalue()


def test_a_terminal_shows_the_task_and_how_far_it_is(at_once, monkeypatch, capsys):
    said = watched(monkeypatch, Terminal())
    assert "working" in said
    assert "counting [b]" in said
    assert re.search(r"(25|50|75)%", said)
    assert capsys.readouterr().out == ""


def test_a_notebook_has_one_line_that_ends_empty(at_once, monkeypatch):
    said = watched(monkeypatch, Notebook(), "comparing methods")
    assert "\n" not in said
    lines = [line.strip() for line in said.split("\r")]
    assert lines[1] == "comparing methods …"
    assert "counting [b]: 75%" in lines
    assert lines[-1] == ""


@pytest.mark.parametrize("options", [{"progress": False}, {}])
def test_files_and_those_who_want_none_see_nothing(at_once, monkeypatch, options):
    stream = Terminal() if options else io.StringIO()
    assert watched(monkeypatch, stream, **options) == ""


def test_quick_work_is_not_announced(monkeypatch):
    assert watched(monkeypatch, Terminal()) == ""


def test_work_within_work_is_shown_once_and_can_be_silenced(at_once, monkeypatch):
    stream = Notebook()
    monkeypatch.setattr(sys, "stderr", stream)
    inner = shows_progress("inner")(work)
    with show_progress("outer"):
        time.sleep(0.05)
        assert inner()
        before = stream.getvalue()
        inner(progress=False)
        assert stream.getvalue() == before
    assert "inner" not in stream.getvalue()


def test_a_fault_leaves_no_bar_behind(at_once, monkeypatch):
    stream = Notebook()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ZeroDivisionError):
        shows_progress("dividing")(divide)()
    assert stream.getvalue().endswith("\r")
    assert not is_heard()
    assert "dividing" in watched(monkeypatch, Notebook(), "dividing")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__qualname__)
def test_every_verb_that_can_be_long_takes_the_argument(verb):
    told = inspect.signature(verb).parameters["progress"]
    assert told.default is True
    assert told.kind is inspect.Parameter.KEYWORD_ONLY


def test_a_verb_says_how_far_it_is(at_once, monkeypatch):
    table = dc.Table.from_inner(dc.Design.product({"a": 3, "b": 2}, "a*b"), [1, 2, 3, 4, 5, 6])
    for progress in (True, False):
        stream = Notebook()
        monkeypatch.setattr(sys, "stderr", stream)
        found = dc.compare(table, "drop-add", replicates=40, workers=1, progress=progress)
        assert ("comparing methods" in stream.getvalue()) == progress
        assert len(found.labels) == 1
