"""The browser's modules are typed: TypeScript's checker reads their comments and finds no fault."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.serve.kernel.node import CLIENT

HERE = Path(__file__).parent
TSC = HERE.parents[1] / "browser" / "node_modules" / ".bin" / "tsc"


@pytest.fixture
def client(tmp_path):
    """The modules beside what a build adds to them."""
    shutil.copytree(CLIENT, tmp_path, dirs_exist_ok=True)
    shutil.copy(HERE / "jsconfig.json", tmp_path)
    (tmp_path / "templates.d.ts").write_text("export const templates: any;\n")
    return tmp_path


def complaints(folder):
    project = folder / "jsconfig.json"
    if not TSC.exists():
        pytest.fail("The checker is missing: npm install --prefix tests/browser")
    done = subprocess.run([TSC, "-p", project], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_modules_have_no_fault_of_types(client):
    assert complaints(client) == []


def test_a_fault_of_types_is_found(client):
    wrong = 'import { format_fixed } from "./numbers.js";\nexport const x = format_fixed("1", 2);\n'
    (client / "wrong.js").write_text(wrong)
    assert len(complaints(client)) == 1
