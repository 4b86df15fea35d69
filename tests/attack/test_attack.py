"""`dc.attack`: claims from the public side, judged elsewhere, beside what guessing gives."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import discreet as dc
from discreet.assessment.audit.equations import DisagreementError
from discreet.attacks import Claims, Finding
from discreet.attacks.scoring import Tally
from discreet.errors import ParameterError
from discreet.tables import Statement
from tests.attack.weak_and_sound import crossed, plain
from tests.attacks.victims import PTABLE, country

TABLE = country(mean=4.0)
METHOD = dc.CellKey(PTABLE)
QUICK = ["averages", "several-laws", "group-attributes"]


@dataclass(frozen=True)
class Oracle:
    """Somebody else's attack, without any of the optional members: values as they stand."""

    name: ClassVar[str] = "oracle"
    off: int = 0
    is_sure: bool = False

    def __call__(self, release, knowledge, *, rng):
        assert not isinstance(release, dc.Table)
        assert not hasattr(release, "inner")
        cells, values = range(len(release.z)), (release.z + self.off).tolist()
        sure = rng.random(len(values))
        return Claims.ranked(cells, values, sure, proven=[self.is_sure] * len(values))


def test_the_truth_released_is_told_and_the_same_without_the_record_is_not():
    found = dc.attack(TABLE, plain(TABLE), Oracle(), method=plain)["oracle"]
    assert (found.success, found.guess, found.lift) == (1.0, 0.0, 1.0)
    assert found.tally.recall == 1.0
    assert "without the targets' records" in found.beside
    assert 0 < found.blind < 1
    assert found.worst[0].endswith(": 1")
    recall, precision = found.tally.curve
    assert (precision == 1).all()
    assert recall[-1] == 1


def test_findings_are_reproduced_by_their_seed():
    release = TABLE.simulate(METHOD, seed=1)
    one, two, other = (dc.attack(TABLE, release, QUICK, seed=k) for k in (1, 1, 2))
    assert list(one) == QUICK
    for name in QUICK:
        assert str(one[name]) == str(two[name])
    assert any(str(one[name]) != str(other[name]) for name in QUICK)
    assert one.text.startswith("CONFIDENTIAL")
    assert one.to_arrow().num_rows == len(QUICK)


@pytest.mark.parametrize(
    "method",
    ["cell-key", "drop-add", "pram", "safe", "controlled-rounding", "small-count-rounding"]
    + [dc.DiscreteLaplace(1.0), dc.DiscreteGaussian(0.1), dc.Laplace(1.0)]
    + [METHOD, dc.Safe(max_move=5), dc.protect.Quality(METHOD)],
)
def test_the_method_is_made_again_from_the_statement(method):
    """Else the baseline would not be of the same release; a method given by hand agrees."""
    release = TABLE.simulate(method, seed=1)
    found, given = (
        dc.attack(TABLE, release, ["averages"], method=m)["averages"] for m in (None, method)
    )
    assert isinstance(found.baseline, Tally)
    assert (found.baseline.right == given.baseline.right).all()


def test_what_cannot_be_drawn_again_is_said():
    """A fit does not say how it was made, and a statement may be of another method."""
    fitted = TABLE.simulate(METHOD, seed=1).fit("non-negative")
    assert (
        dc.attack(TABLE, fitted, ["averages"])["averages"].beside == "a guess without any release"
    )
    wrong = dc.attack(TABLE, TABLE.simulate(METHOD, seed=1), ["averages"], method="safe")[
        "averages"
    ]
    assert wrong.beside == "a guess without any release"

    def make(table, seed):
        return table.simulate(METHOD, seed=seed).fit("non-negative")

    assert isinstance(
        dc.attack(TABLE, fitted, ["averages"], method=make)["averages"].baseline, Tally
    )


def test_a_private_release_stays_below_what_epsilon_implies():
    r"""Of the same targets, :math:`s \le e^\varepsilon b`, up to the ends of both intervals."""
    epsilon = 0.5
    found = dc.attack_method(TABLE, dc.DiscreteLaplace(epsilon), ["averages"], replicates=4)
    finding = found["averages"]
    low, _ = finding.judged.interval(0.999)
    _, high = finding.baseline.interval(0.999)
    assert low <= math.exp(epsilon) * high
    open_ = dc.attack(TABLE, plain(TABLE), ["averages"], method=plain)["averages"]
    assert open_.judged.interval(0.999)[0] > math.exp(epsilon) * open_.baseline.interval(0.999)[1]


