"""Batch files of τ-ARGUS: every command, what cannot be read, and its own recorded outputs."""

import contextlib
import csv
import json
from collections import Counter
from pathlib import Path

import pytest

import discreet as dc
from discreet.cli import main
from discreet.errors import DataError
from discreet.facade.argus import by_cell, run_batch
from discreet.suppress.argus.batch import KNOWN, TableSpec, read_batch
from discreet.suppress.argus.jobs import make_table
from discreet.suppress.argus.safety import TableJob

HERE = Path(__file__).resolve()
BESIDE = [place / "shared" / "data" for place in HERE.parents]
SHARED = next((folder for folder in BESIDE if folder.exists()), BESIDE[3])
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
RECORDS = "".join(
    f"{region}{act} H{k % 7}{value:>5}{'1' if k == 3 else '0'} 2\n"
    for k, (region, act, value) in enumerate(
        (r, a, 10 + (7 * i + 5 * j + 11 * m) % 40)
        for i, r in enumerate(["n1", "n2", "s1", "s2"])
        for j, a in enumerate("ABC")
        for m in range(4)
    )
)
BIG = "n1A H9  8000 2\n"
METADATA = """\
Region 1 2 99
  <RECODEABLE>
  <TOTCODE> "Total"
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
Act 3 1 "9"
  <RECODEABLE>
Group 5 2
  <HOLDING>
Value 7 5
  <NUMERIC>
  <DECIMALS> 1
Ask 12 1
  <REQUEST> "1" "2"
W 14 1
  <WEIGHT>
"""
HEAD = '<OPENMICRODATA> "r.asc"\n<OPENMETADATA> "r.rda"\n'
TABLE = '<SPECIFYTABLE> "Region""Act"|"Value"||\n'
COUNTS = '<SPECIFYTABLE> "Region""Act"|"<freq>"||\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "r.asc").write_text(RECORDS + BIG)
    (tmp_path / "r.rda").write_text(METADATA)
    (tmp_path / "region.hrc").write_text("N\n@n1\n@n2\nS\n@s1\n@s2\n")
    return tmp_path


def run(folder, text, **options):
    (folder / "job.arb").write_text(text)
    return run_batch(folder / "job.arb", **options)


def cells(path):
    return {tuple(row[:2]): row[2:] for row in rows_of(path)}


def rows_of(path):
    return list(csv.reader(path.read_text().splitlines()))


def test_a_job_hides_and_tells_no_kinds_unless_asked(folder):
    job = f"{HEAD}{TABLE}<SAFETYRULE> P(10,1)\n<READMICRODATA>\n<SUPPRESS> MOD(1,5)\n"
    write = '<WRITETABLE> (1,3,AS+FL+,"out.csv")\n<WRITETABLE> (1,5,,"out.tab")\n'
    done = run(folder, job + write)
    public = cells(folder / "out.csv")
    assert public["n1", "A"] == ["x", "c"]
    assert {row[1] for row in public.values()} == {"1", "c"}
    assert "not shown" in (folder / "out.csv.statement.txt").read_text()
    kinds = cells(run(folder, job + write, show_kinds=True).files[0])
    assert kinds["n1", "A"] == ["x", "3"]
    hidden = {cell for cell, row in public.items() if row[0] == "x"}
    assert {c for c, row in kinds.items() if row[1] == "11"} == hidden - {("n1", "A")} != set()
    assert (folder / "out.csv").stat().st_mode & 0o777 == 0o600
    pattern = done.tables[1].pattern
    assert (pattern.n_primary, pattern.suppressed.sum()) == (1, len(hidden))
    again = dc.argus.read_table(folder / "out.tab", folder / "out.rda")
    assert Counter(again.status.tolist())["U"] == 1
    assert Counter(again.status.tolist())["M"] == len(hidden) - 1


