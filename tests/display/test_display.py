"""What notebooks show: whole, escaped, the same for every hidden truth, and readable as text."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import discreet as dc
from discreet.attacks import play
from discreet.display import Display, Grid, Heading, align_columns, render
from discreet.rules import Threshold
from discreet.suppress import describe_pattern
from discreet.tables import CellStatus
from tests.attacks.victims import flat_axes, keyed_table
from tests.protect.tables import SECRET

NASTY = "<img src=x onerror=alert(1)>&\"'</td>"
TREE = {"Land": {"North": {"N1": ["N1a", "N1b"], "N2": []}, "South": ["S1", "S2"]}}
LEAVES = ("N1a", "N1b", "N2", "S1", "S2")
HIDES = dc.Suppress([Threshold(24)])
METHODS = ["cell-key:D=5, V=3, js=2, threshold=22", "drop-add", HIDES, "safe"]


class Cells(HTMLParser):
    """Tags, and the texts of cells by row; figures of rows and columns alike."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.rows, self.texts = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.texts.append(data)
        if self.rows and self.rows[-1] and self.lasttag in ("td", "th", "label", "input"):
            self.rows[-1][-1] += data.strip()


def cells_of(thing):
    return [row for row in Cells(thing._repr_html_()).rows if row]


def people(names=None, seed=3):
    rng = np.random.default_rng(seed)
    rows = {"id": list(range(300)), "area": rng.choice(LEAVES, 300).tolist()}
    rows["age"] = rng.choice(["0-14", "15-64", "65+"], 300).tolist()
    tree = dc.Hierarchy.from_dict(TREE)
    trees = {
        "area": replace(tree, labels=names or {}),
        "age": dc.Hierarchy.flat(["0-14", "15-64", "65+"]),
    }
    return dc.open(rows, id="id", secret=SECRET, hierarchies=trees, name="people")


@pytest.fixture(scope="module")
def table():
    return people().tabulate("area*age")


def test_a_table_is_shown_as_crossed_trees(table):
    head, total, north, n1, *_ = cells_of(table)
    assert head == ["area \\ age", "Total", "0-14", "15-64", "65+"]
    assert [row[0] for row in cells_of(table)][1:] == [
        "Land", "North", "N1", "N1a", "N1b", "N2", "South", "S1", "S2",
    ]  # fmt: skip
    for row in cells_of(table)[1:]:
        for code, figure in zip(head[1:], row[1:], strict=True):
            place = table.design.position({"area": row[0], "age": code})
            assert figure == f"{table.z[place]:,}"
    assert total[1] == "300"
    assert int(north[1]) >= int(n1[1])


def test_a_statement_shows_everything_that_it_says(table):
    statement = table.protect("cell-key").statement
    page, printed = statement._repr_html_(), " ".join(str(statement).split())
    for heading in ("What was done", "What holds", "What is not protected"):
        assert heading in page
        assert heading in printed
    for text in (statement.plain, *(s.text for s in statement.sentences)):
        assert text in printed
        assert html.escape(text) in page
    assert max(map(len, str(statement).splitlines())) <= 100


def test_levels_fold_by_what_lies_above_them(table):
    page = table._repr_html_()
    rows = [attrs.get("class", "") for tag, attrs in Cells(page).tags if tag == "tr"]
    assert rows[1:6] == ["", "ru0", "ru0 ru1", "ru0 ru1 ru2", "ru0 ru1 ru2"]
    assert ".discreet table:has(input.r1:not(:checked)) .ru1" in page
    assert "<script" not in page


def test_variables_in_rows_make_one_tree():
    design = dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b*c")
    table = dc.Table.from_inner(design, np.arange(8))
    names = [row[0] for row in cells_of(table)]
    assert names == ["a × b \\ c", "Total", "1", "2", "1", "1", "2", "2", "1", "2"]
    assert cells_of(table)[1][1:] == ["28", "12", "16"]
    assert cells_of(table)[6][1:] == ["5", "2", "3"]  # a = 1, b = 2


