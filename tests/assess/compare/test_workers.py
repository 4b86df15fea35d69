"""The number of processes changes the time and nothing else."""

import subprocess
import sys

import pytest

import discreet as dc
from discreet.assessment import Job
from discreet.assessment.compare import execution as workers
from discreet.assessment.compare.contestants import contestants
from discreet.assessment.compare.execution import Batch, _batches, _can_travel, _processes
from discreet.errors import ParameterError
from tests.assess import party
from tests.assess.compare.methods import Shift

SCRIPT = """
import sys, discreet as dc
print("once", file=sys.stderr)
frame = {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"], "n": [4, 5, 6, 3]}
table = dc.Table.from_counts(frame, count="n", margins="a*b")
methods = ["drop-add:share=0.5,margins=summed", "pram:margins=summed"]
for workers in (1, 2):
    found = dc.compare(table, methods, fitters=[], replicates=12, workers=workers,
                       measures=["hellinger-utility", "unchanged-cells"])
    print(found.replicates.to_pylist())
"""


def test_two_processes_give_the_same_scores_and_need_no_guard_in_the_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("once") == 1
    alone, together = done.stdout.splitlines()
    assert alone == together
    assert alone.count("'replicate': 11") == 2 * 2 * 2


def job(method=None):
    return Job(party.table(), contestants(method or dc.Pram()), (), ())


def test_batches_cover_every_draw_once():
    missing = [list(range(2, 100)), [], [5, 7, 9]]
    found = _batches(missing, [0.5, 0.1, 100.0], 4)
    for k, draws in enumerate(missing):
        assert sorted(i for b in found if b.contestant == k for i in b.draws) == draws
    assert max(len(b.draws) for b in found) <= 10
    assert found[-1] == Batch(2, (9,))


def test_little_work_stays_here(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 4)
    assert _processes(job(), None, 1.0) == 1
    assert _processes(job(), None, 1000.0) == 4
    assert _processes(job(), 2, 1.0) == 2
    assert _processes(job(), 1, 1000.0) == 1


def test_what_cannot_travel_stays_here_or_is_an_error(monkeypatch):
    class Local(Shift):
        pass

    monkeypatch.setattr(workers, "available_cores", lambda: 4)
    assert _can_travel(job(Shift()))
    assert not _can_travel(job(Local()))
    assert _processes(job(Local()), None, 1000.0) == 1
    with pytest.raises(ParameterError, match="workers=1"):
        _processes(job(Local()), 2, 1000.0)


def test_there_is_at_least_one_core():
    assert workers.available_cores() >= 1
