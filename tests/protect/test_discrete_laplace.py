import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.errors import DataError, DiscreetError, ParameterError, UnknownNameError
from discreet.noise import discrete_laplace, laplace_law
from discreet.progress import listening
from discreet.protect.draws import laplace_noise, scale_for, seeded_laplace
from discreet.tables import Bounds, CellValues, DataSet
from discreet.testing import check_method, chi_square, chi_square_p, sample_table
from tests.protect.tables import PARTY, declared, party
from tests.strategies import designs


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        (dc.DiscreteLaplace(8.0), 20_000),
        (dc.DiscreteLaplace(12.0, cap=9, nonnegative=False, accept_delta=0.01), 20_000),
        (dc.DiscreteLaplace(1.0, margins="summed"), 3_000),
        (dc.DiscreteLaplace(8.0, known=["1"], nonnegative=False), 3_000),
    ],
    ids=["system", "capped", "summed", "known total"],
)
def test_the_battery_finds_nothing_to_complain_of(method, draws):
    check_method(method, draws=draws)


@pytest.mark.parametrize(("tilt", "accepted"), [(1.0, True), (0.9, False), (1.1, False)])
@pytest.mark.parametrize("cap", [None, 4])
@pytest.mark.parametrize("source", ["system", "seeded"])
def test_draws_follow_the_law_and_no_other(source, cap, tilt, accepted):
    scale, n = 1.5, 40_000
    drawn = (
        laplace_noise(n, scale, cap)
        if source == "system"
        else seeded_laplace(np.random.default_rng(3), n, scale, cap)
    )
    reach = cap or 60
    law = laplace_law(1.0, reach, scale * tilt)
    p = chi_square_p(*chi_square(drawn, np.arange(-reach, reach + 1), law))
    assert (p > 1e-6) == accepted


@pytest.mark.parametrize(
    ("margins", "known", "sensitivity"),
    [
        ([("party", "age", "sex")], (), 1),
        ("party*age*sex", ("1",), 7),
        ("party*age*sex", (), 8),
        ("party*age + party*sex", (), 6),
        ("party*age + party*sex", ("1",), 5),
        ("party*age + party*sex", ((), ("age",)), 4),
        (dc.margins(["party", "age", "sex"], 2, lower=False), (), 3),
    ],
)
def test_the_sensitivity_is_the_largest_row_sum_of_the_perturbed_cells(margins, known, sensitivity):
    release = declared(margins).protect(dc.DiscreteLaplace(1.0, known=known))
    assert release.statement.privacy.sensitivity == sensitivity
    assert release.statement.privacy.epsilon == (2.0 if known else 1.0)
    assert release.statement.privacy.delta == 0
    assert f"by at most {sensitivity} in all" in release.statement.text


def test_levels_of_a_hierarchy_count_and_cells_that_are_the_same_count_once():
    release = sample_table().protect(dc.DiscreteLaplace(1.0))
    # region, part of the country and total, each crossed with age, sex and their totals
    assert release.statement.privacy.sensitivity == 3 * 2 * 2
    assert "75 cells" in release.statement.text
    frame = {"a": ["x"] * 2, "b": ["y", "z"], "n": [3, 4]}
    alone = dc.Table.from_counts(frame, "n", "a*b", declared=True)
    assert alone.design.sensitivity() == 4
    release = alone.protect(dc.DiscreteLaplace(1.0))
    assert release.statement.privacy.sensitivity == 2
    assert "3 cells" in release.statement.text


def test_known_margins_of_a_huge_crossing_need_no_inner_cells():
    names = [f"v{i}" for i in range(12)]
    design = dc.Design.product(dict.fromkeys(names, 10), dc.margins(names, 1))
    table = dc.Table(design, CellValues(np.full(121, 50)))
    release = table.protect(dc.DiscreteLaplace(1.0, known=["1", "v3"]))
    assert release.statement.privacy.sensitivity == 11


@given(designs(kinds=["product"]), st.data())
def test_the_sensitivity_of_whole_margins_is_that_of_their_columns(design, data):
    chosen = data.draw(st.sets(st.sampled_from(range(len(design.blocks))), min_size=1))
    columns = np.flatnonzero(np.isin(design.block_of_cell(), list(chosen)))
    assert design.sensitivity(columns) == design.row_sums(columns).max()
    assert design.sensitivity(columns[:1]) == 1


