"""What is equal, close and different: figures, tables, pages and pictures."""

import stat

import numpy as np
import pytest

import discreet as dc
from discreet.assessment import plots
from discreet.assessment.report.page import write_preserved
from discreet.errors import DataError
from tests.synthesize.people import SECRET, people

PEOPLE = people()
MODEL = "income + tax ~ age + region"


@pytest.fixture(scope="module")
def found():
    return dc.synthesis.Preserved.of(PEOPLE, dc.synthesize(PEOPLE, MODEL, secret=SECRET))


def kinds(found, verdict):
    return {figure.kind for figure in found.with_verdict(verdict)}


def test_what_the_model_promises_is_equal(found):
    promised = {"mean", "standard deviation", "correlation", "coefficient"}
    assert kinds(found, "equal") == promised
    assert not promised & (kinds(found, "close") | kinds(found, "different"))
    assert found.unchanged == 0


def test_figures_are_those_of_the_records(found):
    by_name = {(figure.kind, figure.about): figure for figure in found.figures}
    mean = by_name["mean", "income"]
    assert mean.original == pytest.approx(PEOPLE["income"].mean())
    assert by_name["median", "tax"].original == pytest.approx(PEOPLE["tax"].median())
    slope = np.polyfit(PEOPLE["age"], PEOPLE["income"], 1)[0]
    alone = dc.synthesis.Preserved.of(PEOPLE, dc.synthesize(PEOPLE, "income ~ age", secret=SECRET))
    coefficient = {f.about: f for f in alone.figures if f.kind == "coefficient"}
    assert coefficient["income on age"].synthetic == pytest.approx(slope)


def test_weighted_figures_are_weighted():
    made = dc.synthesize(PEOPLE, f"{MODEL} + weights(w)", secret=SECRET)
    found = dc.synthesis.Preserved.of(PEOPLE, made)
    mean = next(figure for figure in found.figures if figure.kind == "mean")
    assert mean.original == pytest.approx(np.average(PEOPLE["income"], weights=PEOPLE["w"]))
    assert kinds(found, "equal") >= {"mean", "standard deviation", "correlation", "coefficient"}


def test_microaggregation_has_smaller_deviations():
    made = dc.synthesize(PEOPLE, "income ~ 1", "hybrid", clusters=5, residuals="zero")
    spread = {f.kind: f for f in dc.synthesis.Preserved.of(PEOPLE, made).figures}[
        "standard deviation"
    ]
    assert spread.verdict != "equal"
    assert spread.synthetic < spread.original


def test_nearer_methods_have_closer_quantiles():
    def difference(**options):
        made = dc.synthesize(PEOPLE, MODEL, "score-correlation", secret=SECRET, **options)
        figures = dc.synthesis.Preserved.of(PEOPLE, made).figures
        return sum(f.difference for f in figures if "quartile" in f.kind or f.kind == "median")

    assert difference(correlations=0.99) < difference(correlations=0.0)


def test_a_trial_can_be_measured():
    trial = dc.synthesize(PEOPLE, MODEL, simulate=True, seed=1)
    assert dc.synthesis.Preserved.of(PEOPLE, trial).with_verdict("equal")


def test_other_records_are_refused():
    made = dc.synthesize(PEOPLE, MODEL, secret=SECRET)
    with pytest.raises(DataError, match="that were synthesized"):
        dc.synthesis.Preserved.of(PEOPLE.head(100), made)


def test_it_is_shown_as_text_frame_and_html(found):
    n = len(found.figures)
    assert repr(found).splitlines()[0].startswith("Preserved (confidential): ")
    assert len(repr(found).splitlines()) == n + 2
    assert found.to_arrow().num_rows == len(found.to_pandas()) == n
    assert found._repr_html_().count("<tr>") == n + 1


def test_the_picture_shows_every_column_and_its_correlations(found):
    svg = plots.to_svg(plots.preserved(found))
    for text in ("income", "tax", "correlations", "standard deviation", "different"):
        assert text in svg


def test_the_page_is_for_its_owner_only(found, tmp_path):
    path = write_preserved(found, tmp_path / "preserved.html", "What was said.")
    page = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "Confidential." in page
    assert "<svg" in page
    assert "What was said." in page
    with pytest.raises(dc.DiscreetError, match=r"\.html"):
        write_preserved(found, tmp_path / "preserved.txt")


def test_the_page_tells_risk_and_utility(found, tmp_path):
    original = people(60)
    assessment = dc.assess(original, original, ["copied-records", "membership-inference"])
    page = write_preserved(found, tmp_path / "p.html", assessment=assessment).read_text()
    assert "Risk and utility" in page
    assert "copied-records" in page
    assert "control=" in page
