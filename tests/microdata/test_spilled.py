"""What memory does not hold is written where nobody else can read it, and nothing stays behind."""

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from discreet.records.duckdb import DuckDB

LARGE = "CREATE TABLE large AS SELECT range AS i, random() AS x FROM range(3_000_000)"
KILLED = """
import os, signal, discreet as dc, pyarrow as pa
dc.open(pa.table({"sex": ["f", "m"]}))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_program_that_is_killed_leaves_nothing_of_its_own(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    (closed,) = tmp_path.iterdir()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list(closed.iterdir()) == []


def test_spilled_records_lie_in_a_closed_folder_and_go_with_the_connection(place):
    backend = DuckDB.connect()
    backend.con.execute("SET memory_limit = '30MB'")
    backend.con.execute("SET threads = 1")
    backend.con.execute(LARGE)
    (closed,) = place.iterdir()
    (own,) = closed.iterdir()
    assert sum(path.stat().st_size for path in own.iterdir()) > 0
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    backend.con.close()
    assert list(closed.iterdir()) == []


def test_what_a_killed_program_spilled_goes_after_a_day_and_what_is_new_stays(place):
    DuckDB.connect()
    (closed,) = place.iterdir()
    for name, age in (("old", 2 * 86_400), ("in-use", 2 * 86_400), ("new", 0)):
        (closed / name).mkdir()
        (closed / name / "a.tmp").write_text("x")
        then = time.time() - age
        os.utime(closed / name / "a.tmp", (then, then))
        os.utime(closed / name, (then, then))
    (closed / "in-use" / "b.tmp").write_text("y")
    DuckDB.connect()
    assert sorted(path.name for path in closed.iterdir()) == ["in-use", "new"]


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file"])
def test_a_folder_that_others_can_use_is_left_alone(place, fault):
    DuckDB.connect()
    (closed,) = place.iterdir()
    if fault == "open to others":
        closed.chmod(0o755)
    else:
        closed.rmdir()
        elsewhere = Path(tempfile.mkdtemp(dir=place, prefix="elsewhere-"))
        closed.symlink_to(elsewhere) if fault == "a link" else closed.write_text("x")
    setting = "SELECT current_setting('temp_directory')"
    chosen = Path(DuckDB.connect().con.execute(setting).fetchone()[0]).parent
    assert chosen != closed
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700