def test_cells_that_are_the_same_get_the_same_noise():
    table = sample_table()
    moves = table.protect(dc.DiscreteLaplace(1.0, nonnegative=False)).z - table.z
    np.testing.assert_array_equal(moves, moves[table.design.duplicates()])
    assert len(set(moves.tolist())) > 10


def test_margins_that_are_known_are_exact_and_so_are_their_other_names():
    table = sample_table()
    release = table.protect(dc.DiscreteLaplace(0.5, known=["region[1]", "1"], nonnegative=False))
    for cell in ({}, {"region": "north"}, {"region": "south"}, {"region": "s1"}):
        k = table.design.position(cell)
        assert release.z[k] == table.z[k]
    assert (release.z != table.z).mean() > 0.8
    assert "without noise: region[1], 1" in release.statement.text


def test_zeros_outside_the_support_of_the_records_get_noise_too():
    occurring, public = declared(support="occurring"), declared()
    method = dc.DiscreteLaplace(0.3)
    assert occurring.protect(method).design.n_published == 24
    first, second = (table.simulate(method, seed=4).z for table in (occurring, public))
    np.testing.assert_array_equal(first, second)


def test_structural_zeros_are_not_among_the_cells():
    table = declared(structural_zeros=[{"party": "A", "age": "young"}])
    release = table.protect(dc.DiscreteLaplace(0.3))
    assert release.design.n_published == 23
    X = np.array([[1, 0], [1, 0]])
    matrix = dc.Table.from_inner(dc.Design.from_matrix(X), np.array([4, 5]))
    assert all(matrix.protect(dc.DiscreteLaplace(0.05)).z[1] == 0 for _ in range(20))


def test_the_cap_costs_the_delta_of_the_paper():
    """Shlomo, Krenzke & Li (2019): ε = 2, cap 7, one cell: δ = 0.000000633."""
    table = declared([("party", "age", "sex")])
    release = table.protect(dc.DiscreteLaplace(2.0, cap=7, population=100_000))
    privacy = release.statement.privacy
    assert privacy.delta == pytest.approx(6.332875e-7, rel=1e-6)
    assert "δ = 6.33e-07" in release.statement.text
    audit = discrete_laplace(2.0, 7).audit(epsilon=2.0)
    assert privacy.delta == pytest.approx(audit.delta, rel=1e-6)


def test_delta_adds_up_over_the_cells_of_a_record():
    table, accepted = declared("party*age*sex"), {"accept_delta": 1.0}
    privacy = table.protect(dc.DiscreteLaplace(8.0, cap=9, **accepted)).statement.privacy
    assert privacy.delta == pytest.approx(8 * laplace_law(8.0, 9, 8)[0])
    capped = dc.DiscreteLaplace(1.0, cap=90, **accepted)
    privacy = table.protect(capped).statement.privacy
    assert privacy.delta_replace < 1
    # seven of the eight cells of a record hold some records only; it leaves and enters them
    assert privacy.delta_replace == pytest.approx(14 / 8 * privacy.delta)
    moves = table.protect(dc.DiscreteLaplace(8.0, cap=2, **accepted)).z - table.z
    assert np.abs(moves).max() <= 2


@pytest.mark.parametrize(
    ("options", "largest"),
    [({}, 1e-9), ({"population": 5000}, 2e-5), ({"accept_delta": 0.01}, 0.01)],
    ids=["unknown population", "population", "accepted"],
)
def test_a_delta_that_means_nothing_is_refused_and_the_smallest_cap_that_does_is_named(
    options, largest
):
    table = declared("party*age*sex")
    with pytest.raises(ParameterError, match=f"at most {largest:.3g} is accepted") as why:
        table.protect(dc.DiscreteLaplace(1.0, cap=3, **options))
    needed = int(re.search(r"cap=(\d+) or more", str(why.value))[1])
    stated = table.protect(dc.DiscreteLaplace(1.0, cap=needed, **options)).statement.privacy
    assert 0 < stated.delta <= largest
    with pytest.raises(ParameterError, match=f"cap={needed} or more"):
        table.protect(dc.DiscreteLaplace(1.0, cap=needed - 1, **options))


