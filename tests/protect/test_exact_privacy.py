"""Costs and sentences of private methods against every tiny data set and its neighbours."""

import itertools
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import discreet as dc
from discreet.accounting import Cost, Relation, Total, rho_to_epsilon
from discreet.design import Axis, ProductDesign, SparseDesign
from discreet.errors import LedgerError, ParameterError
from discreet.protect import LaplaceShare
from discreet.protect.privacy import bounds_every_outcome, bounds_every_set, cost_of, delta_at
from discreet.tables import Bounds
from discreet.testing.exact_privacy import ExactPrivacy, PrescribedNoise, TinyWorld, exact_laws
from tests.protect.tables import declared

A = dc.Hierarchy("Total", {"x": "Total", "y": "Total", "x1": "x", "x2": "x", "y1": "y"})
DESIGN = ProductDesign([Axis.from_hierarchies("a", [A]), Axis.flat("b", ["1", "2"])], "a*b")
SQUARE = dc.Design.product({"a": 2, "b": 2}, "a*b")
SMALL = dc.Design.product({"a": 2}, "a")
WORLDS = {
    "hierarchy": TinyWorld.of_records(DESIGN, size=1),
    "square": TinyWorld.of_records(SQUARE),
    "persons": TinyWorld.of_persons(SMALL, 2, size=1),
    "weights": TinyWorld.of_weights(SMALL, [0.3, 1.0, 2.5], size=1),
}
DELTA = 1e-6
PLAIN = {
    "laplace": dc.Laplace(0.6),
    "discrete": dc.DiscreteLaplace(0.4),
    "gaussian": dc.DiscreteGaussian(0.5),
    "epsilon-delta": dc.DiscreteGaussian(epsilon=4.0, delta=DELTA),
    "capped": dc.DiscreteLaplace(2.0, cap=40, accept_delta=1.0),
    "summed": dc.DiscreteLaplace(0.5, margins="summed"),
    "split": dc.DiscreteLaplace(0.5, split={"a:b": 0.5, "a": 0.2, "b": 0.2, "1": 0.1}),
    "total known": dc.DiscreteLaplace(0.2, known="1"),
    "a known": dc.DiscreteGaussian(0.4, known="a"),
    "known and capped": dc.DiscreteLaplace(1.0, cap=60, known="b", accept_delta=1.0),
}
MEAN = TinyWorld.of_weights(SMALL, [0.3, 1.0, 2.5], size=1)
WORLDS["mean weight"] = replace(MEAN, bounds=Bounds(weight=2.5, mean_weight=0.9))
GRIDS = {
    "mean weight": dc.DiscreteLaplace(0.5, grid="mean-weight"),
    "gaussian mean weight": dc.DiscreteGaussian(0.5, grid="mean-weight"),
    "grid": dc.DiscreteLaplace(0.5, grid=0.7),
    "grid of reals": dc.Laplace(0.5, grid=1.25),
    "gaussian grid": dc.DiscreteGaussian(0.5, grid=4),
}
OF_ONE = ["laplace", "discrete", "gaussian", "capped", "summed", "total known"]
CASES = [("hierarchy", name) for name in PLAIN]
CASES += [(world, name) for world in ("persons", "weights") for name in OF_ONE]
CASES += [("weights", name) for name in GRIDS if "mean" not in name]
CASES += [("mean weight", name) for name in GRIDS if "mean" in name]


@cache
def exact(world, name):
    return ExactPrivacy(WORLDS[world], (PLAIN | GRIDS)[name])


def released(world, method):
    table = world.table(())
    return method(table, draws=PrescribedNoise(0)).statement


def cost(world, name):
    return cost_of(released(WORLDS[world], (PLAIN | GRIDS)[name]).privacy)


def check(total, found):
    """What the total says, under every relation for which it says anything."""
    for change in ("add-remove", "replace", "known"):
        known = total.relation.known if change == "known" else ()
        if change == "known" and not known:
            continue
        try:
            spent = total.under(change)
        except LedgerError:
            assert total.relation.change == "known"
            continue
        delta = spent.delta + (DELTA if spent.rho else 0.0)
        laws = list(found.losses(change, known))
        assert bounds_every_set(spent.epsilon_at(delta), delta, laws), (change, known)