def test_cells_that_are_not_published_are_blank():
    rows = {"a": ["x", "x", "y"], "b": ["u", "v", "u"]}
    table = dc.open(rows, name="three").tabulate("a*b", support="occurring")
    assert ["y", "1", "1", ""] in cells_of(table)


def test_the_deepest_levels_of_a_large_table_are_left_out():
    design = dc.Design.product({"a": 300, "b": 60, "c": 30}, "a*b*c")
    page = dc.Table.from_inner(design, np.ones(540_000, dtype=int))._repr_html_()
    assert len(page) < 1_000_000
    shown = int(re.search(r"Not shown here: ([\d,]+) cells", page)[1].replace(",", ""))
    figures = sum(len([f for f in row[1:] if f]) for row in Cells(page).rows[1:])
    assert shown + figures == design.n_published
    flat = dc.Design.product({"a": 20_000}, "a")
    assert len(cells_of(dc.Table.from_inner(flat, np.ones(20_000, dtype=int)))) == 62


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_release_says_that_it_is_public_and_has_its_note(table, method):
    release = table.protect(method)
    page = release._repr_html_()
    assert 'class="public"' in page
    assert "confidential" not in "".join(Cells(page).texts).replace(".confidential", "")
    for sentence in release.statement.plain.split(". "):
        assert sentence.strip(". ").replace("'", "&#39;")[:40] in page


def test_marks_say_why_there_is_no_figure(table):
    release = table.protect(HIDES)
    page = release._repr_html_()
    assert page.count('title="suppressed">:c</td>') == release.hidden.sum() > 0
    assert page.count(":c stands for") == 1  # also for readers without a mouse
    assert f"{release}".count(":c stands for") == 1
    assert ":c" not in f"{table.protect('safe')}"


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_no_display_of_a_release_holds_what_is_hidden(method):
    """The truth under hidden cells is changed, and the display is not."""
    axes = flat_axes(region=8, age=6)
    counts = 40 + np.arange(48).reshape(8, 6) % 17
    pages = set()
    for hidden in ([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]):
        counts[3] = hidden
        table = keyed_table(counts, axes, [("region", "age")])
        release = table.protect("cell-key:D=5, V=3, js=2, threshold=10")
        pages.add(release._repr_html_())
    assert len(pages) == 1
    table = people().tabulate("area*age")
    release = table.protect(method)
    planted = np.where(release.hidden, 987_654, release.z)
    assert "987,654" not in replace(release, z=planted)._repr_html_()


def test_a_planted_leak_is_found(table):
    """The control of the test above: a hidden cell that is marked as published shows its value."""
    release = table.protect(HIDES)
    open_cells = np.full(len(release.z), CellStatus.published, dtype=np.int8)
    leaking = replace(release, z=np.where(release.hidden, 987_654, release.z), status=open_cells)
    assert "987,654" in leaking._repr_html_()


def test_true_counts_are_not_in_the_display_of_perturbed_ones(table):
    """Values that only the truth has: the shown figures are those of the release, cell by cell."""
    release = table.protect(dc.DropAdd(0.5))
    head, *rows = cells_of(release)
    for row in rows:
        for code, figure in zip(head[1:], row[1:], strict=True):
            place = release.design.position({"area": row[0], "age": code})
            assert figure == f"{release.z[place]:,}"
    assert (release.z != table.z).any()


def test_a_trial_shows_its_values_and_says_that_they_are_confidential(table):
    trial = table.simulate(dc.DropAdd(0.5), seed=1)
    assert 'class="confidential"' in trial._repr_html_()
    assert cells_of(trial)[1][1] == f"{trial.z[trial.design.position({})]:,}"
    assert repr(trial).startswith("Trial (confidential)")


