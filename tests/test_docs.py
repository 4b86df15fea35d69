"""What is printed runs: Python blocks of the README and the docs, page by page."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import discreet as dc
from discreet import registry

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import readability  # noqa: E402  (tools are no package)
import suppression_page  # noqa: E402
import tutorials  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [p for p in PAGES if "_build" not in p.parts]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


PEOPLE = "pid,region,sex\n" + "".join(f"{k},{'ABC'[k % 3]},{'fm'[k % 2]}\n" for k in range(300))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that pages take for granted: records and their code list."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    lists = '[region]\ncodes = ["A", "B", "C"]\n[sex]\ncodes = ["f", "m"]\n'
    (tmp_path / "codes.toml").write_text(lists)
    return tmp_path


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if blocks(p) and p not in tutorials.PAGES],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_the_examples_run_as_printed(page, folder, capsys):
    namespace = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page), 1):
        code = compile(block, f"{page.name}, block {number}", "exec")
        exec(code, namespace)
    printed = " ".join(capsys.readouterr().out.split())
    words = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for quote in re.findall(r"(?:^> .*\n)+", words, re.MULTILINE):
        said = " ".join(quote.replace("\n>", " ").removeprefix(">").split())
        assert said in printed, "a page quotes what its blocks do not print"


@pytest.mark.parametrize("page", tutorials.PAGES, ids=lambda p: p.stem)
def test_tutorials_run_and_have_notebooks_with_results(page, folder):
    tutorials.execute(page)  # the build of the pages below shows what is kept here
    made = tutorials.notebook(page)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code), "a tutorial shows what its blocks give"
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_statements_are_folded_by_the_page_and_tables_are_not():
    said = "Each figure was changed by a small amount. On average figures are neither too high, nor"
    lines = ["A Kronmark   2,781", said, "too low.", "- a point of a list", "B Westerlund   1,853"]
    assert tutorials._unfold(lines) == [lines[0], f"{said} too low.", *lines[3:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", readability.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_are_short(page):
    median, longest = readability.measure(page)
    assert median <= 18, f"half of the sentences have more than {median} words"
    assert longest <= 40, "see python tools/readability.py --long 40"


def headless_rows(text):
    """First rows of tables that no line of dashes follows: a page would show them as plain text."""
    plain = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    tables = re.findall(r"(?:^\|.*\n)+", plain, re.MULTILINE)
    return [rows.split("\n")[0] for rows in tables if not re.match(r".*\n\|[-:| ]+\n", rows)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_tables_of_pages_are_whole(page):
    assert not headless_rows(page.read_text(encoding="utf-8"))
    assert headless_rows("| a |\n|---|\n| 1 |\n\n| 2 |\n") == ["| 2 |"]


def test_a_long_sentence_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("It counts. It has " + "one more " * 20 + "word than `x = 1` allows.\n")
    assert readability.measure(page)[1] == 46


@pytest.mark.parametrize("name", sorted(registry.METHODS))
def test_every_method_has_a_page_with_the_same_headings(name):
    page = ROOT / "docs" / "methods" / f"{name}.md"
    assert page.exists(), f"docs/methods/{name}.md is missing"
    headings = {h.lower() for h in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)}
    assert {"idea", "formula", "promise", "when not to use it", "cost", "sources"} <= headings


@pytest.mark.parametrize("name", sorted(registry.FITTERS))
def test_every_fitter_is_documented(name):
    pages = " ".join(p.read_text() for p in (ROOT / "docs" / "methods").glob("*.md"))
    assert f"`{name}`" in pages, f"fitter {name} is described nowhere in docs/methods"


@pytest.mark.parametrize("name", sorted(registry.SYNTHESIZERS))
def test_every_synthesizer_is_documented(name):
    page = (ROOT / "docs" / "methods" / "synthesis.md").read_text()
    assert f"`{name}`" in page, f"synthesizer {name} is not described in docs/methods/synthesis.md"


def test_every_format_is_documented():
    page = (ROOT / "docs" / "formats.md").read_text()
    for name in registry.FORMATS:
        assert f"| `{name}` |" in page, f"format {name} is not described in docs/formats.md"


CITATION = re.compile(r"([A-Z][\w'’-]+)(?: et al\.)? \((\d{4}[ab]?)\)")


def test_every_citation_is_in_the_bibliography():
    lines = (ROOT / "docs" / "references.md").read_text(encoding="utf-8").splitlines()
    sources = [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "studies").rglob("*.py")]
    cited = {c for p in sources for c in CITATION.findall(p.read_text(encoding="utf-8"))}
    known = {(n, y) for n, y in cited if any(n in line and f"({y})" in line for line in lines)}
    assert cited
    assert cited == known, f"not in docs/references.md: {sorted(cited - known)}"


def test_every_dependency_has_its_line():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in project["dependencies"]:
        name = re.split(r"[\[<>=!~;]", requirement)[0]
        assert name in page, f"docs/dependencies.md does not say why {name} is there"
    for extra in project["optional-dependencies"]:
        assert f"`{extra}`" in page
    weighed = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    for extra in project["optional-dependencies"].keys() - {"dev", "ibis"}:
        assert f"discreet[{extra}]'`" in weighed, f"docs/installation.md leaves {extra} out"


NEEDED = {
    "private": [
        "methods/discrete-laplace",
        "methods/discrete-gaussian",
        "methods/laplace",
        "private_records",
        "walks",
    ],
    "synthesis": ["methods/synthesis", "methods/synthesis-hybrid"],
    "serve": ["tutorials/110_host_a_builder", "whole_run", "walks"],
    "plot": ["choose"],
    "postgres": ["databases"],
    "spark": ["cluster"],
}


@pytest.mark.parametrize("extra", NEEDED)
def test_pages_name_the_extra_that_they_need(extra):
    for page in NEEDED[extra]:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert re.search(rf"pip install '(?:discreet|\.)\[{extra}\]'", text), page


def test_the_readme_names_every_method_and_counts_right():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[`([\w-]+)`\]", readme, re.MULTILINE))
    assert rows == set(registry.METHODS)
    fitting = (ROOT / "docs" / "methods" / "fitting.md").read_text(encoding="utf-8")
    fitters = set(re.findall(r"^\| \[?`([\w-]+)`", fitting.split("## Formula")[0], re.MULTILINE))
    assert fitters == set(registry.FITTERS)
    assert len(registry.FITTERS) == 11
    assert "by eleven fitters" in readme
    measures = len(registry.MEASURES) + len(registry.RECORD_MEASURES)
    assert f"by {measures} measures" in readme


def test_the_page_on_the_command_line_is_its_own_help():
    program = (
        "import sys; sys.path.insert(0, 'tools'); import cli_page; print(cli_page.page(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shown = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert done.stdout == shown, "run: python tools/cli_page.py"


def test_figures_of_suppression_are_those_that_were_measured():
    for path, page in suppression_page.pages().items():
        assert path.read_text(encoding="utf-8") == page, "run: python tools/suppression_page.py"
    cases = json.loads(suppression_page.DATA.read_text(encoding="utf-8"))
    faults = [n for n, case in cases.items() if case["ours"]["short"] + case["ours"]["in_sums"]]
    assert not faults, "the page says that every interval of ours is proven"
    assert not [n for n, case in cases.items() if case["ours"].get("audited")]
    page = (ROOT / "docs" / "suppression_compared.md").read_text(encoding="utf-8")
    reasons = page.partition("<!-- measured: slower -->")[2].partition("<!-- end -->")[2]
    for name, case in cases.items():
        recorded, ours = case["recorded"]["cpu"], case["ours"]["cpu"]
        is_slow = ours > 60 or (recorded and ours > 3 * recorded)
        assert not is_slow or f"`{name.split()[0]}`" in reasons, f"{name}: no reason is given"


_NOT_ALL_HIDDEN = ("nothing", "drop-add 1 %")


def test_the_page_on_limits_repeats_what_was_measured():
    told = json.loads((ROOT / "docs" / "withstands.json").read_text(encoding="utf-8"))
    fixed = {(case["method"], case["every"] == 1): case for case in told["people"]}
    open_, few = fixed["nothing", True], fixed["nothing", False]
    lifts = {(r["method"], r["attack"]): r for r in told["census"]["lifts"]}
    page = " ".join((ROOT / "docs" / "limits.md").read_text(encoding="utf-8").split())
    assert (
        f"Of {open_['people']:,} people in block tables of the demo country {open_['fixed']:,}"
        in page
    )
    assert f"of {few['people']} people in small municipalities {few['fixed']}." in page
    assert f"leaves {fixed['drop-add 1 %', False]['fixed']} of the {few['people']}," in page
    assert not [c for c in told["people"] if c["fixed"] and c["method"] not in _NOT_ALL_HIDDEN]
    fit = {m: r for (m, name), r in lifts.items() if name == "refit-log-linear"}
    assert 0.6 < fit["nothing"]["success"] < 0.7
    assert 0.3 < fit["nothing"]["baseline"] < 0.37
    private = ("Laplace", "discrete Laplace", "discrete Gaussian")
    others = [r for m, r in fit.items() if m != "nothing" and not m.startswith(private)]
    assert all(0.25 < r["success"] < 0.6 for r in others)
    assert not [r for m, r in fit.items() if m.startswith(private) and r["low"] > 0]
    said = {m: r["success"] for (m, name), r in lifts.items() if name == "averages"}
    assert 0.75 < said["PRAM, ε = 2"] < 0.85
    assert all(0.4 < said[m] < 0.65 for m in ("small count rounding, base 3", "SAFE"))


def test_no_registry_host_or_lock_file_is_committed():
    assert "://" not in (ROOT / "constraints.txt").read_text()
    for lock in ("uv.lock", "poetry.lock", "package-lock.json", "Pipfile.lock"):
        assert not (ROOT / lock).exists()


def test_the_figures_on_choosing_noise_are_those_of_the_script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import noise_pictures

    page = (ROOT / "docs" / "choosing_noise.md").read_text(encoding="utf-8")
    often = noise_pictures.frequencies()
    found = re.findall(r"^\| \**(\d+), ([\d.]+), (\d)\** \|(.*)\|$", page, re.MULTILINE)
    assert len(found) == 5
    for D, V, js, shown in found:
        values = noise_pictures.figures(int(D), float(V), int(js), often).values()
        assert [float(x) for x in shown.split("|")] == [round(x, 3) for x in values]


REFERENCE = {p.stem: p.read_text(encoding="utf-8") for p in (ROOT / "docs/reference").glob("*.md")}


@pytest.mark.parametrize("name", sorted(set(dc.__all__) - {"__version__"}))
def test_every_public_name_is_in_the_reference_with_an_example(name):
    pages = [text for text in REFERENCE.values() if f"## {name}\n" in text]
    assert len(pages) == 1, f"docs/reference has no section '## {name}', or several"
    section = pages[0].split(f"## {name}\n")[1].split("\n## ")[0]
    assert "{eval-rst}" in section, f"the section on {name} shows no signature"
    assert "](../" in section, f"the section on {name} does not say which page explains it"
    assert f"dc.{name}" in "".join(BLOCK.findall(pages[0])), f"no example shows dc.{name}"
    assert f"`{name}`" in REFERENCE["index"], f"docs/reference/index.md does not name {name}"


def names_in_rooms(text):
    """Names below the front row that a page's code uses, such as `discreet.suppress.Pattern`."""
    code = "".join(BLOCK.findall(text)) + " ".join(re.findall(r"`([^`\n]+)`", text))
    found = {
        f"discreet.{name}" for name in re.findall(r"\bdc\.([a-z]\w*(?:\.[a-z]\w*)*\.\w+)", code)
    }
    imports = r"^from (discreet(?:\.\w+)*) import ([\w, ]+)"
    for room, names in re.findall(imports, code, re.MULTILINE):
        found |= {f"{room}.{name.strip()}" for name in names.split(",")}
    return found


