"""Sums and further tables of releases that hide cells: what is true in them, and what is not."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.tables import CellStatus

INNER = np.array([3, 11, 32, 30, 1, 9, 13, 8, 12, 22, 2, 2, 18, 19, 16, 3])


def table(y=INNER, margins="row*col"):
    return dc.Table.from_inner(dc.Design.product({"row": 4, "col": 4}, margins), y)


def with_decimals(truth):
    decimals = dc.Suppress(dc.rules.Threshold(3), decimals="rmse")
    return truth.with_secret(dc.Secret.demo()).protect(decimals)


def hidden_of_first_row(release):
    """Columns whose cells of the first row are hidden, and what these are together."""
    columns = "1234"
    hidden = [c for c in columns if release.exact_sum({"row": 1, "col": c}) is None]
    return hidden, INNER.reshape(4, 4)[0, [columns.index(c) for c in hidden]].sum()


def solid(seed):
    """A table of three variables of which two pairs are published, so that most cells are open."""
    d = dc.Design.product({"a": 3, "b": 3, "c": 2}, "a*b + a*c")
    return dc.Table.from_inner(d, np.random.default_rng(seed).poisson(4.0, d.n_inner))


def derivable(release, design):
    """By ranks of dense matrices: which cells of a design shown cells of a release give."""
    shown = release.design.matrix().toarray()[:, ~(release.hidden | release.replaced)]
    rank = np.linalg.matrix_rank
    wanted = design.matrix().toarray().T
    return np.array([rank(np.c_[shown, column]) == rank(shown) for column in wanted])


@pytest.mark.parametrize("seed", range(4))
def test_a_further_table_of_decimals_is_true_exactly_where_shown_cells_give_it(seed):
    truth = solid(seed)
    release = with_decimals(truth)
    further = release.tabulate("b*c + a")
    is_true = derivable(release, further.design)
    assert 0 < is_true.sum() < len(is_true)
    np.testing.assert_array_equal(further.status == CellStatus.published, is_true)
    np.testing.assert_array_equal(further.replaced, ~is_true)
    true_values = further.design.aggregate(truth.y)
    np.testing.assert_array_equal(further.z[is_true], true_values[is_true])
    np.testing.assert_allclose(further.z, further.design.aggregate(release.y))


def test_a_table_tabulated_again_is_the_same_table():
    release = with_decimals(table())
    again = release.tabulate("row*col")
    np.testing.assert_array_equal(again.z, release.z)
    np.testing.assert_array_equal(again.status, release.status)
    # Which cells are hidden beside a small one follows from the secret; their sum is public.
    hidden, total = hidden_of_first_row(again)
    assert "1" in hidden
    assert again.exact_sum({"row": 1, "col": hidden}) == total


def test_the_old_name_of_exact_sum_answers_with_a_warning():
    release = with_decimals(table())
    hidden, total = hidden_of_first_row(release)
    with pytest.warns(DeprecationWarning, match="exact_sum"):
        assert release.publish({"row": 1, "col": hidden}) == total


def test_inner_cells_that_no_margin_gives_are_decimals_although_nothing_was_suppressed():
    truth = table(INNER + 10, "row + col")
    release = with_decimals(truth)
    assert not release.replaced.any()
    further = release.tabulate("row*col")
    np.testing.assert_array_equal(further.replaced, ~derivable(release, further.design))
    assert further.replaced.sum() == 16


def test_the_statement_of_a_further_table_speaks_of_its_own_cells():
    release = with_decimals(solid(1))
    further = release.tabulate("b*c").statement
    assert release.statement.says("interval-width")
    assert not further.says("interval-width")
    assert further.says("shown-is-true")
    assert "Cells that are shown have their true values" not in further.text


def test_audits_and_files_of_a_further_table_know_its_decimals(tmp_path):
    further = with_decimals(table()).tabulate("row*col")
    assert len(dc.audit(further).by_equations) == further.replaced.sum() > 0
    lines = further.write(tmp_path / "t.sdmx.csv").read_text().splitlines()
    assert sum(',"E",' in line for line in lines) == further.replaced.sum()


def test_further_tables_of_sums_keep_their_fractions():
    small, even = [90.5, 1.25, 2.0, 0.5, 3.0, 1.0], [50.0, 40.0, 30.0, 20.5, 10.0, 9.0]
    large, other = [60.0, 50.5, 40.0, 30.0, 20.0, 10.0], [70.0, 65.75, 50.0, 40.0, 30.0, 20.0]
    firms = {
        "activity": ["a"] * 12 + ["b"] * 12,
        "region": (["n"] * 6 + ["s"] * 6) * 2,
        "firm": [f"F{k}" for k in range(24)],
        "turnover": [*small, *even, *large, *other],
    }
    truth = dc.Table.from_contributions(
        firms, "activity*region", value="turnover", contributor="firm"
    )
    method = dc.Suppress(dc.rules.PPercent(10), decimals="rmse")
    further = truth.with_secret(dc.Secret.demo()).protect(method).tabulate("activity")
    assert not further.replaced.any()
    found = {further.design.cell(k).get("activity"): z for k, z in enumerate(further.z)}
    assert found == pytest.approx({None: 744.0, "a": 257.75, "b": 486.25})


@pytest.mark.parametrize("name", ["small-count-rounding", "controlled-rounding"])
def test_a_release_with_changed_values_gives_no_true_sum(name):
    changed = table().with_secret(dc.Secret.demo()).protect(name, base=5)
    with pytest.raises(DesignError, match="changed"):
        changed.exact_sum({"row": 1, "col": 1})


def test_a_fitted_release_gives_no_true_sum():
    fitted = table().protect(dc.Suppress(dc.rules.Threshold(3))).fit("non-negative")
    with pytest.raises(DesignError, match="changed"):
        fitted.exact_sum({"row": 1, "col": 1})


@pytest.mark.parametrize("given", ["row", 5, None, [5], ["row"]])
def test_sums_are_given_by_codes(given):
    release = table().protect(dc.Suppress(dc.rules.Threshold(3)))
    with pytest.raises(ParameterError, match="codes of its cells"):
        release.exact_sum(given)


def test_a_statement_of_decimals_does_not_call_them_exact():
    crosses = table().protect(dc.Suppress(dc.rules.Threshold(3))).statement
    decimals = with_decimals(table()).statement
    assert "All figures that are shown are exact." in crosses.plain
    assert "All figures that are shown are exact." not in decimals.plain
    assert "They are not the true figures, but add up to the totals. All other" in decimals.plain


def test_a_further_table_does_not_say_that_its_empty_cells_are_shown():
    counts = np.array([0, 5, 6, 7, 9, 2, 8, 4])
    design = dc.Design.product({"row": 4, "col": 2}, "row + col")
    release = with_decimals(dc.Table.from_inner(design, counts))
    assert release.statement.says("empty-cells")
    further = release.tabulate("row*col")
    assert further.replaced[further.design.position({"row": 1, "col": 1})]
    assert not further.statement.says("empty-cells")