def everything():
    """One of each thing that has a display, with labels that would run if they were not escaped."""
    data = people({"N1": NASTY, "Land": NASTY})
    table = data.tabulate("area*age")
    release = table.protect("cell-key:D=5, V=3, js=2")
    pattern = dc.Suppress([Threshold(24)]).pattern(table)
    matrix = replace(dc.perturbation_table(D=5, V=3, js=2), name=NASTY)
    trial = table.simulate("drop-add", seed=1)
    found = dc.attack(table, trial, ["averages", "refit-least-squares"])
    compared = dc.compare(table, {NASTY: "drop-add", "b": "pram"}, replicates=2)
    return {
        "Microdata": data,
        "Table": table,
        "Release": release,
        "Trial": trial,
        "Hierarchy": data.hierarchies["area"][0],
        "TransitionMatrix": matrix,
        "MatrixAudit": matrix.audit(),
        "Fit": dc.LeastSquares()(table.design, table.z.astype(float)),
        "Comparison": compared,
        "Assessment": dc.assess(table, release),
        "Audit": dc.audit(pattern),
        "Pattern": pattern,
        "PatternReport": describe_pattern(pattern),
        "Findings": found,
        "Finding": replace(next(iter(found.values())), attack=NASTY),
        "PrivacyFinding": play(dc.DiscreteLaplace(epsilon=1.0), games=50, seed=1),
    }


NAMES = [
    "Microdata", "Table", "Release", "Trial", "Hierarchy", "TransitionMatrix", "MatrixAudit", "Fit",
    "Comparison", "Assessment", "Audit", "Pattern", "PatternReport", "Findings", "Finding",
    "PrivacyFinding",
]  # fmt: skip
HAS_NO_SIDE = {"Hierarchy", "TransitionMatrix", "MatrixAudit", "Fit"}


@pytest.fixture(scope="module")
def things():
    return everything()


def test_everything_is_tried(things):
    assert [*things] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_everything_has_a_display_that_is_escaped(things, name):
    page = things[name]._repr_html_()
    seen = Cells(page)
    assert not {tag for tag, _ in seen.tags} & {"img", "script", "iframe", "link", "object"}
    assert not [key for _, attrs in seen.tags for key in attrs if key.startswith("on")]
    opened = len(re.findall(r"<(?:div|table|tr|td|th|ul|dl|p)[ >]", page))
    assert opened == len(re.findall(r"</(?:div|table|tr|td|th|ul|dl|p)>", page))
    side = "public" if name == "Release" else "confidential"
    assert (f'class="{side}"' in page) == (name not in HAS_NO_SIDE)


@pytest.mark.parametrize("name", NAMES)
def test_no_display_speaks_python(things, name):
    """Cells are named as `area=N1, age=65+`, never as a dictionary."""
    text = "".join(Cells(things[name]._repr_html_()).texts)
    assert not re.search(r"\{'|\barray\(|<[a-z_.]+ object|\bnp\.", text)


@pytest.mark.parametrize("name", ["Microdata", "Fit", "Hierarchy"])
def test_displays_without_figures_hold_none(things, name):
    """Records, roles and certificates: no count of the table is part of them."""
    rows = [cell for row in cells_of(things[name]) for cell in row]
    truth = {f"{value:,}" for value in things["Table"].z.tolist() if value > 9}
    assert not truth & set(rows)


def test_text_between_columns_is_never_read_as_mark_up():
    lines = align_columns([["name", "n"], ["[bold]x[/bold]", "1"], ["日本", "12"]], right=[1])
    assert lines == ["name             n", "[bold]x[/bold]   1", "日本            12"]


def test_columns_of_numbers_stand_on_the_right():
    grid = Grid.of([["name", "count", "remark", "share"], ["a", "1", "no", ".5"]], right=[1, 3])
    assert [heading.text for heading in grid.columns] == ["count", "remark", "share"]
    assert grid.left == [1]
    assert grid.cells == [["1", "no", ".5"]]


def test_headings_are_escaped_everywhere():
    grid = Grid([Heading(NASTY)], [Heading(NASTY)], [[NASTY]], NASTY, NASTY, note=NASTY)
    lines = [NASTY, (NASTY, [NASTY])]
    page = render(Display(NASTY, "public", {NASTY: NASTY}, [grid], lines, NASTY))
    assert "<img" not in page
    assert page.count("&lt;img") == 13
