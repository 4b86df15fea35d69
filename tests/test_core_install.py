"""What runs without any extra, and the line that names each extra which is missing.

Packages of extras are hidden in a process of its own, where they can be installed or not.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HIDDEN = ["opendp", "formulaic", "pandas", "polars", "pyarrow"]
HIDDEN += ["fastapi", "uvicorn", "starlette"]
HIDDEN += ["sqlalchemy", "ibis", "sqlglot", "psycopg", "pyspark", "pysdmx"]
HIDDEN += ["altair", "vl_convert", "xlsxwriter", "pyreadstat", "python_calamine", "cupy"]
HIDE = f"""
import sys
class Hide:
    def find_spec(self, name, *_):
        if name.split(".")[0] in {HIDDEN!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""
SMALL = """
import discreet as dc
people = dc.demo.census(persons=300)
table = people.tabulate("sex*age[broad_age]")
release = table.protect("cell-key:D=5, V=3")
"""


def run(program, folder):
    """Python without the packages of extras."""
    done = subprocess.run(
        [sys.executable, "-c", HIDE + program], capture_output=True, text=True, cwd=folder
    )
    return done.returncode, done.stdout, done.stderr


def commands_of(readme):
    """The shell lines of the README between `discreet demo --no-serve` and the next fence."""
    block = readme.split("discreet demo --no-serve")[1].split("```")[0]
    lines = f"discreet demo --no-serve{block}".replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("discreet ")]


def test_the_examples_of_the_readme_run_on_the_core(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ten_lines = readme.split("## Ten lines")[1].split("```python")[1].split("```")[0]
    shell = commands_of(readme)
    assert len(shell) == 3
    program = (
        ten_lines.replace("100_000", "2_000")
        + "import shlex; from discreet.cli import main\n"
        + f"for line in {shell!r}:\n"
        + "    line = line.replace('--no-serve', '--no-serve --persons 2000')\n"
        + "    sys.argv = shlex.split(line.replace('census-100000', 'census-2000'))\n"
        + "    try:\n        main()\n"
        + "    except SystemExit as end:\n        assert not end.code, line\n"
    )
    code, said, errors = run(program, tmp_path)
    assert code == 0, errors
    assert "Figures may not add up" in said
    assert (tmp_path / "release.csv").read_text(encoding="utf-8").count("\n") > 10


MISSING = {
    "arrow": "release.to_arrow()",
    "arrow ": "dc.open('s3://bucket/people.parquet')",
    "arrow  ": "open('a.arrow', 'w').close(); dc.open('a.arrow')",
    "arrow   ": "open('a.csv.zst', 'wb').write(bytes.fromhex('28b52ffd')); dc.open('a.csv.zst')",
    "private": "table.protect('discrete-laplace:epsilon=1')",
    "private ": "table.protect('discrete-gaussian:rho=0.1')",
    "private  ": "dc.accounting.rho_for(1.0, 1e-6)",
    "synthesis": "dc.synthesize(people, 'age ~ sex', method='ipso')",
    "xlsx": "release.write('table.xlsx')",
    "files": "open('a.xlsx', 'w').close(); dc.open('a.xlsx')",
    "files ": "open('a.sav', 'w').close(); dc.open('a.sav')",
    "plot": "dc.assessment.plots.deviations(table, release)",
    "postgres": "dc.open('postgresql:///census?table=people')",
    "spark": "dc.open('spark://people')",
    "gpu": "release.fit(dc.LogLinear(device='gpu'))",
    "serve": "import discreet.serve as s; s.require_web()",
    "pandas": "release.to_pandas()",
    "polars": "release.to_polars()",
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    program = SMALL + "import json\nsaid = {}\n"
    for name, call in MISSING.items():
        program += (
            f"try:\n    {call.replace('; ', chr(10) + '    ')}\n"
            "except dc.errors.MissingDependencyError as error:\n"
            f"    said[{name!r}] = str(error)\n"
            "except Exception as error:\n"
            f"    said[{name!r}] = f'{{type(error).__name__}}: {{error}}'\n"
        )
    code, said, errors = run(program + "print(json.dumps(said))", tmp_path_factory.mktemp("core"))
    assert code == 0, errors
    return json.loads(said)


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_package_is_named_in_one_line_with_its_command(refusals, name):
    extra = name.strip()
    wanted = extra if extra in ("pandas", "polars") else f"'discreet[{extra}]'"
    line = refusals.get(name, "nothing was refused")
    assert line.endswith(f": `pip install {wanted}`."), line
    assert "\n" not in line


def test_a_private_release_without_opendp_costs_nothing(tmp_path):
    program = SMALL + (
        "ledger = dc.Ledger('book.ledger')\n"
        "table = people.tabulate('sex')\n"
        "try:\n    table.protect('discrete-laplace:epsilon=1', ledger=ledger)\n"
        "except dc.errors.MissingDependencyError:\n"
        "    print(ledger.spent(table.data_set.name).entries)\n"
    )
    code, said, errors = run(program, tmp_path)
    assert (code, said.strip()) == (0, "0"), errors


def test_import_and_first_table_are_quick(tmp_path):
    """Processor seconds, twice the promise: other tests run beside this one."""
    program = (
        "import time; t = time.process_time(); import discreet as dc; a = time.process_time() - t\n"
        "dc.open({'sex': ['f', 'm'] * 50, 'age': list('abcde') * 20}).tabulate('sex*age')\n"
        "print(a, time.process_time() - t)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    load, first = map(float, done.stdout.split())
    assert load < 0.3
    assert first < 3.0