def test_codes_that_were_found_in_the_records_are_refused_and_the_cure_is_named():
    for found, names in ((party(), "'party', 'age', 'sex'"), (declared_but_age(), "'age'")):
        with pytest.raises(ParameterError, match=f"codes of {names} were found") as why:
            found.protect(dc.DiscreteLaplace(1.0))
        assert "discreet codes people.csv --out codes.toml" in str(why.value)
        assert "age" not in why.value.public()


def declared_but_age():
    return dc.Table.from_counts(PARTY, "n", "party*age + party*sex", declared=["party", "sex"])


def test_what_holds_for_a_record_replaced_is_stated_beside_what_holds_for_one_more():
    """Female or male at ε = 1: the odds change by up to e² = 7.389, not by e = 2.718."""
    statement = declared("party:age").protect(dc.DiscreteLaplace(1.0)).statement
    privacy = statement.privacy
    assert (privacy.epsilon, privacy.epsilon_replace, privacy.unit) == (1.0, 2.0, "record")
    assert "ε = 1 for one record added or removed" in statement.text
    assert "e^ε = 2.718 times" in statement.text
    assert "female or male, ε is 2: no outcome is more than e^ε = 7.389 times" in statement.text
    with_total = declared().protect(dc.DiscreteLaplace(1.0)).statement.privacy
    assert with_total.epsilon_replace == pytest.approx(10 / 6)  # nobody's total changes


def test_known_margins_leave_the_guarantee_for_a_replacement_alone():
    statement = declared().protect(dc.DiscreteLaplace(1.0, known=["party"])).statement
    assert statement.says("private-known")
    assert not statement.says("private")
    assert "leaves the known margins as they are" in statement.privacy.unit
    assert statement.privacy.epsilon == statement.privacy.epsilon_replace == 1.6
    assert "without noise: party" in statement.text
    assert "ε = 1.6 holds for one record replaced" in statement.text
    assert "for one added or removed there is no guarantee" in statement.text


@pytest.mark.parametrize("records", [1, 3])
def test_a_person_with_several_records_counts_as_often(records):
    bounds = Bounds(person="pid", max_records=records)
    table = replace(declared(), data_set=DataSet("people", bounds=bounds))
    release = table.protect(dc.DiscreteLaplace(1.0, nonnegative=False))
    assert release.statement.privacy.sensitivity == 6 * records
    assert release.statement.privacy.unit == "person (pid)"
    assert f"At most {records} records of one person (pid) were counted." in release.statement.text
    q = math.exp(-1 / (6 * records))
    np.testing.assert_allclose(release.precision, (1 - q) ** 2 / (2 * q))
    capped = dc.DiscreteLaplace(1.0, cap=40 * records, accept_delta=1.0)
    delta = table.protect(capped).statement.privacy.delta
    law = laplace_law(1.0, 40 * records, 6 * records)
    assert delta == pytest.approx(6 * law[:records].sum())


def test_the_budget_can_be_split_over_margins():
    table = declared("party*age + 1")
    split = {"party:age": 0.5, ("party",): 0.25, "age": 0.125, "1": 0.125}
    method = dc.DiscreteLaplace(2.0, split=split)
    release = table.protect(method)
    privacy = release.statement.privacy
    assert (privacy.epsilon, privacy.sensitivity) == (2.0, 4)
    block = table.design.block_of_cell()
    scales = [1.0, 2.0, 4.0, 4.0]
    for k, scale in enumerate(scales):
        noise, law = method.cell_law(table, int(np.flatnonzero(block == k)[0]))
        tail = law[noise >= 3]
        np.testing.assert_allclose(tail[1] / tail[0], math.exp(-1 / scale))
    q = np.exp(-1 / np.array(scales))
    variance = 2 * q / (1 - q) ** 2
    relative = release.precision[np.searchsorted(block, range(4))]
    np.testing.assert_allclose(relative, 1 / variance)
    assert release.statement.steps[-1].parameters["split"]["party"] == 0.25