def described_names():
    """What the reference shows a signature of, and the modules whose members it lists."""
    text = "".join(REFERENCE.values())
    own = {name.rpartition(".")[2] for name in re.findall(r":: (discreet[\w.]+)", text)}
    listed = re.findall(r":members: ([\w, ]+)", text)
    return own | {name.strip() for names in listed for name in names.split(",")}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_that_pages_use_are_in_the_reference(page):
    used = {name.rpartition(".")[2]: name for name in names_in_rooms(page.read_text("utf-8"))}
    own = {*dir(dc.rules), *dir(dc.inference), *dir(dc.errors)}  # all members are listed
    missing = {n for n in used if n not in described_names() | own | {"registry"}}
    assert not missing, f"docs/reference does not describe {sorted(used[n] for n in missing)}"


def test_a_name_without_reference_is_noticed():
    text = "```python\nfrom discreet.noise import lookup\ndc.suppress.Secret2()\n```\n"
    assert names_in_rooms(text) == {"discreet.noise.lookup", "discreet.suppress.Secret2"}
    assert not {"lookup", "Secret2"} & described_names()


def test_each_reader_has_a_path_of_three_to_six_pages():
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    paths = re.findall(r"^\| \*\*(I .+?)\*\* \|(.+)\|$", front, re.MULTILINE)
    assert len(paths) >= 7
    for reader, path in paths:
        pages = re.findall(r"\]\(([^)]+)\)", path)
        assert 3 <= len(pages) <= 6, f"{reader}: {len(pages)} pages"


