"""Audits from records to files and through the table builder: true statements stand, faults fall.

Noise is the operating system's, so every audit is another one; a true ε is refuted in one of a
thousand of them at most, and the planted faults are large.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.attacks import audit_privacy
from discreet.attacks.privacy_audit import ALONE, PARTS, Victim, figures_of, games_named
from discreet.facade import read_release
from discreet.ledger import Ledger
from discreet.publication import Choice, Publication
from discreet.serve import DiskCache, PrivateSource, RecipeTables
from discreet.tables import Bounds
from tests.attack.test_privacy_game import TooSure

GAMES, MARGINS = 8_000, [("game", "part"), ("game",)]
HEAVY = Victim(weight=1_000.0, counted=2.0)
SOUND = {
    "laplace": dc.Laplace(1.0),
    "discrete-laplace": dc.DiscreteLaplace(1.0),
    "discrete-gaussian": dc.DiscreteGaussian(epsilon=1.0, delta=1e-3),
}


def lists():
    return {
        "game": dc.Hierarchy.flat(games_named(GAMES), "all"),
        "part": dc.Hierarchy.flat(list(PARTS), "both"),
    }


def through_files(folder, method, *, declared=True, unit=None, tables=None, times=1):
    """Records to a CSV file, and back from it, as a reader would."""
    number = itertools.count()

    def publish(records):
        data = dc.open(records.without("weight"), id="id", hierarchies=lists())
        if tables is not None:
            table = tables(records)
        elif declared:
            table = data.tabulate(MARGINS)
        else:  # the codes that came with the records, passed off as a code list
            frame = records.to_arrow().group_by(["game", "part"]).aggregate([("id", "count")])
            table = dc.Table.from_counts(frame, "id_count", MARGINS, declared=True)
        found = []
        for _ in range(times):
            path = folder / f"{next(number)}.csv"
            table.protect(method, unit=unit).save(path)
            found.append(figures_of(read_release(path)))
        return found

    return publish


def through_the_builder(folder, method, margins):
    """Every table that a universe of private tables answers with."""

    def publish(records):
        ledger = Ledger(folder / "ledger.db", epsilon=9.0)
        data = dc.open(
            records.without("weight"), id="id", hierarchies=lists(), name="games",
            ledger=ledger,
        )  # fmt: skip
        source = PrivateSource(
            RecipeTables(Publication(margins, method), data), DiskCache(folder / "shelf", "a")
        )
        return [figures_of_cube(source.cube(term, "count")) for term in source.universe]

    return publish


def figures_of_cube(cube):
    names, found = [axis.name for axis in cube.axes], {}
    for place in np.ndindex(*cube.values.shape):
        entries = [axis.entries[k] for axis, k in zip(cube.axes, place, strict=True)]
        said = {n: "" if e.is_total else e.code for n, e in zip(names, entries, strict=True)}
        found[said["game"], said.get("part", "")] = float(cube.values[place])
    return found


def weighted(bound):
    """Tables whose statement bounds weights by 2, and whose weights are bounded or not."""

    def tabulate(records):
        data = dc.open(records, id="id", hierarchies=lists())
        table = data.with_roles(weight="weight", weight_bound=bound).tabulate(MARGINS)
        return replace(table, data_set=replace(table.data_set, bounds=Bounds(weight=2.0)))

    return tabulate


def test_every_private_method_is_audited():
    """A new one that nobody plays against would be believed by its statement."""
    private = {
        n
        for n in registry.names("method")
        if getattr(registry.load("method", n), "source", "") == "system"
    }
    assert private == set(SOUND)


@pytest.mark.parametrize("victim", [Victim(), ALONE], ids=["in company", "alone"])
@pytest.mark.parametrize("method", SOUND.values(), ids=SOUND)
def test_what_a_private_method_states_holds_from_records_to_files(tmp_path, method, victim):
    stated = 1.0, getattr(method, "delta", None) or 0.0
    found = audit_privacy(
        through_files(tmp_path, method), *stated, victim=victim, games=GAMES, seed=1
    )
    assert not found.is_refuted
    assert found.finding.success > 0.5
    if method.name != "discrete-gaussian" and victim != ALONE:
        assert found.at_least > 0.2


def test_bounded_weights_hold_what_they_state(tmp_path):
    method = dc.DiscreteLaplace(1.0)
    sound = through_files(tmp_path, method, unit="weight", tables=weighted(2.0))
    assert not audit_privacy(sound, 1.0, victim=HEAVY, games=GAMES, seed=1).is_refuted
    unclamped = through_files(tmp_path, method, unit="weight", tables=weighted(None))
    found = audit_privacy(unclamped, 1.0, victim=HEAVY, games=GAMES, seed=1)
    assert found.is_refuted
    assert found.at_least > 3


def test_a_wrong_sensitivity_is_caught(tmp_path):
    found = audit_privacy(through_files(tmp_path, TooSure(1.0)), 1.0, games=GAMES, seed=1)
    assert found.is_refuted


def test_a_budget_that_pays_for_two_draws_is_caught(tmp_path):
    twice = through_files(tmp_path, dc.DiscreteLaplace(1.0), times=2)
    assert audit_privacy(twice, 1.0, games=GAMES, seed=1).is_refuted
    assert not audit_privacy(twice, 2.0, games=GAMES, seed=1).is_refuted


def test_a_label_that_comes_with_one_record_is_caught(tmp_path):
    found = audit_privacy(
        through_files(tmp_path, dc.DiscreteLaplace(1.0), declared=False),
        1.0, victim=ALONE, games=GAMES, seed=1,
    )  # fmt: skip
    assert found.is_refuted
    assert found.at_least > 4


def test_the_universe_of_the_builder_costs_what_its_ledger_says(tmp_path):
    """The table brings its totals, and two of its four margins tell of a game."""
    method = Choice("discrete-laplace", {"epsilon": 2.0})
    publish = through_the_builder(tmp_path, method, [("game", "part"), ("game",)])
    found = audit_privacy(publish, 2.0, games=GAMES, seed=1)
    assert Ledger(tmp_path / "ledger.db").spent("games").epsilon == pytest.approx(2.0)
    assert 0.4 < found.at_least <= 2.0
