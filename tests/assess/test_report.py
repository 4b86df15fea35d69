"""The page for the review board: complete, self-contained, confidential."""

import re
from html.parser import HTMLParser

import pytest

import discreet as dc
from discreet.assessment import Score
from discreet.assessment.report.page import plain_words
from discreet.errors import ParameterError, UnknownNameError
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Shift, Stalled

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
THRESHOLDS = {"exact-disclosure-own": 0.8, "hellinger-utility": 0.5}


@pytest.fixture(scope="module")
def found():
    return dc.compare(
        party.table(),
        {"<b>keyed</b>": dc.CellKey(PTABLE), "shift": Shift(1), "dp": dc.Laplace(epsilon=2.0)},
        fitters=SlowChain(),
        replicates=4,
        sensitive="party",
    )


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    path = found.report(tmp_path_factory.mktemp("report") / "out.html", THRESHOLDS)
    return path.read_text(encoding="utf-8"), path


def test_it_is_for_its_owner_only_and_says_so(page):
    content, path = page
    assert path.stat().st_mode & 0o777 == 0o600
    assert "Confidential." in content


def test_it_needs_nothing_from_elsewhere(page):
    content, _ = page
    assert "<script" not in content
    assert "default-src 'none'" in content
    assert not re.search(r'(src|href|xlink:href)="(?!#|data:)', content)
    assert not re.search(r"url\((?!#)", content)
    marks = re.findall(r'\bid="(.*?)"', content)
    assert len(set(marks)) == len(marks)
    assert "@import" not in content


def test_it_has_everything_a_board_asks_for(page):
    content, _ = page
    headings = re.findall(r"<h2>(.*?)</h2>", content)
    assert headings == [
        "Recommendation",
        "Risk and utility",
        "Data",
        "Methods",
        "How it was measured",
        "Risk",
        "Utility",
        "What attacks recover",
        "What happens to the cells",
        "What the measures say",
        "What the measures do not see",
        "Made with",
    ]
    assert content.count("<svg") == 4
    assert "56 records" in content
    assert "party × age" in content
    assert "The variance of the change is 3 for counts of 40 or more." in content
    assert "Differential privacy with ε = 2 for one record added or removed" in content
    assert "the keys of the records in each cell" in content
    assert "never the same twice" in content
    assert "simulated" in content


def test_the_numbers_are_those_of_the_comparison(found, page):
    content, _ = page
    line = found["hellinger-utility@fitted"].by_method()["shift", "own"]
    assert f"{line['mean']:.3g}<small>{line['lower']:.3g} – {line['upper']:.3g}</small>" in content


def test_attacks_are_those_of_one_draw_and_what_takes_too_long_is_said(
    found, page, tmp_path, monkeypatch
):
    content, _ = page
    drawn = next(iter(found.trials("shift", 1)))
    lift = dc.assess(party.table(), drawn, ["averages"])["averages"]
    told = re.search(r"<tr><td>averages</td>(.*?)</tr>", content, re.S)[1]
    assert f"{lift.value:.2f}<small>{lift.on}</small>" in told
    assert "<td>complements</td>" not in content, "no cell is hidden by any of these methods"
    monkeypatch.setattr("discreet.assessment.report.page._ATTACK_SECONDS", 0.0)
    assert "not finished" in found.report(tmp_path / "out.html").read_text()


def test_the_recommendation_follows_the_thresholds(page):
    content, _ = page
    lead = re.search(r'<p class="lead">(.*?)</p>', content)[1]
    assert "of the methods that meet all thresholds" in lead
    assert "exact-disclosure-own (fitted) at most 0.8" in content


def test_what_was_not_measured_is_told_by_reason_and_counts_as_not_met(tmp_path):
    found = dc.compare(
        party.table(), {"pram": dc.Pram(invariant=True), "dp": dc.Laplace(epsilon=2.0)},
        fitters=[], replicates=2,
        measures=["mechanism-epsilon", "mechanism-delta", "unchanged-cells", "hellinger-utility"],
    )  # fmt: skip
    content = found.report(tmp_path / "out.html", {"mechanism-epsilon": 2.5}).read_text()
    assert "not measured, so not met: name the noise" in content
    assert "mechanism-epsilon, mechanism-delta (pram): name the noise" in content


def test_without_thresholds_nothing_is_recommended(found, tmp_path):
    content = found.report(tmp_path / "out.html").read_text()
    assert "No thresholds were given" in content


class Balanced(HTMLParser):
    """Counts tags that are opened and never closed."""

    void = {"meta", "br", "img"}

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_labels_are_escaped_and_tags_are_closed(page):
    content, _ = page
    assert "<b>keyed" not in content
    assert "&lt;b&gt;keyed" in content
    parser = Balanced()
    parser.feed(content)
    assert parser.open == []


def test_tuning_is_told(tmp_path):
    found = dc.compare(
        party.table(),
        dc.Laplace(epsilon=1.0),
        fitters=[],
        measures=["hellinger-utility"],
        replicates=2,
        equal_risk=("unchanged-cells", 0.2),
    )
    told = found.report(tmp_path / "out.html").read_text()
    assert "tuned to unchanged-cells of 0.2" in told


def test_a_fit_that_failed_is_mentioned(tmp_path):
    found = dc.compare(party.table(), dc.Pram(), fitters=Stalled(), replicates=2)
    told = found.report(tmp_path / "out.html").read_text()
    assert "stalled" in told
    assert "none was named" in told


def test_wrong_names_and_thresholds_leave_nothing_behind(found, tmp_path):
    with pytest.raises(ParameterError, match="html"):
        found.report(tmp_path / "out.pdf")
    with pytest.raises(UnknownNameError):
        found.report(tmp_path / "out.html", {"hellinger": 1})
    assert list(tmp_path.iterdir()) == []


def test_what_other_processes_cannot_load_has_a_report(tmp_path):
    class Always:
        name, kind = "always", "risk"

        def __call__(self, table, release):
            return Score("always", 1.0, "risk", (0, 1), "lower")

    measures = [Always(), "unchanged-cells", "hellinger-utility"]
    found = dc.compare(party.table(), dc.Pram(), fitters=[], measures=measures, replicates=1)
    assert "digest of the table" in found.report(tmp_path / "out.html").read_text()


def test_designs_without_variables_have_a_report(tmp_path):
    import numpy as np

    table = dc.Table.from_inner(dc.Design.from_matrix(np.eye(3)), np.array([1, 2, 9]))
    found = dc.compare(table, Shift(1), fitters=[], replicates=1)
    assert "3 published cells" in found.report(tmp_path / "out.html").read_text()


def test_formulas_become_words():
    assert plain_words(r"Kendall's :math:`\tau_b` of the values.") == "Kendall's τ_b of the values."
    assert plain_words("A count of 1 to `small`.") == "A count of 1 to small."
