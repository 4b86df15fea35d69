"""Synthesis of records that are streamed: the laws of the function in memory, and its limits."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import ConfidentialError, DataError, ParameterError, UnknownNameError
from discreet.randomness import stream
from discreet.records.backend import fetch
from discreet.synthesis import streamed
from discreet.synthesis.streamed import DRAWN_ROWS as UNIT
from discreet.synthesis.streamed import RowDraws, streamed_ipso
from tests.synthesize.cases import assert_preserved


def records(rng, n=3000):
    region = rng.choice(["north", "south", "west"], n)
    age = rng.integers(18, 90, n)
    wealth = 1e9 + 1e6 * rng.normal(size=n)
    income = 300 * age + 4e4 * (region == "west") + 1e4 * rng.normal(size=n)
    tax = 1e-3 * (0.3 * income + 3e3 * rng.normal(size=n))
    total = income + tax
    names = ["region", "age", "wealth", "age2", "income", "tax", "total"]
    return pa.table(
        dict(zip(names, [region, age, wealth, age * 2, income, tax, total], strict=True))
    )


def matrices(table):
    Y = np.column_stack([table[c].to_numpy() for c in ("income", "tax", "total")])
    region = table["region"].to_numpy(zero_copy_only=False)
    X = [
        np.ones(len(Y)),
        region == "south",
        region == "west",
        *(table[c] for c in ("age", "wealth")),
    ]
    return Y, np.column_stack([np.asarray(x, dtype=float) for x in X])


def written(tmp_path, table, name="records.parquet"):
    pq.write_table(table, tmp_path / name, row_group_size=700)
    return dc.open(str(tmp_path / name))


CONFIDENTIAL = ["income", "tax", "total"]
COVARIATES = ["region", "age", "wealth", "age2"]


@pytest.mark.parametrize("batch", [65_536, 500])
def test_streamed_records_keep_fits_and_second_moments(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(streamed, "STREAMED_ROWS", batch)
    rng = stream(1, "streamed")
    table = records(rng)
    done = streamed_ipso(
        written(tmp_path, table), tmp_path / "new.parquet", CONFIDENTIAL, COVARIATES, rng=rng
    )
    new = pq.read_table(tmp_path / "new.parquet")
    assert new.column_names == [*COVARIATES, *CONFIDENTIAL]
    assert new.select(COVARIATES).equals(table.select(COVARIATES))
    Y, X = matrices(table)
    synthetic, _ = matrices(new)
    assert_preserved(Y, X, synthetic)
    assert (done.rows, done.rank_X, done.rank_residuals) == (3000, 5, 2)
    assert done.error < 1e-12
    assert (
        np.abs(np.corrcoef(Y[:, 0] - X @ np.linalg.lstsq(X, Y[:, 0])[0], synthetic[:, 0])[0, 1])
        < 0.1
    )


def test_covariances_are_exact_on_the_scale_of_spreads(tmp_path):
    rng = stream(2, "streamed")
    table = records(rng)
    data = written(tmp_path, table)
    streamed_ipso(data, tmp_path / "new.parquet", CONFIDENTIAL, ["wealth", "age"], rng=rng)
    old, new = (
        np.cov(np.column_stack([t[c] for c in ("wealth", "age", *CONFIDENTIAL)]).T)
        for t in (table, pq.read_table(tmp_path / "new.parquet"))
    )
    spread = np.sqrt(np.diag(old))
    assert np.abs((new - old) / np.outer(spread, spread)).max() < 1e-11


def test_the_size_of_batches_does_not_change_the_values(tmp_path, monkeypatch):
    data = written(tmp_path, records(stream(3, "streamed"), 9000))
    made = []
    for batch in (65_536, 2048):
        monkeypatch.setattr(streamed, "STREAMED_ROWS", batch)
        path = tmp_path / f"{batch}.parquet"
        streamed_ipso(data, path, ["income"], ["age"], rng=stream(4, "draws"))
        made.append(pq.read_table(path)["income"].to_numpy())
    np.testing.assert_allclose(made[0], made[1], rtol=1e-12)


def test_draws_belong_to_row_numbers():
    whole = RowDraws(stream(5, "draws"), 3).rows(0, 3 * UNIT)
    again = RowDraws(stream(5, "draws"), 3)
    for start, stop in [
        (2 * UNIT + 5, 2 * UNIT + 6),
        (0, 10),
        (UNIT - 3, 2 * UNIT + 9),
    ]:
        assert (again.rows(start, stop) == whole[start:stop]).all()
    assert abs(whole.mean()) < 0.03
    assert abs(whole.std() - 1) < 0.03
    assert abs(np.corrcoef(whole[:UNIT, 0], whole[UNIT : 2 * UNIT, 0])[0, 1]) < 0.08
    assert (RowDraws(stream(6, "draws"), 3).rows(0, 5) != whole[:5]).all()


def test_rows_in_another_order_in_the_second_pass_are_noticed(tmp_path, monkeypatch):
    rng = stream(7, "streamed")
    data = written(tmp_path, records(rng))
    straight = streamed._second_pass

    def shuffled(stream, *others):
        table = fetch(data.backend, data.table, data.origin)
        turned = dc.open(table.take(rng.permutation(len(table))))
        return straight(replace(stream, data=turned), *others)

    monkeypatch.setattr(streamed, "_second_pass", shuffled)
    with pytest.raises(DataError, match="came in another order, or changed"):
        streamed_ipso(data, tmp_path / "new.parquet", ["income"], ["age"], rng=rng)
    assert not (tmp_path / "new.parquet").exists()


def test_only_the_owner_can_read_the_file(tmp_path):
    rng = stream(8, "streamed")
    data = written(tmp_path, records(rng))
    done = streamed_ipso(data, tmp_path / "new.parquet", ["income"], rng=rng)
    assert done.path.stat().st_mode & 0o077 == 0


def test_variables_without_residuals_stay_as_they_are(tmp_path):
    rng = stream(9, "streamed")
    table = records(rng).append_column(
        "months", pa.array(records(stream(9, "streamed"))["age"].to_numpy() * 12.0)
    )
    data = written(tmp_path, table)
    done = streamed_ipso(data, tmp_path / "new.parquet", ["income", "months"], ["age"], rng=rng)
    assert done.rank_residuals == 1
    new = pq.read_table(done.path)["months"].to_numpy()
    np.testing.assert_allclose(new, table["months"].to_numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"confidential": ["incom"]}, UnknownNameError, "Did you mean 'income'"),
        ({"confidential": ["region"]}, ParameterError, "'region' holds string, expected numbers"),
        ({"confidential": []}, ParameterError, "at least one of them confidential"),
        ({"covariates": ["income"]}, ParameterError, "none in both lists"),
        ({"target": "new.csv"}, ParameterError, "must end in"),
        ({"covariates": ["gap"]}, DataError, "'gap' holds missing or infinite values"),
        ({"covariates": ["blank"]}, DataError, "'blank' holds missing values"),
        ({"covariates": ["rare"]}, ConfidentialError, "levels of 'rare' with fewer than 3 rows"),
        ({"covariates": ["lone"]}, ConfidentialError, "records of leverage above 1/3"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path, change, error, text):
    rng = stream(10, "streamed")
    table = records(rng, 100)
    table = table.append_column("gap", pa.array([None, *range(99)], pa.float64()))
    table = table.append_column("blank", pa.array([None, *("a" * 99)]))
    table = table.append_column("rare", pa.array([*"aa", *("b" * 98)]))
    table = table.append_column("lone", pa.array([1.0, *[0.0] * 99]))
    asked = {"target": "new.parquet", "confidential": ["income"], "covariates": ["age"], **change}
    with pytest.raises(error, match=text):
        streamed_ipso(
            written(tmp_path, table),
            tmp_path / asked["target"],
            asked["confidential"],
            asked["covariates"],
            rng=rng,
        )
    assert not (tmp_path / "new.parquet").exists()
