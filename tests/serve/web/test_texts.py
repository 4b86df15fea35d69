"""Both languages say everything, numbers are written as their readers write them."""

import re
import string
from pathlib import Path

import numpy as np
import pytest

import discreet.serve
from discreet.errors import UnknownNameError
from discreet.release.formats.columns import decimals_of
from discreet.serve import texts
from discreet.serve.web.texts import languages, nice_ticks, preferred_language, read_texts


def flattened(content, before=""):
    for name, value in content.items():
        place = f"{before}{name}"
        if place == "said":
            continue
        if isinstance(value, dict):
            yield from flattened(value, f"{place}.")
        else:
            yield place, value


def fields(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(str(text)) if name is not None)


def test_every_language_has_the_same_entries():
    english = dict(flattened(read_texts("en")))
    assert languages() == ("en", "nb")
    for language in languages():
        found = dict(flattened(read_texts(language)))
        assert found.keys() == english.keys()
        for place, text in english.items():
            assert fields(text) == fields(found[place]), place
            assert text == "" or found[place] != "", place


CHOSEN_BY_NAME = re.compile(
    r"build\.((add_)?to_)?(rows|columns|layers)|build\.(row|column|layer)"
    r"|pick\.((where|group)_)?(title|help|legend|done)|show\.(count|row|column|total)"
    r"|units\..*|table\.(row|column|impossible|hidden|undefined)|chart\.(kinds|needs)\..*|job\.states\..*"
    r"|admin\.(closed_now|opened_now|reloaded)|numbers\..*|counted\..*|name"
)
"""Entries whose names are put together while pages are made."""


def test_every_entry_is_said_somewhere():
    folder = Path(discreet.serve.__file__).parent
    files = [f for ending in ("html", "py") for f in folder.rglob(f"*.{ending}")]
    source = "".join(f.read_text(encoding="utf-8") for f in files)
    for place in dict(flattened(read_texts("en"))):
        if not CHOSEN_BY_NAME.fullmatch(place):
            name = place.rpartition(".")[2]
            assert re.search(rf"\b(texts\.{place}|{place}|said\.{name})\b", source), place


def test_translations_keep_what_differs_from_one_time_to_the_next():
    for english, norwegian in read_texts("nb")["said"].items():
        assert english.count("{}") == norwegian.count("{}"), english


def test_languages_have_their_numbers():
    english, norwegian = texts("en").numbers, texts("nb").numbers
    assert english.format(1234567.891, 1) == "1,234,567.9"
    assert norwegian.format(1234567.891, 1) == "1\u00a0234\u00a0567,9"
    assert english.format(-1200) == "−1,200"
    assert english.format(-0.04, 1) == "0.0"
    assert english.in_percent(12.34) == "12.3%"
    assert norwegian.in_percent(12.34) == "12,3\u00a0%"


def test_things_are_counted_in_words():
    assert texts("en").count("cells", 1) == "1 cell"
    assert texts("en").count("cells", 20_000) == "20,000 cells"
    assert texts("nb").count("categories", 2) == "2 kategorier"


@pytest.mark.parametrize(
    ("english", "norwegian"),
    [
        ("At most 20,000 cells.", "Høyst 20\u00a0000 celler."),
        ("No figure was changed by more than 2.5.", "Ingen tall ble endret med mer enn 2,5."),
        ("without region (every level)", "uten region (alle nivåer)"),
        (
            "There is no variable or level 'ag'. Did you mean 'age'?",
            "Det finnes ingen variabel eller ikke noe nivå 'ag'. Mente du 'age'?",
        ),
    ],
)
def test_sentences_of_the_library_are_translated(english, norwegian):
    assert texts("nb").translate(english).text == norwegian
    assert texts("en").translate(english).text == english


def test_a_sentence_without_a_translation_stays_what_it_is_and_says_so():
    said = texts("nb").translate("Nobody has heard of this.")
    assert (said.text, said.language) == ("Nobody has heard of this.", "en")


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("nb", "nb"),
        ("nn-NO,nn;q=0.9", "nb"),
        ("de,no;q=0.5,en;q=0.4", "nb"),
        ("fr;q=0.9,en;q=0.8,nb;q=0.7", "en"),
        ("nb;q=nonsense,en", "en"),
    ],
)
def test_a_browser_gets_the_language_it_prefers(header, language):
    assert preferred_language(header, ("en", "nb")) == language


def test_a_language_without_texts_is_named():
    with pytest.raises(UnknownNameError, match="unknown language 'xx'"):
        texts("xx")


def test_decimals_are_as_many_as_values_need():
    assert decimals_of(np.array([1, 2])) == 0
    assert decimals_of(np.array([1.0, 45.0])) == 0
    assert decimals_of(np.array([1.5, np.nan])) == 1
    assert decimals_of(np.array([1.234])) == 2


@pytest.mark.parametrize("largest", [0, 1, 3, 7, 99, 100, 101, 4_321, 0.4, 12.5, 1e7])
def test_axes_end_just_beyond_the_largest_value(largest):
    ticks = nice_ticks(largest)
    steps = np.diff(ticks)
    assert ticks[0] == 0
    assert np.allclose(steps, steps[0])
    assert ticks[-1] >= largest > ticks[-1] - steps[0] * 1.001 or largest == 0
    mantissa = float(f"{steps[0]:e}".partition("e")[0])
    assert mantissa in (1, 2, 2.5, 5)
