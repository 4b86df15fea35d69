from __future__ import annotations

import numpy as np

from discreet import demo
from discreet.frames import Frame, concat


def by_province(table: Frame, weight: np.ndarray) -> dict[str, float]:
    province = np.array([code[0] for code in table["region"].to_pylist()])
    return {p: float(weight[province == p].sum()) for p in np.unique(province)}


def test_schema_and_determinism(survey):
    assert survey.kinds == demo.SURVEY_SCHEMA
    assert concat(demo.survey(100_000, 1, chunk=700)) == survey


def test_rows_are_rows_of_the_census_in_whole_households(census, survey):
    row = survey["person_id"].to_numpy() - 1
    assert survey.without("weight") == census.take(row)
    households = survey["household_id"].unique()
    members = census.filter(np.isin(census["household_id"].to_numpy(), households))
    assert members.num_rows == survey.num_rows


def test_weights_are_positive_and_sum_to_the_population_of_each_province(census, survey):
    weight = survey["weight"].to_numpy()
    assert weight.min() > 0
    assert np.isfinite(weight).all()
    truth = by_province(census, np.ones(census.num_rows))
    found = by_province(survey, weight)
    assert found.keys() == truth.keys()
    np.testing.assert_allclose([found[p] for p in truth], list(truth.values()), rtol=1e-9)


def test_small_provinces_are_sampled_more_and_weights_vary(census, survey):
    truth = by_province(census, np.ones(census.num_rows))
    taken = by_province(survey, np.ones(survey.num_rows))
    assert 0.01 < survey.num_rows / census.num_rows < 0.04
    assert taken["H"] / truth["H"] > 1.5 * taken["A"] / truth["A"]
    assert len(np.unique(survey["weight"].to_numpy().round(6))) > 40


def test_sampling_leaves_the_census_as_it_is(census):
    next(demo.survey(1_000, 1))
    assert next(demo.generate(1_000, 1))["region"] == census["region"].slice(0, 1_000)


def test_weights_still_add_up_when_strata_are_empty():
    """In a tiny survey most strata have nobody; the provinces that have somebody are exact."""
    census = next(demo.generate(2_000, 5))
    survey = next(demo.survey(2_000, 5))
    truth = by_province(census, np.ones(census.num_rows))
    for province, total in by_province(survey, survey["weight"].to_numpy()).items():
        np.testing.assert_allclose(total, truth[province], rtol=1e-9)
