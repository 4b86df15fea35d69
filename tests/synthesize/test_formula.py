"""Formulas: what they may hold, and one clear error for everything else."""

import pytest

from discreet.errors import ParameterError, UnknownNameError
from discreet.synthesis.formula import parse

COLUMNS = ["income", "tax", "age", "region", "sex", "net income", "w"]


def test_a_formula_is_taken_apart():
    found = parse("income + tax ~ age*region + weights(w)")
    assert found.confidential == ("income", "tax")
    assert found.weights == "w"
    assert found.sources(COLUMNS) == ("age", "region")
    assert not found.is_hybrid


def test_marked_terms_are_kept_apart():
    found = parse("income ~ local(poly(age, 2) + sex) + shared(region)")
    assert found.parts == {"local": "poly(age, 2) + sex", "shared": "region"}
    assert found.sources(COLUMNS) == ("age", "sex", "region")
    assert parse("income ~ 1 + pieces(age) + groups(sex)").parts == {
        "pieces": "age",
        "groups": "sex",
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("income ~ age + region", "income~region+age"),
        ("income ~ age*region", "income ~ age + region + age:region"),
        ("income ~ weights(w) + age", "income ~ age + weights( w )"),
        ("income ~ 1", "income ~ "),
    ],
)
def test_spellings_of_one_model_have_one_text(one, other):
    assert parse(one).text == parse(other).text


@pytest.mark.parametrize(
    "formula",
    [
        "income ~ age*region + {age**2} + poly(age, 3) + C(sex) + weights(w)",
        "`net income` ~ log(`net income 2`) + age",
        "income ~ local(age:sex) + shared(1 + region)",
    ],
)
def test_the_text_of_a_model_can_be_read_again(formula):
    text = parse(formula).text
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("income", "written as"),
        ("income ~ age ~ sex", "written as"),
        ("~ age", "left side of the model is empty"),
        ("log(income) ~ age", "names columns"),
        ("income:tax ~ age", "names columns"),
        ("income ~ age +", "cannot be read"),
        ("income ~ (age", "cannot be read"),
        ("income ~ age | region", "cannot be read"),
        ("income ~ age - 1", "removes the constant"),
        ("income ~ 0 + age", "removes the constant"),
        ("income ~ age + local(region)", "Mark every term"),
        ("income ~ weights(w + age)", "one column"),
    ],
)
def test_what_cannot_be_read_says_so(formula, says):
    with pytest.raises(ParameterError, match=says):
        parse(formula)


@pytest.mark.parametrize(
    "formula", ["income ~ agge", "income ~ log(agge)", "income ~ poly(agge, 2)"]
)
def test_an_unknown_column_names_the_nearest(formula):
    with pytest.raises(UnknownNameError, match="Did you mean 'age'"):
        parse(formula).sources(COLUMNS)


@pytest.mark.parametrize(
    ("term", "name"),
    [("{__import__('os').getpid()}", "__import__"), ("lag(age)", "lag"), ("np.cumsum(age)", "np")],
)
def test_a_formula_calls_nothing_but_functions_of_single_values(term, name):
    with pytest.raises(UnknownNameError, match=name):
        parse(f"income ~ {term}").sources(COLUMNS)
