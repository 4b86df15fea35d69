"""The browser's modules are typed: TypeScript's checker reads their comments and finds no fault."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TSC = HERE.parents[1] / "browser" / "node_modules" / ".bin" / "tsc"


def complaints(project):
    if not TSC.exists():
        pytest.fail("The checker is missing: npm install --prefix tests/browser")
    done = subprocess.run([TSC, "-p", project], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_modules_have_no_fault_of_types():
    assert complaints(HERE / "jsconfig.json") == []


def test_a_fault_of_types_is_found(tmp_path):
    options = json.loads((HERE / "jsconfig.json").read_text(encoding="utf-8"))
    (tmp_path / "jsconfig.json").write_text(json.dumps({**options, "include": ["*.js"]}))
    shutil.copy(HERE.parents[2] / "src/discreet/serve/client/numbers.js", tmp_path)
    wrong = 'import { format_fixed } from "./numbers.js";\nexport const x = format_fixed("1", 2);\n'
    (tmp_path / "wrong.js").write_text(wrong)
    assert len(complaints(tmp_path / "jsconfig.json")) == 1