@pytest.mark.parametrize(("world", "name"), CASES)
def test_every_sentence_on_privacy_is_true_of_exact_laws(world, name):
    statement = released(WORLDS[world], (PLAIN | GRIDS)[name])
    known = tuple(statement.privacy.relation.get("known", ()))
    changes = {"private": "add-remove", "private-replace": "replace", "private-known": "known"}
    said = [s for s in statement.sentences if s.kind in changes]
    assert said
    for sentence in said:
        change = changes[sentence.kind]
        laws = list(exact(world, name).losses(change, known))
        assert sentence.holds(laws)
        beyond = max(delta_at(0.0, law) for law in laws)
        assert not bounds_every_set(0.0, beyond / 2, laws)  # there is something to refute


@pytest.mark.parametrize("world", ["hierarchy", "persons", "weights"])
def test_every_pair_of_releases_stays_within_its_total(world):
    names = [name for where, name in CASES if where == world]
    for one, two in itertools.combinations_with_replacement(names, 2):
        total = Total().plus(cost(world, one)).plus(cost(world, two))
        check(total, exact(world, one).beside(exact(world, two)))


@pytest.mark.parametrize("name", ["discrete", "laplace", "split", "total known"])
def test_costs_of_records_are_exact_and_not_only_bounds(name):
    spent, found = cost("square", name), exact("square", name)
    relation = spent.relation
    assert found.worst(relation.change, relation.known) == pytest.approx(spent.epsilon)
    if spent.replaced is not None:
        assert found.worst("replace") == pytest.approx(spent.replaced.epsilon)
    else:
        assert math.isinf(found.worst("add-remove"))
        with pytest.raises(LedgerError, match="no finite ε for one record added or removed"):
            Total().plus(spent).under("add-remove")


def test_a_release_beside_known_margins_costs_what_it_does_and_not_a_mixture(tmp_path):
    """ε = 0.6 beside known= at 0.2 read "ε = 1 together"; the exact loss is 1.4."""
    table = declared(name="party")
    first, second = dc.DiscreteLaplace(0.6), dc.DiscreteLaplace(0.2, known="1")
    ledger = dc.Ledger(tmp_path / "ledger.db")
    for method in (first, second):
        table.protect(method, ledger=ledger)
    spent = ledger.spent("party")
    world = TinyWorld.of_records(table.design, size=1)
    both = ExactPrivacy(world, first, second)
    assert both.worst("replace") == pytest.approx(1.4)
    assert math.isinf(both.worst("add-remove"))
    assert spent.epsilon == spent.under("known").epsilon == 1.4
    (line,) = [each for each in ledger.text().splitlines() if each.startswith("party:")]
    assert "ε = 0.6 for one record added or removed" in line
    assert "ε = 0.4 for one record replaced" in line
    assert "ε = 1.4 for one record replaced by another that leaves the known margins" in line
    assert "ε = 1 " not in line
    forgotten = Total(tuple((Cost(c.epsilon), n) for c, n in spent.costs))
    assert forgotten.epsilon == 1.0
    assert not bounds_every_set(forgotten.epsilon, 0.0, both.losses("replace"))


def test_the_theorem_holds_where_a_method_says_nothing_of_replacements():
    world = WORLDS["hierarchy"]
    for name in ("discrete", "capped", "gaussian", "summed"):
        plain = cost("hierarchy", name)
        bare = Cost(plain.epsilon, plain.delta, plain.rho)
        swapped = Total().plus(bare).under("replace")
        check(Total().plus(bare), exact("hierarchy", name))
        assert swapped.epsilon >= cost("hierarchy", name).replaced.epsilon if bare.epsilon else True
    assert Total().plus(Cost(rho=0.1)).under("replace").rho == 0.4
    assert world.size == 1


@pytest.mark.parametrize("rho", [0.001, 0.01, 0.05])
def test_gaussian_noise_bounds_sets_of_outcomes_and_not_single_ones(rho):
    """Outcomes more than e^ε times as likely have a probability beyond δ."""
    world = TinyWorld.of_records(SMALL, size=1)
    method = dc.DiscreteGaussian(rho, accept_delta=DELTA)
    laws = list(ExactPrivacy(world, method).losses("add-remove"))
    epsilon = rho_to_epsilon(rho, DELTA)
    assert bounds_every_set(epsilon, DELTA, laws)
    assert not bounds_every_outcome(epsilon, DELTA, laws)
    said = next(s for s in released(world, method).sentences if s.kind == "private")
    assert "any set of outcomes" in said.text
    assert "no outcome" not in said.text
    assert said.holds(laws)


# --- planted faults -------------------------------------------------------------------------------


