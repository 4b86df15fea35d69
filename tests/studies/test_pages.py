"""Studies as text and as pages."""

import re

import pytest

from discreet.errors import ParameterError
from discreet_studies.model import (
    Figure,
    Finding,
    Known,
    LogEntry,
    Picture,
    PrintedTable,
    Study,
    own,
)
from discreet_studies.page import page, study_text, write_page


def chart():
    import altair as alt

    return alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")


def study(**changes):
    figures = (
        Figure("a <b>", "x", "0.50", 0.501, 0.005),
        Figure("a <b>", "y", "0.70*", 0.9, 0.02, Known(0.9, 0.01, "a misprint.")),
        Figure("c", "y", "0.10", 0.2, 0.02),
    )
    parts = {
        "tables": (PrintedTable("Table 7", "Shares & such", figures),),
        "findings": (Finding("More is more.", False, "1 < 2."),),
        "pictures": (Picture("Figure 1", "A point.", chart),),
        "notes": ("Run here.",),
        **changes,
    }
    return Study("toy", "A toy", "Nobody (2000)", **parts)


def test_text_says_everything():
    text = study_text(study())
    assert re.search(r"a <b>\s+x\s+0.50\s+0.501\s+\+0.001\s+exact", text)
    assert re.search(r"a <b>\s+y\s+0.70\*\s+0.900\s+\+0.2\s+±0.01\s+differs as known", text)
    assert re.search(r"c\s+y\s+0.10\s+0.200\s+\+0.1\s+±0.02\s+OUTSIDE", text)
    assert "a <b>, y: a misprint." in text
    assert "[DOES NOT HOLD] More is more." in text
    assert "Table 7, c, y: printed 0.10, computed 0.200" in text
    assert "Run here." in text


def test_pages_are_self_contained_and_escaped():
    content = page(study())
    assert "a &lt;b&gt;" in content
    assert "<b>" not in content
    assert "<svg" in content
    assert "<script" not in content
    assert not re.search(r'(src|href)="http', content)
    assert "0.900 <i>≠</i><small>0.70*</small><small>+0.2 ±0.01</small>" in content
    assert '<span class="explained">≠ differs as known: 1</span>' in content
    assert "DOES NOT HOLD" in content
    assert "Confidential" not in content


def test_pages_about_records_are_for_their_owner(tmp_path):
    path = write_page(study(is_confidential=True), tmp_path / "study.html")
    assert path.stat().st_mode & 0o077 == 0
    assert "Confidential" in path.read_text()
    public = write_page(study(), tmp_path / "public.html")
    assert public.stat().st_mode & 0o044


def test_a_page_has_a_name_of_its_kind(tmp_path):
    with pytest.raises(ParameterError, match=r"\.html"):
        write_page(study(), tmp_path / "study.txt")


def test_nothing_is_left_when_a_picture_cannot_be_drawn(tmp_path):
    def broken():
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError):
        write_page(study(pictures=(Picture("F", "c", broken),)), tmp_path / "study.html")
    assert not list(tmp_path.iterdir())


def test_what_is_not_judged_is_said():
    findings = (Finding("It rains.", True, "Seen.", is_judged=False),)
    assert ">not judged</td>" in page(study(findings=findings))
    assert "[not judged] It rains." in study_text(study(findings=findings))
    assert "It is so here." in study_text(study(findings=findings))


def test_our_own_sentences_stand_apart_from_the_papers():
    findings = (Finding("It rains.", True, "Seen."), own("It pours.", True, "Felt."))
    text = study_text(study(findings=findings))
    for shown in (page(study(findings=findings)).split("</p>", 3)[-1], text):
        words = ("What the paper says", "It rains.", "Checks of our own", "It pours.")
        places = [shown.index(word) for word in words]
        assert places == sorted(places)


def test_the_log_is_shown():
    log = (LogEntry("2026-01-01", "Twice as wide.", "No room.", "abc"),)
    for shown in (page(study(log=log)), study_text(study(log=log))):
        assert "2026-01-01: Twice as wide. Reason: No room. Digest abc." in shown
    assert "Log of" not in page(study())


def test_large_differences_have_no_exponent():
    figures = (Figure("a", "x", "44164.7", 46265.2, 3000.0),)
    tables = (PrintedTable("Table 7", "Totals", figures),)
    assert "<small>+2,100 ±3,000</small>" in page(study(tables=tables))
