"""Nothing is fetched when discreet runs: a machine without a network does the same."""

import shutil
import subprocess
import sys

import duckdb
import pytest

from discreet.records.duckdb import DuckDB

WORK = """
import socket
import sys
from pathlib import Path

try:
    socket.create_connection(("192.0.2.1", 9), timeout=1)
    sys.exit("there is a network")
except OSError as error:
    assert not isinstance(error, TimeoutError), "somebody forwards packets"

import discreet as dc
from discreet.testing import check_install

Path("people.csv").write_text("pid,sex\\n" + "".join(f"{k},{'fm'[k % 2]}\\n" for k in range(99)))
Path("codes.toml").write_text('[sex]\\ncodes = ["f", "m"]\\n')
dc.Secret.from_file("keys.secret", create=True)
people = dc.open("people.csv", id="pid", codes="codes.toml", secret="keys.secret")
release = people.tabulate("sex").protect("cell-key")
for name in ("sex.parquet", "sex.csv", "sex.px", "sex.json", "sex.xlsx"):
    release.write(name)
assert check_install().is_passed
print("done")
"""


def closed():
    """How to run a command without any network, or None where the system cannot."""
    found = shutil.which("unshare")
    command = [found or "", "--map-root-user", "--net"]
    works = found and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if works else None


@pytest.mark.slow
def test_everything_works_without_a_network(tmp_path):
    if (command := closed()) is None:
        pytest.skip("this system gives no network namespaces")
    words = [*command, sys.executable, "-c", WORK]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_the_engine_downloads_no_extension():
    engine = DuckDB.connect()
    with pytest.raises(duckdb.Error, match="(?i)install"):
        engine.con.execute("SELECT * FROM read_xlsx('people.xlsx')")
    told = "SELECT current_setting('autoinstall_known_extensions')"
    assert engine.con.execute(told).fetchone() == (False,)