def test_every_type_of_output(folder):
    writes = "".join(f'<WRITETABLE> (1,{kind},AS+SE+,"t{kind}.txt")\n' for kind in (1, 2, 4, 6))
    job = f"{HEAD}{TABLE}<SAFETYRULE> NK(1,80)\n<READMICRODATA>\n<SUPPRESS> GH(1,0,0,1)\n{writes}"
    run(folder, job)
    crossed = rows_of(folder / "t1.txt")
    assert crossed[1] == ["Region", "Total", "A", "B", "C"]
    assert crossed[2][0] == "Total"
    assert crossed[4][:1] + crossed[4][2:3] == ["n1", "x"]
    assert (folder / "t2.txt").read_text().startswith('"Region","Act","Value","Status"\n"Total","T')
    assert "n1;A;x;c" in (folder / "t4.txt").read_text()
    lines = (folder / "t6.txt").read_text().splitlines()
    n = int(lines[1])
    assert n == 28
    values = [float(line.split()[1]) for line in lines[2 : 2 + n]]
    for equation in lines[3 + n :]:
        terms = equation.partition(":")[2].split()
        pairs = zip(terms[::2], terms[1::2], strict=True)
        assert sum(values[int(k)] * int(sign.strip("()")) for k, sign in pairs) == pytest.approx(0)
    assert (folder / "t6.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("rules", "cell"),
    [
        ("P(0,0)|P(0,0)|P(10,1)", ("n1", "A")),  # holdings
        ("NK(1,80)|NK(0,0)", ("n1", "A")),
        ("PQ(10,100,1)", ("n1", "A")),
        ("P(10,2)|WGT(1)", ("n1", "A")),
        ("REQ(30,60,10)|FREQ(1,5)", ("n1", "A")),
    ],
)
def test_safety_rules_are_ours(folder, rules, cell):
    records = RECORDS if "REQ" in rules else RECORDS + BIG
    (folder / "r.asc").write_text(records)
    done = run(folder, f"{HEAD}{TABLE}<SAFETYRULE> {rules}\n<READMICRODATA>\n<SUPPRESS> NET(1)\n")
    pattern = done.tables[1].pattern
    assert pattern.cells(pattern.primary) == [dict(zip(["Region", "Act"], cell, strict=True))]


def test_counts_zero_missing_and_lists(folder):
    job = f"{HEAD}{COUNTS}<SAFETYRULE> FREQ(3,10)\n<READMICRODATA>\n<SUPPRESS> OPT(1,1)\n"
    (folder / "r.asc").write_text(RECORDS + "n1" + "9 H900010" + "0 2\n")
    pattern = run(folder, job).tables[1].pattern
    assert pattern.z[pattern.primary].max() == 1
    safe = job.replace("FREQ(3,10)", "FREQ(3,10)|MIS(1)")
    (folder / "cells.hst").write_text("s1;B;u\nn2;A;p\nzz;A;u\n")
    listed = safe.replace("<SUPPRESS>", '<APRIORI> "cells.hst",1,";",1,0\n<SUPPRESS>')
    pattern = run(folder, listed).tables[1].pattern
    assert pattern.cells(pattern.primary) == [{"Region": "s1", "Act": "B"}]
    assert not pattern.suppressed[pattern.position({"Region": "n2", "Act": "A"})]
    with pytest.raises(DataError, match="zz"):
        run(folder, listed.replace('";",1,0', '";",0,0'))
    zeros = f"{HEAD}{TABLE}<SAFETYRULE> ZERO(5)\n<READMICRODATA>\n<SUPPRESS> MOD(1)\n"
    (folder / "r.asc").write_text(RECORDS + "n1" + "9 H9    00 2\n")
    pattern = run(folder, zeros).tables[1].pattern
    assert pattern.primary[pattern.position({"Region": "n1", "Act": "9"})]


def test_recodings(folder):
    (folder / "close.grc").write_text("<TREERECODE>\nS\n")
    (folder / "group.grc").write_text("AB: A-B\n")
    rest = "<SUPPRESS> MOD(1)\n"
    recodes = '<RECODE> 1,"Region","close.grc"\n<RECODE> 1,"Act","group.grc"\n'
    job = f"{HEAD}{TABLE}<SAFETYRULE> P(10,1)\n<READMICRODATA>\n"
    design = run(folder, job + recodes + rest).tables[1].release.design
    assert design.axes[0].leaves == ("n1", "n2", "S")
    assert design.axes[1].leaves == ("AB", "C")
    level = run(folder, job + "<RECODE> 1, Region, 1\n" + rest).tables[1].release.design
    assert level.axes[0].leaves == ("N", "S")


