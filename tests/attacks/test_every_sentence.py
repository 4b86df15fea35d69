"""Every sentence of a statement has a predicate, or a reason and a test that attacks it."""

import importlib.util
from pathlib import Path

import pytest

import discreet as dc
from discreet.testing import sample_table
from tests.attacks.victims import SECRET

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("statement_page", ROOT / "tools/statement_page.py")
TOOL = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TOOL)
FOUND = TOOL.sentences()


def test_every_sentence_has_a_predicate_or_a_reason():
    missing = [s for s in FOUND if not s.has_predicate and s.kind not in TOOL.REASONS]
    assert not missing, "give it a predicate (holds=), or a line in tools/statement_page.py"
    assert {s.kind for s in FOUND if not s.has_predicate} == set(TOOL.REASONS)


def test_every_sentence_about_values_has_a_predicate():
    assert [s for s in FOUND if s.about == "values" and not s.has_predicate] == []


def test_every_reason_names_a_test_that_is_there():
    assert [t for _, t in TOOL.REASONS.values() if not (ROOT / t).is_file()] == []


def test_the_page_of_sentences_is_that_of_the_source():
    assert TOOL.PAGE.read_text(encoding="utf-8") == TOOL.page(), "python tools/statement_page.py"


def test_a_sentence_without_either_is_found(tmp_path):
    """The planted fault."""
    (tmp_path / "boasting.py").write_text('said = [limit("never-wrong", "It is never wrong.")]\n')
    (found,) = TOOL.sentences(tmp_path)
    assert (found.kind, found.about, found.has_predicate) == ("never-wrong", "limits", False)
    assert found.kind not in TOOL.REASONS


@pytest.mark.parametrize(
    "method", [dc.CellKey(dc.perturbation_table(5, 3, 2)), dc.Safe(), dc.Suppress(), dc.Pram()]
)
def test_what_a_release_says_is_on_the_page(method):
    release = sample_table().with_secret(SECRET).protect(method)
    known = {s.kind for s in FOUND} | {method.name}
    assert {s.kind for s in release.statement.sentences} <= known
