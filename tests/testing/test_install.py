"""The validation pack: every method has a golden case, and a wrong golden figure is found."""

from pathlib import Path

import pytest

from discreet import registry
from discreet.errors import ParameterError
from discreet.testing import install


@pytest.fixture(scope="module")
def validation():
    return install.check_install()


def test_every_method_fitter_and_synthesizer_has_its_golden_figures():
    names = [("method", registry.METHODS), ("fitter", registry.FITTERS)]
    names += [("synthesizer", registry.SYNTHESIZERS)]
    wanted = {f"{kind} {name}" for kind, each in names for name in each}
    wanted |= {"table of counts", "table of sums"}
    assert set(install.read_golden()) == wanted


def test_this_installation_gives_the_figures_of_the_release(validation):
    assert validation.faults == []
    assert validation.is_passed
    assert sum(result.seconds for result in validation.results) < 300


def test_a_planted_wrong_figure_fails(monkeypatch, tmp_path):
    golden = install.read_golden()
    case = "method cell-key"
    monkeypatch.setattr(install, "_cases", lambda: {case: lambda: list(golden[case])})
    assert install.check_install(golden).is_passed
    wrong = {case: [golden[case][0] + 1, *golden[case][1:]]}
    found = install.check_install(wrong)
    assert not found.is_passed
    assert found.faults[0].note.startswith("figure 0: ")
    report = found.write(tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1 FAILED" in report
    assert "signature: ___" in report


def test_a_failure_and_a_missing_case_are_told(monkeypatch):
    def fail():
        raise RuntimeError("no | table")

    monkeypatch.setattr(install, "_cases", lambda: {"a": fail, "b": lambda: [1.0]})
    notes = [result.note for result in install.check_install({}).results]
    assert notes == ["RuntimeError: no / table", "there are no golden figures of this case"]


def test_hidden_and_shown_figures_differ():
    assert install._first_difference([None], [1.0]) == "figure 0: None instead of 1.0"
    assert install._first_difference([float("nan")], [1.0])
    assert install._first_difference([1.0], [1.0 + 1e-8]) == ""


def test_a_method_that_draws_otherwise_is_caught(monkeypatch):
    monkeypatch.setitem(install._METHODS, "cell-key", "cell-key:D=4, V=3, js=2")
    run = install._cases()["method cell-key"]
    monkeypatch.setattr(install, "_cases", lambda: {"method cell-key": run})
    found = install.check_install()
    assert [result.verdict for result in found.faults] == ["differs"]
    with pytest.raises(ParameterError, match=r"\.md or \.html"):
        found.write("report.txt")


def test_the_report_is_a_page_as_well(tmp_path):
    missing = install.GoldenResult("synthesizer ipso", "not installed", 0.0, "<formulaic>")
    found = install.Validation((missing,), {"discreet": "0"})
    assert found.outcome == "passed in part"
    page = found.write(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 could not run, for want of an extra" in page
    assert "&lt;formulaic&gt;" in page
    assert "signature: ___" in page
    assert "#00724f" not in page, "what passed in part is marked as a warning"
    whole = install.Validation((install.GoldenResult("a", "same", 0.0, ""),), {"discreet": "0"})
    assert "#00724f" in whole.write(tmp_path / "whole.html").read_text(encoding="utf-8")


def test_the_page_on_installation_counts_the_cases():
    page = (Path(__file__).parents[2] / "docs" / "installation.md").read_text(encoding="utf-8")
    cases = install.read_golden()
    assert f"{len(cases)} of {len(cases)} golden cases" in page
    extra = [c for c in cases if c.startswith("synthesizer") or c.endswith(("laplace", "gaussian"))]
    assert f"{len(extra)} cases need `[private]` or `[synthesis]`" in page