def test_linked_tables_are_protected_at_once(folder):
    (folder / "r.rda").write_text(
        METADATA.replace('Ask 12 1\n  <REQUEST> "1" "2"', "Ask 12 1\n  <RECODEABLE>")
    )
    other = TABLE.replace('"Act"', '"Ask"')
    rules = "<SAFETYRULE> P(10,1)\n"
    done = run(
        folder,
        f"{HEAD}{TABLE}{rules}{other}{rules}<READMICRODATA>\n<SUPPRESS> MOD(0)\n"
        '<WRITETABLE> (1,3,AS+,"a.csv")\n<WRITETABLE> (2,3,AS+,"b.csv")\n',
    )
    one, two = cells(folder / "a.csv"), cells(folder / "b.csv")
    assert one["n1", "Total"] == two["n1", "Total"]
    assert done.tables[1] is done.tables[2]
    assert ("n1", "1") in two


def test_linked_responses_are_an_equation_beside_the_table(folder):
    (folder / "r.rda").write_text(
        '<SEPARATOR> ","\nRegion\n<RECODEABLE>\nAct\n<RECODEABLE>\n'
        "turnover\n<NUMERIC>\nhome\n<NUMERIC>\nexport\n<NUMERIC>\n"
    )
    rows = [("xyz"[k % 3], "AB"[k % 2], 20 + k % 7, 5 + k % 3) for k in range(60)]
    rows.append(("x", "A", 5, 900))
    text = "".join(f"{r},{a},{home + export},{home},{export}\n" for r, a, home, export in rows)
    (folder / "r.asc").write_text(text)
    tables = "".join(
        f'<SPECIFYTABLE> "Region""Act"|"{name}"||\n<SAFETYRULE> P(10,1)\n'
        for name in ("turnover", "home", "export")
    )
    writes = "".join(f'<WRITETABLE> ({k},3,AS+,"t{k}.csv")\n' for k in (1, 2, 3))
    run(folder, f"{HEAD}{tables}<READMICRODATA>\n<SUPPRESS> MOD(0)\n{writes}")
    turnover, home, export = (cells(folder / f"t{k}.csv") for k in (1, 2, 3))
    assert export["x", "A"][0] == "x"
    # The export would be turnover less home, if both were shown.
    assert "x" in (turnover["x", "A"][0], home["x", "A"][0])
    assert float(turnover["Total", "Total"][0]) == sum(
        float(t["Total", "Total"][0]) for t in (home, export)
    )
    broken = text.replace(",905,", ",906,")
    assert broken != text
    (folder / "r.asc").write_text(broken)
    with pytest.raises(DataError, match="none of them is the sum of the others"):
        run(folder, f"{HEAD}{tables}<READMICRODATA>\n<SUPPRESS> MOD(0)\n")


def test_rounding_and_adjustment_draw_from_the_secret(folder):
    job = f"{HEAD}{COUNTS}<SAFETYRULE> FREQ(3,10)\n<READMICRODATA>\n<SUPPRESS> RND(1,5)\n"
    write = '<WRITETABLE> (1,2,AS-,"out.csv")\n'
    secret = dc.Secret.from_file(folder / "keys.secret", create=True)
    run(folder, job + write, secret=secret)
    body = rows_of(folder / "out.csv")[1:]
    assert all(int(row[2]) % 5 == 0 for row in body)
    with pytest.raises(DataError, match="line 6: controlled rounding is for counts"):
        run(folder, job.replace("<freq>", "Value"), secret=secret)
    cta = job.replace("RND(1,5)", "CTA(1)").replace("<freq>", "Value").replace("FREQ(3,10)", "P(9)")
    done = run(folder, cta, secret=secret)
    assert not done.tables[1].release.hidden.any()


