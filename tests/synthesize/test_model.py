"""From records to matrices: factors, interactions, polynomials, weights, missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.synthesis.formula import parse
from discreet.synthesis.model import build, read_columns
from discreet.synthesis.result import read_records
from tests.synthesize.people import people

PEOPLE = people(60)


def model(formula, frame=PEOPLE, missing="refuse"):
    parsed = parse(formula)
    records = read_records(frame, secret=None, name=None, edition=None, ledger=None)
    return build(parsed, *read_columns(records, parsed, missing))


def dummies(column):
    return pd.get_dummies(PEOPLE[column]).to_numpy(float)


def same_space(A, B):
    rank = np.linalg.matrix_rank
    return rank(A) == rank(B) == rank(np.hstack([A, B]))


def test_plain_numbers_are_the_columns_themselves():
    X = model("income ~ age + children").X
    np.testing.assert_array_equal(X, np.column_stack([np.ones(60), PEOPLE[["age", "children"]]]))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("income ~ region", lambda: dummies("region")),
        ("income ~ region + sex", lambda: np.hstack([dummies("region"), dummies("sex")])),
        (
            "income ~ region*sex",
            lambda: pd.get_dummies(PEOPLE["region"] + PEOPLE["sex"]).to_numpy(float),
        ),
        (
            "income ~ region*age",
            lambda: np.hstack([d := dummies("region"), d * PEOPLE[["age"]].to_numpy()]),
        ),
        ("income ~ poly(age, 3)", lambda: np.vander(PEOPLE["age"] / 50, 4)),
        ("income ~ age + {age**2}", lambda: np.vander(PEOPLE["age"] / 50, 3)),
        ("income ~ C(children)", lambda: dummies("children")),
        ("income ~ sqrt(age)", lambda: np.column_stack([np.ones(60), np.sqrt(PEOPLE["age"])])),
        ("income ~ log(age)", lambda: np.column_stack([np.ones(60), np.log(PEOPLE["age"])])),
    ],
)
def test_terms_span_what_they_should(formula, expected):
    assert same_space(model(formula).X, expected())


def test_weights_scale_rows_by_their_root():
    found = model("income + tax ~ age + weights(w)")
    Y, X = found.without_weights.Y, found.without_weights.X
    w = PEOPLE["w"].to_numpy()
    np.testing.assert_allclose(X.T @ Y, (found.X * w[:, None]).T @ found.Y)
    np.testing.assert_allclose(found.to_original_scale(Y), found.Y)


def test_local_and_shared_columns_are_kept_apart():
    found = model("income ~ local(age) + shared(region)")
    assert found.X.shape == (60, 2)
    assert found.others["shared"].shape == (60, 3)
    assert found.names == (
        "constant",
        "age",
        "region[T.north]",
        "region[T.south]",
        "region[T.west]",
    )


@pytest.mark.parametrize(
    "frame", [pl.from_pandas(PEOPLE), pa.Table.from_pandas(PEOPLE), pl.from_pandas(PEOPLE).lazy()]
)
def test_every_frame_gives_the_same_matrix(frame):
    formula = "income + tax ~ age*region + C(children)"
    np.testing.assert_array_equal(model(formula, frame).X, model(formula).X)


def test_declared_codes_that_do_not_occur_make_no_column():
    region = pd.Categorical(PEOPLE["region"], [*PEOPLE["region"].unique(), "nowhere"])
    frame = PEOPLE.assign(region=region)
    np.testing.assert_array_equal(model("income ~ region", frame).X, model("income ~ region").X)


def test_texts_are_read_as_numbers_on_request():
    frame = PEOPLE.assign(age=PEOPLE["age"].astype(str), income=PEOPLE["income"].astype(str))
    np.testing.assert_allclose(model("income ~ number(age)", frame).X, model("income ~ age").X)
    np.testing.assert_allclose(model("income ~ number(age)", frame).Y, model("income ~ age").Y)


def with_missing():
    frame = PEOPLE.astype({"age": float, "region": object})
    frame.loc[3, "age"] = np.nan
    frame.loc[4, "region"] = None
    return frame


@pytest.mark.parametrize("formula", ["income ~ age", "income ~ region", "age ~ sex"])
def test_missing_values_are_refused(formula):
    with pytest.raises(DataError, match="missing values"):
        model(formula, with_missing())


def test_missing_codes_are_a_category_on_request():
    X = model("income ~ region", with_missing(), "category").X
    assert X.shape[1] == 5
    alone = np.eye(60)[:, [4]]
    assert same_space(X, np.hstack([X, alone]))


def test_missing_numbers_have_an_effect_of_their_own_on_request():
    found = model("income ~ age", with_missing(), "category")
    assert found.names == ("constant", "age", "missing(age)")
    np.testing.assert_array_equal(np.flatnonzero(found.X[:, 2]), [3])


def test_missing_confidential_values_are_refused_even_as_a_category():
    with pytest.raises(DataError, match="'age' has missing values"):
        model("age ~ sex", with_missing(), "category")


@pytest.mark.parametrize(
    ("formula", "frame", "error", "says"),
    [
        ("incme ~ age", PEOPLE, UnknownNameError, "Did you mean 'income'"),
        ("income ~ age + income", PEOPLE, ParameterError, "both sides"),
        ("region ~ age", PEOPLE, DataError, "must hold numbers"),
        ("income ~ number(region)", PEOPLE, ParameterError, "right side of the model failed"),
        ("income ~ age", PEOPLE.head(0), DataError, "no records"),
        ("income ~ weights(z)", PEOPLE.assign(z=0.0), DataError, "not positive"),
        ("income ~ z", PEOPLE.assign(z=np.inf), DataError, "infinite"),
        ("income ~ exp(z)", PEOPLE.assign(z=1.0e3), (DataError, ParameterError), "model failed"),
        ("income ~ z", PEOPLE.assign(z=pd.Timestamp("2026-01-01")), DataError, "neither a number"),
        ("income ~ z", PEOPLE.assign(z=[f"p{k}" for k in range(60)]), None, ""),
        (
            "income ~ z*sex",
            PEOPLE.assign(z=[f"p{k}" for k in range(60)]),
            ParameterError,
            "60 rows",
        ),
        ("income ~ C(z)*sex", PEOPLE.assign(z=np.arange(60.0)), ParameterError, "60 rows"),
    ],
)
def test_each_fault_has_one_clear_error(formula, frame, error, says):
    if error is None:
        assert model(formula, frame).X.shape == (60, 60)
        return
    with pytest.raises(error, match=says):
        model(formula, frame)


def test_a_matrix_beyond_memory_is_refused_before_it_is_made():
    n = 40_000
    frame = pd.DataFrame({"y": np.arange(n) % 7.0, "id": [f"i{k % 39_000}" for k in range(n)]})
    with pytest.raises(ParameterError, match="clusters="):
        model("y ~ id", frame)
