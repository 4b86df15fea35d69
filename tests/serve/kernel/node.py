"""The browser's modules, run by node beside the Python code that they stand in for."""

import json
import math
import shutil
import subprocess
from importlib.resources import files

import pytest

CLIENT = files("discreet.serve") / "client"
_PROGRAM = """
import { readFileSync } from "node:fs";
const client = (name) => import("file://%s/" + name);
const data = JSON.parse(readFileSync(0, "utf-8"), (_, v) => v && v.float ? Number(v.float) : v);
const run = async () => { %s };
run().then((found) => process.stdout.write(JSON.stringify(found)));
"""


def run_node(body, data=None, *, folder=CLIENT):
    """What a piece of JavaScript returns for data; `client(name)` loads a module."""
    node = shutil.which("node")
    if node is None:
        pytest.fail("The tests of the browser's modules need node: sudo apt-get install nodejs")
    done = subprocess.run(
        [node, "--input-type=module", "-e", _PROGRAM % (folder, body)],
        input=json.dumps(plain(data), allow_nan=False),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def plain(data):
    """Data that JSON can hold: numbers that are not finite, and negative zeros, by their names."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, float) and (not math.isfinite(data) or data == 0):
        return {
            "float": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(
                str(data), str(data)
            )
        }
    return data