def test_every_page_can_be_reached_from_the_front_page():
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = "".join(re.findall(r"```\{toctree\}.*?```", front, re.DOTALL))
    known = {"index", *re.findall(r"^([\w/]+)$", trees, re.MULTILINE)}
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem in known, f"docs/index.md does not lead to {page.name}"


def test_the_statement_on_accessibility_names_what_the_browser_looks_at():
    looked_at = (ROOT / "tests/browser/test_access.py").read_text(encoding="utf-8")
    pages = re.findall(r'^    "([\w ]+)": "/', looked_at, re.MULTILINE)
    page = (ROOT / "docs" / "accessibility.md").read_text(encoding="utf-8")
    assert len(pages) >= 12
    for name in pages:
        assert f"| {name} | no finding |" in page, (
            f"docs/accessibility.md does not say how {name} is"
        )
    tests = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests/browser").glob("*.py"))
    for name in re.findall(r"`(test_\w+)`", page):
        assert f"def {name}(" in tests, f"docs/accessibility.md names {name}, which is not there"


SOURCE = ROOT / "src" / "discreet"


def missing_paths(text):
    """Paths in the second column that are not there; a bare name lies beside the one before it."""
    missing = []
    for row in re.findall(r"^\|[^|]*\|([^|]*)\|$", text, re.MULTILINE):
        folder = SOURCE
        for name in re.findall(r"`([\w/.<> ]+(?:\.py|/))`", row):
            pattern = re.sub(r"<[^>]*>", "*", name).rstrip("/")
            found = [p for base in (folder, SOURCE, ROOT) for p in base.glob(pattern)]
            missing += [] if found else [name]
            folder = found[0].parent if found else folder
    return missing


