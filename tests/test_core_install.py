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
HIDE = """
import sys
class Hide:
    def find_spec(self, name, *_):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""
SMALL = """
import discreet as dc
people = dc.demo.census(persons=300)
table = people.tabulate("sex*age[broad_age]")
release = table.protect("cell-key:D=5, V=3")
"""


def run(program, folder, hidden=HIDDEN):
    """Python without the packages of extras, or without some of them."""
    program = HIDE.format(hidden=hidden) + program
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder
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


FILES = """
import discreet as dc
from pathlib import Path
from discreet.publication import Choice, Publication

rows = {"place": list("aabbc") * 8, "age": [1, 2, 3, 4] * 10, "money": [1.5, 2.0] * 20}
lines = [",".join(map(str, row)) for row in zip(*rows.values())]
Path("rows.csv").write_text("\\n".join(["place,age,money", *lines]))
Path("other.csv").write_bytes("Straße;Wert\\nGärten;1,5\\nHöfe;2,5\\n".encode("cp1252"))
rows["id"] = list(range(40))
secret = dc.Secret.demo()
table = dc.open(rows, id="id", secret=secret).tabulate("place*age")
release = table.protect("cell-key:D=5, V=3")
table.save("table.parquet")
from discreet.parquet import write_parquet
from discreet.frames import Frame
write_parquet("rows.parquet", Frame(rows))
for again in (dc.read("table.parquet"), dc.open("rows.csv").tabulate("place*age"),
              dc.open("rows.parquet").tabulate("place*age")):
    assert (again.z == table.z).all()
assert dc.open("other.csv").tabulate("Straße").z[-1] == 2
for ending in ("parquet", "csv"):
    assert (dc.read(release.save(f"release.{ending}")).z == release.z).all()
for ending in ("json", "px", "sdmx.csv", "csv", "parquet", "html"):
    assert release.write(f"written.{ending}").stat().st_size
release.fit("least-squares").fit("non-negative")
once = Publication("place*age", Choice("safe", {}))
assert len(once.run(once.tabulate(dc.open(rows)).with_secret(secret)).z) == len(table.z)
"""
LIBRARIES = (
    FILES
    + """
import pandas, polars
codes = pandas.DataFrame(rows).convert_dtypes().astype({"place": "category"})
frames = [pandas.DataFrame(rows), codes, polars.DataFrame(rows), polars.DataFrame(rows).lazy()]
for frame in frames:
    assert (dc.open(frame).tabulate("place*age").z == table.z).all()
assert release.to_pandas()["place"].tolist() == release.to_polars()["place"].to_list()
assert polars.DataFrame(release).shape == release.to_pandas().shape
"""
)
COMMANDS = (
    FILES
    + """
import shlex, sys
from discreet.cli import main
for line in (
    "discreet check data rows.csv --by place*age",
    "discreet tabulate rows.csv --by place*age --out t.parquet",
    "discreet check install",
):
    sys.argv = shlex.split(line)
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
"""
)
BUILDER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from discreet.serve import AccountsConfig, Office, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import small_site
client = Client(make_app(small_site(), Office(SiteConfig(accounts=AccountsConfig(rate=0)))))
for name in ("once", "live"):
    for ending, sign in (("", "<table"), (".csv", '"region"'), (".parquet", "PAR1")):
        answer = client.get(f"/d/{{name}}/table{{ending}}?rows=region&columns=sex")
        assert (answer.status_code, sign in answer.text) == (200, True), (name, ending)
"""
PROGRAMS = {"files": FILES, "libraries": LIBRARIES, "commands": COMMANDS, "builder": BUILDER}


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_but_its_extra_runs_without_pyarrow(name, tmp_path):
    code, _, errors = run(PROGRAMS[name], tmp_path, ["pyarrow"])
    assert code == 0, errors


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