WRONG = {
    r"line 5: no command; and 495 more\)": "anna,17,4100\n" * 500,
    "the batch has no commands": "// x\n",
    r"unknown commands \(line 2: <SUPRESS>; line 3: no command\). Known: <OPENMICRODATA>": (
        "// x\n<SUPRESS> MOD(1)\nhello\n"
    ),
    "line 3: safety rule 'X' is not known": f"{HEAD}<SAFETYRULE> X(3)\n",
    "line 3: 'P' cannot be read": f"{HEAD}<SAFETYRULE> P\n",
    "line 3: way 'HITAS' is not known": f"{HEAD}<SUPPRESS> HITAS(1)\n",
    "line 3: there are 0 tables, no 2": f"{HEAD}<SUPPRESS> MOD(2)\n",
    "line 1: name the data first": TABLE,
    "line 3: the cost variable is the number -1": HEAD + TABLE.replace("||", '||"-1"'),
    "line 3: nothing says which cells are unsafe": f"{HEAD}{TABLE}<SUPPRESS> MOD(1)\n",
    "line 4: the rules need one column with <WEIGHT>": (
        f"{HEAD}{TABLE}<SAFETYRULE> P(10,1)|WGT(1)\n<SUPPRESS> MOD(1)\n"
    ),
    "line 4: table 1 is not spanned by 'Ask'": f'{HEAD}{TABLE}<RECODE> 1,"Ask",1\n',
    "line 4: table 1 is not protected": f'{HEAD}{TABLE}<WRITETABLE> (1,3,AS+,"x.csv")\n',
    "line 4: .* is written as <WRITETABLE>": f'{HEAD}{TABLE}<WRITETABLE> (1,9,AS+,"x.csv")\n',
    "unknown column of the metadata 'Regin'": (
        f"{HEAD}{TABLE}<SAFETYRULE> P(10,1)\n<SUPPRESS> MOD(1)\n".replace("Region", "Regin")
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_told_by_line_before_anything_is_written(folder, message):
    if "WEIGHT" in message:
        (folder / "r.rda").write_text(METADATA.replace("<WEIGHT>", "<NUMERIC>"))
    before = set(folder.iterdir())
    with pytest.raises(dc.DiscreetError, match=message):
        run(folder, WRONG[message])
    assert set(folder.iterdir()) - before <= {folder / "job.arb"}


def test_the_command_prints_what_is_hidden_and_why(folder, capsys):
    (folder / "job.arb").write_text(
        f'<LOGBOOK> "log.txt"\n{HEAD}{TABLE}<SAFETYRULE> P(10,1)\n<READMICRODATA>\n'
        "<SUPPRESS> MOD(1)\n"
    )
    with contextlib.chdir(folder), pytest.raises(SystemExit) as stop:
        main(["argus", "job.arb"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "MOD (modular): suppressed by intervals" in shown
    assert "it would give the sensitive Act=A, Region=n1, as the rest of" in shown
    assert "1 primary" in (folder / "log.txt").read_text()
    with contextlib.chdir(folder), pytest.raises(SystemExit):
        main(["argus", "job.arb", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["tables"]["1"]["levels"]["all cells"]["primary"] == 1
    log = f'<LOGBOOK> "log.txt"\n{HEAD}{TABLE}<SAFETYRULE> P(10,1)\n<SUPPRESS> MOD(1)\n'
    (folder / "region.hrc").write_text("N\n@n1\nS\n@n1\n")
    with pytest.raises(DataError, match=r"line 6 of job.arb: .*'n1' stands under 'N' and under"):
        run(folder, log)
    assert "line 6 of job.arb" in (folder / "log.txt").read_text()
    (folder / "job.arb").write_text("<HELP>\n")
    with pytest.raises(SystemExit) as stop:
        main(["argus", str(folder / "job.arb")])
    assert stop.value.code == 2
    assert "line 1: <HELP>" in capsys.readouterr().err


@needs_shared
def test_the_shipped_files_are_read():
    words = Counter()
    for path in sorted((SHARED / "formats").glob("*.arb")):
        words.update(type(step).__name__ for step in read_batch(path))
    assert words["TableSpec"] == 4
    assert words["SafetyRule"] == 3
    for path in (SHARED / "formats").glob("*.rda.txt"):
        about = dc.argus.read_metadata(path)
        assert dc.argus.read_metadata(about.text) == about
    assert len(KNOWN) == 16


@needs_shared
def test_a_finished_table_of_tau_argus_is_suppressed(tmp_path):
    formats = SHARED / "formats"
    for name, source in {
        "tabdata_ex1.tab": "suppress_and_write_table.tab",
        "metadata_ex1.rda": "suppress_and_write_metadata.rda.txt",
        "job.arb": "suppress_and_write.arb",
    }.items():
        (tmp_path / name).write_text((formats / source).read_text())
    (tmp_path / "hier_region_ex1.hrc").write_text("A\nB\nC\nD\n")
    (tmp_path / "hier_gender_ex1.hrc").write_text("male\nfemale\n")
    done = run_batch(tmp_path / "job.arb")
    pattern = done.tables[1].pattern
    assert pattern.cells(pattern.primary) == [{"region": "A", "gender": "female"}]
    assert pattern.n_secondary == 3
    assert cells(tmp_path / "tabout_ex1.txt")["A", "female"] == ["x", "c"]


@needs_shared
def test_a_table_with_statuses_levels_and_costs_is_suppressed(tmp_path):
    body = (SHARED / "business" / "tauargus_pp.csv").read_text().partition("\n")[2]
    (tmp_path / "pp.tab").write_text(body.replace(",", ";"))
    for name, source in {
        "pp.rda": "tableinput_metadata.rda.txt",
        "region2.hrc": "region2.hrc",
    }.items():
        (tmp_path / name).write_text((SHARED / "formats" / source).read_text())
    job = (SHARED / "formats" / "tableinput.arb").read_text()
    done = run(tmp_path, job + '<SUPPRESS> MOD(1,1)\n<WRITETABLE> (1,5,,"out.tab")\n')
    pattern = done.tables[1].pattern
    assert pattern.n_primary == body.count(",U,") == 9
    found = dc.audit(pattern, workers=1, lone="none")  # the file does not say who is alone
    assert found.is_clean
    again = dc.argus.read_table(tmp_path / "out.tab", tmp_path / "out.rda")
    assert (again.status == "U").sum() == 9
    assert again.metadata.variable("Region").options["DISTANCE"] == ("2", "4", "4", "4", "4")
    assert again.metadata.variable("Var2").decimals == 2


ENTERPRISES = """\
<SEPARATOR> ","
h_id
  <HOLDING>
section
act "00"
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "nace_divisions.hrc"
product
  <RECODEABLE>
macro
region
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "KohStatReg.hrc"
mun_parent
mun
turnover
  <NUMERIC>
  <DECIMALS> 2
"""
AS_RECORDED = "P(0,0)|P(0,0)|P(10,1)|ZERO(10)|MIS(1)|MAN(10)"


@pytest.fixture
def enterprises(tmp_path):
    """The records of τ-ARGUS' own example, as its jobs read them."""
    business = SHARED / "business"
    body = (business / "example_enterprise.csv").read_text().partition("\n")[2]
    (tmp_path / "e.asc").write_text(body)
    (tmp_path / "e.rda").write_text(ENTERPRISES)
    for name in ("nace_divisions.hrc", "KohStatReg.hrc"):
        (tmp_path / name).write_text((business / name).read_text())
    return tmp_path


def recorded(which):
    return dict(list(cells(SHARED / "business" / f"tauargus_test_{which}.csv").items())[1:])


def with_status(found, status):
    return {cell for cell, row in found.items() if row[1] == status}


@needs_shared
def test_a_job_has_the_primaries_and_values_that_tau_argus_recorded(enterprises):
    job = (
        '<OPENMICRODATA> "e.asc"\n<SPECIFYTABLE> "act""product"|"turnover"||\n'
        f"<SAFETYRULE> {AS_RECORDED}\n<READMICRODATA>\n<SUPPRESS> GH(1,0,0,1)\n"
        '<WRITETABLE> (1,3,AS+,"ours.csv")\n'
    )
    run(enterprises, job, show_kinds=True)
    ours, theirs = cells(enterprises / "ours.csv"), recorded("1")
    assert ours.keys() == theirs.keys()
    for status, n in (("3", 283), ("14", 694)):
        assert with_status(ours, status) == with_status(theirs, status)
        assert len(with_status(ours, status)) == n
    assert all(value in ("x", theirs[cell][0]) for cell, (value, _) in ours.items())
    assert len(with_status(ours, "11")) < len(with_status(theirs, "11")) == 133
    secondary, both = with_status(ours, "11"), with_status(ours, "11") & with_status(theirs, "11")
    page = (HERE.parents[3] / "docs" / "coming_from_tau_argus.md").read_text(encoding="utf-8")
    row = f"| `GH`, activity × product | 1,665 | 283 | 133 | {len(secondary)} | {len(both)} |"
    assert row in page


@needs_shared
def test_linked_tables_have_the_primaries_that_tau_argus_recorded(enterprises):
    jobs = [
        TableJob(
            TableSpec(1, ("act", name), "turnover"),
            enterprises / "e.asc",
            True,
            enterprises / "e.rda",
            read_batch(f"<SAFETYRULE> {AS_RECORDED}\n")[0],
        )
        for name in ("product", "region")
    ]
    made = make_table(jobs)
    primary = dc.Suppress(**made.arguments).primary(made.table).primary
    for job, which in zip(jobs, ("2a", "2b"), strict=True):
        ours = by_cell(made.table.design, primary, job.spec)
        assert {cell for cell, found in ours.items() if found} == with_status(recorded(which), "3")