def test_every_path_of_where_is_what_exists():
    text = (ROOT / "docs" / "where_is_what.md").read_text(encoding="utf-8")
    assert not missing_paths(text)
    assert missing_paths(text.replace("`registry.py`", "`registered.py`", 1)) == ["registered.py"]
    assert missing_paths(text.replace("`release.py`", "`releases.py`")) == ["releases.py"]


QUESTIONS = {
    "Where is the noise law of PRAM?": ("laws of noise", "noise/pram.py", "def pram"),
    "Who decides that a request is too large?": (
        "who decides that a request",
        "serve/policy/rules.py",
        "def check_size",
    ),
    "What happens to zeros?": ("what happens to zeros", "protect/cells.py", "def keys_with_zeros"),
    "Which sums are sensitive by p%?": (
        "which cells are sensitive",
        "rules/magnitudes.py",
        "class PPercent",
    ),
    "What proves that an interval is wide enough?": (
        "which other cells",
        "suppress/proofs.py",
        "class Proofs",
    ),
    "Where does a release leave, and who may stop it?": (
        "the one way from a table",
        "protect/publish.py",
        "def publish",
    ),
    "How is the noise of the next edition drawn?": (
        "how the next edition",
        "tables/editions.py",
        "class EditionMode",
    ),
    "Which SQL is DuckDB asked in?": ("the SQL", "records/query.py", "def compiled"),
    "When has a fit reached its tolerance?": ("a fit:", "solve/fit.py", "class Certificate"),
    "What does a budget of ε add up to?": ("what ε costs", "accounting.py", "class Total"),
}
"""What a newcomer asks: the row of the page, the file that it names, and what answers there."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_by_the_file_that_the_page_names(question):
    looked_for, file, answer = QUESTIONS[question]
    text = (ROOT / "docs" / "where_is_what.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| {looked_for}")]
    assert len(rows) == 1
    assert file.rpartition("/")[2] in rows[0]
    assert answer in (SOURCE / file).read_text(encoding="utf-8")


def test_what_the_page_names_in_brackets_is_in_its_file():
    text = (ROOT / "docs" / "where_is_what.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)` \(`(\w+)`", text)
    assert len(named) >= 2
    for file, name in named:
        assert f"def {name}(" in (SOURCE / file).read_text(encoding="utf-8")


def broken_links(folder):
    """Links within built pages whose file or anchor is missing."""
    texts = {p: p.read_text(encoding="utf-8") for p in folder.rglob("*.html")}
    anchors = {p: set(re.findall(r'\bid="([^"]+)"', text)) for p, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in map(html.unescape, re.findall(r'href="([^"]+)"', text)):
            file, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / file.split("?")[0]).resolve() if file else page
            if not target.exists() or (anchor and anchor not in anchors.get(target, {anchor})):
                broken.append((page.name, link))
    return broken


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"></p><a href="#x"></a><a href="#y"></a>')
    (tmp_path / "b.html").write_text('<a href="a.html#x"></a><a href="c.html"></a>')
    assert sorted(broken_links(tmp_path)) == [("a.html", "#y"), ("b.html", "c.html")]


@pytest.mark.slow
def test_the_documentation_is_built_and_loads_nothing_from_elsewhere(tmp_path):
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", ROOT / "docs", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "_static" / "tex-svg.js").exists(), "run `make system` first"
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', text)
        assert not loaded, f"{page.name} loads {loaded}"
        assert "AliasForwardRef" not in text, f"{page.name} shows how Sphinx holds a name"
        marks = (
            'role="heading">',
            "<pre>",
            "<dl>\n<dd>",
            '<div class="table-wrapper',
            "<p></p></th>",
        )
        barriers = [mark for mark in marks if mark in text]
        assert not barriers, f"{page.name}: keys do not reach, or nobody hears, {barriers}"
    assert not broken_links(tmp_path), "links of the built pages that lead nowhere"