def test_replicates_are_pooled_and_reruns_are_averaged():
    once = dc.attack_method(TABLE, dc.DropAdd(0.05), ["averages"], replicates=3)["averages"]
    one = dc.attack_method(TABLE, dc.DropAdd(0.05), ["averages"], replicates=1)["averages"]
    assert once.judged.claims > 2 * one.judged.claims
    often = dc.attack_method(TABLE, dc.DropAdd(0.05), ["averages"], replicates=1, reruns=30)[
        "averages"
    ]
    assert often.lift > 0.2


def test_a_false_proof_is_an_error_and_a_true_one_is_counted():
    release = plain(TABLE)
    with pytest.raises(DisagreementError, match="oracle"):
        dc.attack(TABLE, release, Oracle(off=1, is_sure=True), method=plain)
    found = dc.attack(TABLE, release, Oracle(is_sure=True), method=plain)
    assert found["oracle"].proven == len(TABLE.z)
    assert found.told == [found["oracle"]]
    people = dc.attack(crossed(), plain(crossed()), ["integer-reconstruction"], method=plain)
    assert 0 < people.provably_fixed == people["integer-reconstruction"].fixed <= crossed().y.sum()


def test_what_is_asked_wrongly_is_refused():
    release = TABLE.simulate(METHOD, seed=1)
    with pytest.raises(dc.errors.UnknownNameError, match="averages"):
        dc.attack(TABLE, release, ["average"])
    with pytest.raises(ParameterError, match="no earlier edition"):
        dc.attack(TABLE, release, ["leavers"])
    with pytest.raises(ParameterError, match="before="):
        dc.attack(TABLE, release, ["leavers"], knowledge=dc.Knowledge(earlier=(release,)))
    with pytest.raises(ParameterError, match="no attack was named"):
        dc.attack(TABLE, release, [])
    with pytest.raises(ParameterError, match="method="):
        dc.attack(TABLE, release, QUICK, method=3)
    empty = dc.Table.from_inner(TABLE.design, np.zeros(TABLE.design.n_inner, dtype=int))
    with pytest.raises(ParameterError, match="there is nobody to find"):
        dc.attack(empty, plain(empty), ["averages"])

    class Elsewhere(Oracle):
        about = "stars"

    with pytest.raises(ParameterError, match="about 'stars'"):
        dc.attack(TABLE, release, [Elsewhere()])


def test_weighted_counts_are_passed_over_by_attacks_on_counts():
    weighted = replace(TABLE.simulate(METHOD, seed=1), unit="weight", statement=Statement())
    found = dc.attack(TABLE, plain(TABLE))
    assert {"leavers", "cluster-insider"} <= set(found.passed_over)
    with pytest.raises(ParameterError, match="no counts"):
        dc.attack(TABLE, weighted, ["averages", "bounds"])


def test_noise_below_zero_is_attacked_like_any_other():
    """A log-linear fit of it ended the whole attack in an error."""
    release = TABLE.simulate(dc.Laplace(0.2), seed=1)
    assert (release.z < 0).any()
    found = dc.attack(TABLE, release, ["refit-log-linear", "averages"])
    assert found["refit-log-linear"].judged.claims > 0


def test_no_claim_is_no_finding():
    nothing = Finding("x", Tally(np.zeros(0, bool), 10), 0.3)
    assert (nothing.lift, nothing.lift_interval()) == (0.0, (0.0, 0.0))
    assert not nothing.is_above()


def test_variables_that_rules_leave_one_category_of_are_looked_for():
    """Of the first person there is nothing to say; the table was taken to show nothing at all."""
    zeros, found = [{"age": "1", "marital": ["2", "3"]}], {}
    for margins in ("age*sex*marital", "age*sex"):
        sizes = {"age": 4, "sex": 2, "marital": 3}
        design = dc.Design.product(sizes, margins, structural_zeros=zeros)
        table = dc.Table.from_inner(design, np.arange(design.n_inner) % 3 + 1)
        found[margins] = dc.attack(table, plain(table), method=plain)
    names = {"group-attributes", "nested-crossings"}
    assert names <= found["age*sex*marital"].keys()
    assert names <= found["age*sex"].passed_over.keys()
    assert "no table shows 'marital' in full" in found["age*sex"].passed_over["group-attributes"]