class HalfSensitive(LaplaceShare):
    """A share that believes a record to change half of what it changes."""

    @property
    def sensitivity(self):
        return max(1, super().sensitivity // 2)


class TooSure(dc.DiscreteLaplace):
    share_kind = HalfSensitive


def one_step_less(monkeypatch):
    from discreet.protect import private_noise
    from discreet.protect.budget import Unit

    unit = Unit(1, 1, "record", 2.5)
    monkeypatch.setattr(private_noise, "unit_of", lambda table, grid: unit)
    return dc.DiscreteLaplace(0.5, grid=0.7)


def forgotten_person(monkeypatch):
    from discreet.protect import private_noise
    from discreet.protect.budget import Unit

    monkeypatch.setattr(private_noise, "unit_of", lambda table, grid: Unit())
    return dc.DiscreteLaplace(0.5)


@pytest.mark.parametrize(
    ("world", "make"),
    [
        ("hierarchy", lambda patch: TooSure(0.5)),
        ("weights", one_step_less),
        ("persons", forgotten_person),
    ],
    ids=["half the sensitivity", "bound of weights", "records of a person"],
)
def test_a_wrong_sensitivity_is_caught(world, make, monkeypatch):
    method = make(monkeypatch)
    statement = released(WORLDS[world], method)
    laws = list(ExactPrivacy(WORLDS[world], method).losses("add-remove"))
    assert not bounds_every_set(statement.privacy.epsilon, 0.0, laws)
    assert not any(s.holds(laws) for s in statement.sentences if s.kind == "private")


def test_the_reference_finds_the_law_that_draws_have():
    """Every outcome of a table of one cell, through the method itself, negative ones cut."""
    method = dc.DiscreteLaplace(1.0, cap=6, accept_delta=1.0)
    table = TinyWorld.of_records(dc.Design.product({"a": 1}, "a"), size=1).table((0,))
    (law,) = exact_laws(method, table)
    assert (law.centre, law.kind, law.scale, law.cap) == (1.0, "laplace", 1.0, 6)
    noise, p = method.cell_law(table, 0)
    outcomes = {}
    u = np.arange(-6, 7)
    weights = np.exp(-np.abs(u)) / np.exp(-np.abs(u)).sum()
    for k, q in zip(u.tolist(), weights, strict=True):
        value = int(method(table, draws=PrescribedNoise(k)).z[0])
        outcomes[value] = outcomes.get(value, 0.0) + q
    assert outcomes == pytest.approx(dict(zip((noise + 1).tolist(), p, strict=True)))


def test_the_reference_refuses_noise_that_cells_share():
    hidden = TinyWorld.of_records(dc.Design.product({"a": 2, "b": 2}, [("a",), ("b",)]), size=1)
    with pytest.raises(ParameterError, match="share the noise"):
        exact_laws(dc.DiscreteLaplace(0.5, margins="summed"), hidden.table(()))


def test_structural_zeros_and_margins_that_fix_everything_stay_within_their_costs():
    axes = [Axis.flat(name, ["1", "2"]) for name in "abc"]
    codes = [np.array(c) for c in ([0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [0, 0, 0, 0, 1])]
    world = TinyWorld.of_records(SparseDesign(axes, "a*b + b*c", codes))
    for known in ("1", "a", ["b:c"], ["a", "b:c"]):
        method = dc.DiscreteLaplace(0.6, known=known)
        spent = cost_of(released(world, method).privacy)
        exact = ExactPrivacy(world, method).worst("known", spent.relation.known)
        assert exact <= spent.epsilon + 1e-9
        assert (exact > 0) == (known != ["a", "b:c"])  # there two people must trade places


def test_relations_of_other_units_do_not_add_up():
    person = Relation(unit="person (pid)", max_records=3)
    total = Total().plus(Cost(0.1)).plus(Cost(0.1, relation=person))
    for ask in (lambda: total.epsilon, partial(total.under, "replace")):
        with pytest.raises(LedgerError, match="does not hide a person who has many"):
            ask()
    assert [part.epsilon for part in total.by_relation.values()] == [0.1, 0.1]


def test_more_known_margins_convert_and_fewer_do_not():
    known = Cost(0.4, relation=Relation("known", known=("1", "a[x]")))
    assert known.under(Relation("known", known=("a",))).epsilon == 0.4
    with pytest.raises(LedgerError, match="Name all known margins"):
        known.under(Relation("known", known=("b",)))
