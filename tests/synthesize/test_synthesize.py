"""`dc.synthesize` on every kind of records: promises, randomness, ledger, statement, files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import LedgerError, ParameterError, UnknownNameError
from discreet.frames import Frame
from discreet.synthesis import UnsafeRowsError
from tests.synthesize.people import SECRET, moments, people

PEOPLE = people()
MODEL = "income + tax ~ age + region"
NAMES = ("income", "tax")
X = np.column_stack([np.ones(len(PEOPLE)), PEOPLE["age"], pd.get_dummies(PEOPLE["region"])])
X = X.astype(float)
METHODS = {
    "ipso": {},
    "residual-correlation": {"correlations": [0.6, 0.5], "alpha": "largest"},
    "score-correlation": {"correlations": [0.9, "redraw"]},
    "from-residuals": {"share": 0.5},
    "romm": {"lambda_": 0.2},
}


def values(result):
    return result.frame[list(NAMES)].to_numpy(float)


@pytest.mark.parametrize("method", METHODS)
def test_fits_and_covariances_are_exact(method):
    made = dc.synthesize(PEOPLE, MODEL, method, secret=SECRET, **METHODS[method])
    for before, after in zip(moments(PEOPLE, NAMES, X), moments(made.frame, NAMES, X), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-10)
    assert (np.abs(values(made) - PEOPLE[list(NAMES)]) > 1e-6).all(axis=None)


def test_weighted_moments_are_exact():
    made = dc.synthesize(PEOPLE, f"{MODEL} + weights(w)", secret=SECRET)
    w = PEOPLE["w"].to_numpy()
    pairs = zip(moments(PEOPLE, NAMES, X, w), moments(made.frame, NAMES, X, w), strict=True)
    for before, after in pairs:
        np.testing.assert_allclose(after, before, rtol=1e-10)


def test_hybrid_records_keep_sums_within_clusters():
    made = dc.synthesize(
        PEOPLE,
        "income + tax ~ local(age) + shared(sex)",
        "hybrid",
        clusters="region",
        secret=SECRET,
    )
    for column in NAMES:
        sums = [f.groupby("region")[column].sum() for f in (PEOPLE, made.frame)]
        np.testing.assert_allclose(sums[0], sums[1], rtol=1e-10)


@pytest.mark.parametrize("gain", [None, 0.2])
def test_clusters_of_similar_records_lie_near_the_original(gain):
    made = dc.synthesize(PEOPLE, "income + tax ~ 1", "hybrid", clusters=8, gain=gain)
    r = np.corrcoef(made.frame["income"], PEOPLE["income"])[0, 1]
    assert r > 0.94
    np.testing.assert_allclose(made.frame["income"].sum(), PEOPLE["income"].sum())


def test_terms_are_preserved_in_groups_and_pieces():
    frame = PEOPLE.assign(half=PEOPLE["region"].isin(["north", "east"]).astype(str))
    model = "income ~ local(1) + groups(children) + pieces(age)"
    labels = {"clusters": "region", "groups": "half", "pieces": "sex"}
    made = dc.synthesize(frame, model, "hybrid", **labels)
    for names, column in ((["half"], "children"), (["region", "sex"], "age")):
        sums = [
            f.assign(p=f["income"] * f[column]).groupby(names)["p"].sum()
            for f in (frame, made.frame)
        ]
        np.testing.assert_allclose(sums[0], sums[1], rtol=1e-9)
    with pytest.raises(ParameterError, match=r"groups\(…\) go with groups="):
        dc.synthesize(frame, model, "hybrid", clusters="region", pieces="sex")


def test_outliers_are_split_off():
    frame = PEOPLE.copy()
    frame.loc[:9, "income"] += np.linspace(2e5, 4e5, 10)
    options = {"clusters": "sex", "outliers": 0.999, "merge": "pool"}
    made = dc.synthesize(frame, "income ~ 1", "hybrid", secret=SECRET, **options)
    np.testing.assert_allclose(made.frame["income"][:10].sum(), frame["income"][:10].sum())
    without = dc.synthesize(frame, "income ~ 1", "hybrid", secret=SECRET, clusters="sex")
    assert made.frame["income"][:10].min() > 1e5 > without.frame["income"][:10].min()


def far_out():
    frame = PEOPLE.copy()
    frame.loc[:9, "income"] += np.linspace(2e5, 4e5, 10)
    return frame


@pytest.mark.parametrize("method", ["ipso", "romm"])
@pytest.mark.parametrize("outlying", ["synthetic", "public"])
def test_outliers_are_synthetic_by_themselves_or_stay_as_they_are(method, outlying):
    frame, options = far_out(), {"outliers": 0.999, "outlying": outlying}
    made = dc.synthesize(frame, "income ~ 1", method, secret=SECRET, **options, **METHODS[method])
    for rows in (frame.index < 10, frame.index >= 10):
        before, after = frame["income"][rows], made.frame["income"][rows]
        np.testing.assert_allclose(after.sum(), before.sum())
        np.testing.assert_allclose((after**2).sum(), (before**2).sum())
    same = made.frame["income"] == frame["income"]
    assert same[:10].all() == (outlying == "public")
    assert not same[10:].any()
    assert ("keep their true values" in made.statement.text) == (outlying == "public")
    again = dc.synthesize(frame, "income ~ 1", method, secret=SECRET, **METHODS[method])
    assert again.frame["income"][:10].min() < 1e5 < made.frame["income"][:10].min()


def test_hybrid_outliers_may_stay_as_they_are():
    options = {"clusters": "sex", "outliers": 0.999, "outlying": "public"}
    made = dc.synthesize(far_out(), "income ~ 1", "hybrid", secret=SECRET, **options)
    same = made.frame["income"] == far_out()["income"]
    assert same[:10].all()
    assert not same[10:].any()


def test_too_few_outliers_are_not_made_synthetic_by_themselves():
    frame = PEOPLE.copy()
    frame.loc[[3, 7], "income"] += 4e5
    with pytest.raises(UnsafeRowsError) as error:
        dc.synthesize(frame, "income ~ 1", secret=SECRET, outliers=0.9999)
    assert {3, 7} <= set(error.value.rows.tolist())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"outlying": "public"}, "goes with outliers="),
        ({"outlying": "kept", "outliers": 0.99}, "'synthetic' or 'public'"),
        ({"method": "from-residuals", "share": 0.5, "outliers": 0.99}, "outliers= goes with"),
    ],
)
def test_choices_about_outliers_are_checked(options, said):
    with pytest.raises(ParameterError, match=said):
        dc.synthesize(PEOPLE, MODEL, secret=SECRET, **options)


# Publishable cells of a table as a term.

CELLS = "income + tax ~ age + cells(region*size)"
SUM_RULES = ["few-contributors(6)", "p%(10)"]


def sized():
    """Some incomes are below zero: sums keep their signs, contributors are ranked by size."""
    rng = np.random.default_rng(3)
    frame = people(400)
    return frame.assign(size=rng.choice(list("smlx"), 400, p=[0.5, 0.3, 0.15, 0.05]))


def published_sums(frame):
    """The same table by suppression, for both columns: true sums, and which may be shown."""
    shown, sums = True, {}
    for column in NAMES:
        firms = frame.assign(who=range(len(frame)))
        table = dc.Table.from_contributions(
            firms, "region*size", value=column, contributor="who", negative="absolute"
        )
        shown = shown & ~dc.Suppress(SUM_RULES).pattern(table).suppressed
        sums[column] = table.contributions.sum
    return sums, shown


def test_sums_of_publishable_cells_are_kept_and_the_others_are_not():
    frame = sized()
    made = dc.synthesize(frame, CELLS, secret=SECRET, rules=SUM_RULES)
    before, shown = published_sums(frame)
    after, _ = published_sums(made.frame)
    assert 0 < (~shown).sum() < len(shown) / 2
    np.testing.assert_allclose(after["income"][shown], before["income"][shown], rtol=1e-10)
    apart = np.abs(after["income"] - before["income"])[~shown]
    assert apart.min() > 100  # sums that are suppressed do not come out of the records
    assert "region*size" in made.statement.text
    assert made.model == CELLS
    other = dc.synthesize(frame, CELLS.replace("region*size", "size*region"), rules=SUM_RULES,
                          secret=SECRET)  # fmt: skip
    pd.testing.assert_frame_equal(other.frame, made.frame)


def test_a_table_with_every_cell_tells_what_suppression_hides():
    """The fault that the term is for: all cells as a term are refused, or give small sums away."""
    frame = sized()
    with pytest.raises(UnsafeRowsError):
        dc.synthesize(frame, "income + tax ~ age + region*size", secret=SECRET, rules=SUM_RULES)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (CELLS, {"rules": []}, "rules for sums"),
        (CELLS, {"rules": ["threshold(3)"]}, "rules for sums"),
        ("income ~ local(1) + cells(region)", {"method": "hybrid", "clusters": 8}, "does not go"),
        ("income ~ cells(place)", {}, "place"),
    ],
)
def test_tables_that_cannot_be_a_term_are_refused(model, options, said):
    with pytest.raises((ParameterError, UnknownNameError), match=said):
        dc.synthesize(sized(), model, secret=SECRET, **options)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (pl.from_pandas(PEOPLE), pl.DataFrame),
        (pl.from_pandas(PEOPLE).lazy(), pl.DataFrame),
        (pa.Table.from_pandas(PEOPLE), pa.Table),
        (PEOPLE, pd.DataFrame),
    ],
)
def test_every_frame_comes_back_in_its_own_kind(frame, kind):
    made = dc.synthesize(frame, MODEL, secret=SECRET)
    assert isinstance(made.frame, kind)
    expected = dc.synthesize(PEOPLE, MODEL, secret=SECRET).frame
    pd.testing.assert_frame_equal(made.to_pandas(), expected, check_dtype=False, rtol=1e-12)
    assert made.to_polars().columns == list(PEOPLE.columns)


def test_microdata_leave_keys_ids_and_persons_behind():
    frame = PEOPLE.assign(pid=range(len(PEOPLE)), home=range(len(PEOPLE)))
    data = dc.open(frame, id="pid", secret=SECRET, name="people").with_roles(person="home")
    made = dc.synthesize(data, MODEL)
    assert isinstance(made.frame, Frame)
    assert made.frame.column_names == list(PEOPLE.columns)
    assert not made.statement.says("fresh-draws")


def test_an_index_is_not_published():
    made = dc.synthesize(PEOPLE.set_index(pd.Index([f"p{k}" for k in PEOPLE.index])), MODEL)
    assert made.to_arrow().column_names == list(PEOPLE.columns)
    assert isinstance(made.frame.index, pd.RangeIndex)


def test_only_columns_to_keep_are_published():
    made = dc.synthesize(PEOPLE, MODEL, keep=["region"], secret=SECRET)
    assert list(made.frame.columns) == ["income", "tax", "region"]
    whole = dc.synthesize(PEOPLE, MODEL, secret=SECRET)
    np.testing.assert_array_equal(values(made), values(whole))
    with pytest.raises(UnknownNameError, match="regoin"):
        dc.synthesize(PEOPLE, MODEL, keep=["regoin"])


def test_the_same_request_has_the_same_result():
    one, two = (dc.synthesize(PEOPLE, MODEL, secret=SECRET) for _ in range(2))
    np.testing.assert_array_equal(values(one), values(two))
    respelt = dc.synthesize(PEOPLE, "income+tax ~ region+age", secret=SECRET)
    np.testing.assert_allclose(values(respelt), values(one), rtol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_records_makes_no_difference(method):
    order = np.random.default_rng(3).permutation(len(PEOPLE))
    one = dc.synthesize(PEOPLE, MODEL, method, secret=SECRET, **METHODS[method])
    two = dc.synthesize(PEOPLE.iloc[order], MODEL, method, secret=SECRET, **METHODS[method])
    np.testing.assert_array_equal(values(two), values(one)[order])


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"edition": "2"},
        {"secret": dc.Secret(b"another secret, which is long enough too")},
        {"formula": "income + tax ~ age + region + sex"},
        {"method": "romm", "lambda_": 5.0},
    ],
)
def test_whatever_is_asked_for_draws_anew(changes):
    request = {"formula": MODEL, "secret": SECRET, "name": "people", "edition": "1"}
    one = dc.synthesize(PEOPLE, **request)
    two = dc.synthesize(PEOPLE, **{**request, **changes})
    assert np.abs(values(one) - values(two)).min() > 1e-6


def test_a_ledger_enters_releases_and_refuses_a_different_second_one(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db")
    request = {"secret": SECRET, "name": "people", "ledger": ledger}
    for _ in range(2):
        dc.synthesize(PEOPLE, MODEL, **request)
    entered = [row for row in ledger.rows() if row["entry"] == "release"]
    assert [row["step"]["method"] for row in entered] == ["synthesize ipso"]
    with pytest.raises(LedgerError, match="again=True"):
        dc.synthesize(PEOPLE, "income ~ age", **request)
    second = dc.synthesize(PEOPLE, "income ~ age", again=True, **request)
    assert second.statement.says("released-again")


def test_without_a_secret_every_draw_is_another_release(tmp_path):
    request = {"name": "people", "ledger": tmp_path / "ledger.db"}
    dc.synthesize(PEOPLE, MODEL, **request)
    with pytest.raises(LedgerError, match="again=True"):
        dc.synthesize(PEOPLE, MODEL, **request)


def test_a_refused_release_is_not_entered(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db")
    frame = PEOPLE.assign(boats=np.eye(len(PEOPLE))[0])
    with pytest.raises(dc.DiscreetError, match="degrees of freedom"):
        dc.synthesize(frame, "income ~ boats", secret=SECRET, name="people", ledger=ledger)
    assert ledger.rows() == []


def test_a_wish_that_is_not_feasible_is_not_entered(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db")
    request = {"correlations": [0.99, 0.2], "secret": SECRET, "name": "people", "ledger": ledger}
    with pytest.raises(dc.DiscreetError, match="nearest feasible"):
        dc.synthesize(PEOPLE, MODEL, "residual-correlation", **request)
    made = dc.synthesize(PEOPLE, MODEL, "residual-correlation", alpha="largest", **request)
    assert 0 < made.statement.steps[-1].parameters["alpha"] < 1


def test_a_trial_knows_what_the_method_found_out():
    trial = dc.synthesize(PEOPLE, MODEL, simulate=True, seed=1)
    assert trial.details["rank_residuals"] == 2


def test_a_ledger_needs_a_name(tmp_path):
    with pytest.raises(ParameterError, match="name="):
        dc.synthesize(PEOPLE, MODEL, secret=SECRET, ledger=tmp_path / "ledger.db")


def test_microdata_have_their_own_name_and_secret():
    with pytest.raises(ParameterError, match=r"dc\.open"):
        dc.synthesize(dc.open(PEOPLE), MODEL, secret=SECRET)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"clusters": 5}, "goes with method='hybrid'"),
        ({"formula": "income ~ local(age)"}, "go with method='hybrid'"),
        ({"method": "hybrid"}, "need clusters"),
        ({"method": "hybrid", "clusters": 5}, "for each term"),
        ({"method": "hybrid", "formula": "tax ~ 1", "clusters": "sex", "gain": 1.0}, "of a size"),
        ({"method": "hybrid", "formula": "tax ~ 1", "clusters": "tax"}, "confidential column"),
        ({"method": "hybrid", "formula": "tax ~ 1", "clusters": "sexx"}, "Did you mean 'sex'"),
        ({"method": "hybrid", "formula": "tax ~ 1", "clusters": [1, 2]}, "2 labels"),
        ({"method": "ipos"}, "Did you mean 'ipso'"),
        ({"method": "romm"}, "needs a value of lambda_"),
        ({"method": "romm", "lamda": 1.0}, "lambda_"),
        ({"missing": "drop"}, "missing must be"),
        ({"merge": "yes"}, "merge must be"),
        ({"other": PEOPLE}, "goes with method='from-residuals'"),
        ({"method": "from-residuals", "other": PEOPLE.head(3)}, "3 rows"),
        ({"method": "from-residuals", "other": PEOPLE[["tax"]]}, "column of the other data"),
    ],
)
def test_what_does_not_go_together_says_so(options, says):
    with pytest.raises(dc.DiscreetError, match=says):
        dc.synthesize(PEOPLE, **{"formula": MODEL, **options})


def test_other_data_are_corrected_in_their_own_order():
    rng = np.random.default_rng(1)
    other = PEOPLE[list(NAMES)] + 100 * rng.standard_normal((len(PEOPLE), 2))
    made = dc.synthesize(PEOPLE, MODEL, "from-residuals", other=other)
    assert np.abs(values(made) - other).max(axis=None) < 500
    np.testing.assert_allclose(moments(made.frame, NAMES, X)[1], moments(PEOPLE, NAMES, X)[1])


def test_parquet_files_hold_the_statement(tmp_path):
    made = dc.synthesize(PEOPLE, MODEL, secret=SECRET)
    path = made.save(tmp_path / "synthetic.parquet")
    stored = pq.read_table(path)
    header = json.loads(stored.schema.metadata[b"discreet_synthetic"])
    assert header["side"] == "public"
    assert header["statement"]["text"] == made.statement.text
    np.testing.assert_array_equal(stored.to_pandas()[list(NAMES)], values(made))


def test_csv_files_have_the_statement_beside_them(tmp_path):
    frame = PEOPLE.assign(note="=cmd()")
    made = dc.synthesize(frame, MODEL, secret=SECRET)
    path = made.save(tmp_path / "synthetic.csv")
    assert pd.read_csv(path)["note"].tolist() == ["'=cmd()"] * len(frame)
    assert (tmp_path / "synthetic.statement.txt").read_text() == f"{made.statement}\n"
    assert json.loads((tmp_path / "synthetic.statement.json").read_text())["method"] == "ipso"


def test_what_is_shown_are_some_records_and_the_statement():
    made = dc.synthesize(PEOPLE, MODEL, secret=SECRET)
    assert "Synthetic: 240 records, income, tax by ipso" in repr(made)
    assert "What is preserved is disclosed" in " ".join(repr(made).split())
    assert made._repr_html_().count("<tr>") == 7
