"""An attack as a measure of risk: in assessments, in comparisons, and as the risk to tune to."""

import pytest

import discreet as dc
from tests.attacks.victims import country

TABLE = country(mean=4.0)


def test_an_attack_is_a_measure_by_its_name():
    release = TABLE.simulate(dc.DropAdd(0.05), seed=1)
    found = dc.assess(TABLE, release, ["averages", "complements"])
    asked = dc.attack(TABLE, release, ["averages"])["averages"]
    assert found["averages"].value == pytest.approx(asked.lift)
    assert found["averages"].kind == "risk"
    assert found["complements"].value == 0
    assert found["complements"].on == "nothing to attack"


def test_matrices_made_of_epsilon_are_made_again_for_other_counts():
    """Invariant ones work on residues beyond a thousand; a matrix that is given does not."""
    table = country(mean=300.0)
    assert table.z.max() > 1_000
    release = table.simulate(dc.Pram(invariant=True), seed=1)
    assert dc.assess(table, release, ["averages"])["averages"].value <= 1


def test_methods_are_tuned_to_the_same_lift():
    methods = {
        "noise": dc.CellKey(dc.perturbation_table(D=5, V=3)),
        "laplace": dc.DiscreteLaplace(1.0),
    }
    found = dc.compare(
        TABLE, methods, measures=["unchanged-cells"], equal_risk=("averages", 0.1), replicates=2,
        tune={"laplace": ("epsilon", 0.1, 5.0), "noise": ("V", 0.5, 6.0)},
    )  # fmt: skip
    assert "averages" in found.frame["measure"].to_pylist()
    assert {t.measure.partition("@")[0] for t in found.tuning} == {"averages"}
    assert all(t.risk <= 0.1 for t in found.tuning if t.reached), found.tuning


def test_an_attack_on_records_measures_no_table():
    release = TABLE.simulate(dc.DropAdd(0.05), seed=1)
    found = dc.assess(TABLE, release, ["averages", "longest-column"])
    assert "longest-column" not in [score.name for score in found]
    assert "synthetic records" in str(found)