def test_levels_of_a_split_margin_share_its_part():
    table = sample_table()
    terms = ["region:age:sex", "region:age", "region:sex", "age:sex", "region", "age", "sex", "1"]
    release = table.protect(dc.DiscreteLaplace(8.0, split=dict.fromkeys(terms, 1 / 8)))
    spent = release.statement.privacy
    assert spent.epsilon == pytest.approx(8.0)
    assert spent.sensitivity == 4 * 2 + 4 * 1


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ({"party:age": 0.5, "party": 0.5}, "leaves out"),
        ({"party:age": 0.5, "party": 0.4}, "sum to one"),
        ({"party:age": 1.5, "party": -0.5}, "positive"),
        ({"party:age": 0.4, "party": 0.5, "party[leaves]": 0.1}, "twice"),
        ({"party:sex": 1.0}, "not among the published"),
    ],
)
def test_a_wrong_split_is_explained(split, words):
    with pytest.raises(ParameterError, match=words):
        declared("party*age + sex").protect(dc.DiscreteLaplace(1.0, split=split))


def test_a_margin_of_an_unknown_variable_is_named():
    with pytest.raises(UnknownNameError, match="'party'"):
        declared().protect(dc.DiscreteLaplace(1.0, known=["prty"]))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": 1, "cap": 0}, "cap"),
        ({"epsilon": 1, "cap": 2.5}, "cap"),
        ({"epsilon": 1, "sensitivity": 3}, "sensitivity"),
        ({"epsilon": 1, "keyed": True}, "keyed"),
        ({"epsilon": 1, "weighting": "cell"}, "weighting"),
        ({"epsilon": 1, "weight_bound": 3.0}, "weight_bound"),
        ({"epsilon": 1, "margins": "adjusted"}, "Adjust"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(DiscreetError, match=words):
        registry.build("method", "discrete-laplace", given)


def test_split_and_known_need_margins_of_their_own():
    with pytest.raises(ParameterError, match="margins='own'"):
        declared().protect(dc.DiscreteLaplace(1.0, margins="summed", known=["1"]))
    matrix = dc.Table.from_inner(dc.Design.from_matrix(np.eye(2)), np.array([4, 5]))
    with pytest.raises(ParameterError, match="no margins to name"):
        matrix.protect(dc.DiscreteLaplace(1.0, known=["1"]))
    with pytest.raises(ParameterError, match="nothing is left"):
        declared("sex").protect(dc.DiscreteLaplace(1.0, known=["sex", "1"]))


def test_noise_cannot_be_repeated():
    table = declared()
    with pytest.raises(ParameterError, match="not from a seed"):
        table.protect(dc.DiscreteLaplace(1.0), seed=1)
    first, second = (table.protect(dc.DiscreteLaplace(0.1)).z for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_simulation_is_repeatable_follows_the_law_and_is_no_release():
    table, method = declared(), dc.DiscreteLaplace(1.0, cap=200)
    first, second = (table.simulate(method, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.z, second.z)
    assert not isinstance(first, dc.Release)
    assert first.z.min() >= 0
    open_ = dc.DiscreteLaplace(1.0, nonnegative=False)
    moves = np.concatenate([table.simulate(open_, seed=s).z - table.z for s in range(2000)])
    law = laplace_law(1.0, 200, 6)
    assert chi_square_p(*chi_square(moves, np.arange(-200, 201), law)) > 1e-6


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [(0.3, 3), (1.0, 7), (0.1, 31), (math.log(2), 5), (2.0, 1)]
)
def test_the_scale_is_one_for_which_the_guarantee_is_proved(epsilon, sensitivity):
    from discreet.protect import draws as opendp_source

    scale = scale_for(epsilon, sensitivity)
    assert opendp_source._laplace(scale).map(sensitivity) <= epsilon
    np.testing.assert_allclose(scale, sensitivity / epsilon, rtol=1e-12)


def test_long_work_reports_its_progress(monkeypatch):
    monkeypatch.setattr("discreet.protect.draws._CHUNK", 100)
    seen = []
    with listening(lambda task, share: seen.append(share)):
        laplace_noise(450, 0.5, cap=1)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert len(seen) >= 5


def test_the_statement_survives_storage(tmp_path):
    release = declared().protect(dc.DiscreteLaplace(2.0, cap=60, known=["1"]))
    again = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    assert again.statement == release.statement
    assert again.statement.privacy.unit.startswith("record replaced by another")


def test_fractional_counts_never_get_here():
    with pytest.raises(DataError, match="whole"):
        dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), np.array([0.5, 1.0]))
