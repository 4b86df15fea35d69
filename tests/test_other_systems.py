"""What other systems have not, or do otherwise; Windows is faked, and untested beside that."""

import ast
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import discreet as dc
from discreet import files
from discreet.errors import DataError

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
UNIX_ALONE = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            func = node.func
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            yield node, name, {k.arg for k in node.keywords}, isinstance(func, ast.Attribute)


def text_faults(tree):
    """Texts that are read or written in the way of the system, by line."""
    found = []
    for node, name, given, is_method in calls(tree):
        modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
        modes = [m for m in modes if isinstance(m, str) and re.fullmatch(r"[rwax]\+?t?", m)]
        is_writing = any(m[0] in "wax" for m in modes)
        wanted = set()
        if name == "write_text" and is_method:
            wanted = {"encoding", "newline"}
        elif name == "read_text" and is_method and not node.args:
            wanted = {"encoding"}
        elif name in ("open", "fdopen") and modes:
            wanted = {"encoding", "newline"} if is_writing else {"encoding"}
        if missing := wanted - given:
            found.append(f"line {node.lineno}: {name} without {' and '.join(sorted(missing))}")
    return found


def test_texts_are_written_alike_on_every_system():
    faults = {}
    for path in SOURCE.rglob("*.py"):
        if found := text_faults(ast.parse(path.read_text(encoding="utf-8"))):
            faults[str(path.relative_to(SOURCE))] = found
    assert faults == {}


@pytest.mark.parametrize(
    "line", ["p.write_text(t, encoding='utf-8')", "open(p, 'w', newline='')", "p.read_text()"]
)
def test_a_text_in_the_way_of_the_system_is_found(line):
    assert len(text_faults(ast.parse(line))) == 1


def test_no_module_needs_what_unix_alone_has():
    """Imports inside `try` have another way for other systems."""
    faults = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        guarded = {id(n) for t in ast.walk(tree) if isinstance(t, ast.Try) for n in ast.walk(t)}
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            if UNIX_ALONE & set(names) and id(node) not in guarded:
                faults.append(f"{path.relative_to(SOURCE)} imports {names}")
    assert faults == []


def test_the_page_on_installation_says_what_is_untested():
    page = (SOURCE.parents[1] / "docs" / "installation.md").read_text(encoding="utf-8")
    assert "| Windows | **not tested**" in page, "Windows is faked here, and that is no test of it"
    assert "macOS | **not tested**" in page


def test_the_builder_loads_without_unix():
    """Other packages have their own ways; ours are loaded after theirs."""
    program = (
        "import sys, signal, shutil, asyncio, uvicorn, sqlalchemy, fastapi, multiprocessing.pool;"
        f"sys.modules.update(dict.fromkeys({sorted(UNIX_ALONE)!r})); del signal.SIGHUP;"
        "import discreet.cli.app, discreet.serve.app, discreet.serve.build;"
        "from discreet.serve.run import most_connections; print(most_connections() > 8)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


@pytest.fixture
def windows(monkeypatch):
    """Folders cannot be opened, permissions say nothing, and there is no hang-up signal."""
    real = os.open

    def refuse_folders(path, flags, *rest, **more):
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(files, "IS_WINDOWS", True)
    monkeypatch.setattr(os, "open", refuse_folders)
    monkeypatch.delattr(signal, "SIGHUP")


@pytest.mark.usefixtures("windows")
def test_a_release_is_made_where_folders_cannot_be_opened(tmp_path):
    people = {"pid": list(range(80)), "sex": ["f", "m"] * 40, "age": list("abcd") * 20}
    secret = tmp_path / "keys.secret"
    data = dc.open(people, id="pid", secret=secret)
    secret.chmod(0o666)  # as every file is reported there
    assert dc.Secret.from_file(secret)
    release = data.tabulate("sex*age").protect("cell-key:D=5, V=3")
    release.write(tmp_path / "release.csv")
    assert b"\r" not in (tmp_path / "release.csv").read_bytes()
    files.flush(tmp_path)
    files.flush(secret)


def test_a_shared_secret_is_refused_where_permissions_mean_something(tmp_path):
    secret = tmp_path / "keys.secret"
    dc.Secret.from_file(secret, create=True)
    secret.chmod(0o644)
    with pytest.raises(dc.errors.KeysError, match="permissions 644"):
        dc.Secret.from_file(secret)


HOLD = """
import sys, time
from pathlib import Path
from discreet.files import held_lock
with held_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_held_by_one_and_let_go_by_death(tmp_path):
    path = tmp_path / "build.lock"
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        got = threading.Event()

        def wait():
            with files.held_lock(path):
                got.set()

        thread = threading.Thread(target=wait)
        thread.start()
        assert not got.wait(0.3)
        other.kill()
        assert got.wait(5)
        thread.join()
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert path.stat().st_size == 0


def test_threads_of_one_process_exclude_each_other(tmp_path):
    inside, most = [0], [0]

    def work():
        with files.held_lock(tmp_path / "a.lock"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_lock_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(DataError, match="cannot lock"), files.held_lock(tmp_path / "no" / "lock"):
        pass
