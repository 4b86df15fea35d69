"""The battery catches every lie it is told, and believes the truth."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.design.release import CellStatus, Statement, Step
from discreet.protect.claims import Claims
from discreet.testing import BrokenPromiseError, check_method
from discreet.testing.draws import (
    by_cell,
    chi_square,
    chi_square_p,
    mean_p,
    retabulated,
    sample_table,
)

HONEST = Claims(additive=False, unbiased=True, keeps_zeros=True, max_move=2, variance=2.0)
DRAWS = 20_000


class Steps:
    """Noise -2..2 on positive counts, uniform, unless told otherwise."""

    name, source = "steps", "seed"

    def __init__(self, claims=HONEST, shift=0.0, spread=1.0, change=None):
        self.claims, self.shift, self.spread, self.change = claims, shift, spread, change

    def __call__(self, table, *, rng):
        n = table.design.n_published
        first = table.design.duplicates()
        moves = rng.choice(5, n, p=self.law) - 2
        z = np.where(table.z == 0, 0, np.maximum(table.z + moves[first], 0))
        if self.change is not None:
            z = self.change(table, z, rng)
        statement = Statement((Step("protect:steps", {"reach": 2}),), "Noise.", version="1")
        return dc.Release.of(table.design, z, statement)

    @property
    def law(self):
        p = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
        p = p + self.shift * np.array([-1, 0, 0, 0, 1]) / 10
        return p + (self.spread - 1) * np.array([1, 0, -2, 0, 1]) / 10

    def cell_law(self, table, position):
        if table.z[position] < 2:
            return None
        return np.arange(-2, 3), np.full(5, 0.2)


TABLE = sample_table()
LARGE = replace(
    TABLE, published=replace(TABLE.published, count=np.where(TABLE.z > 0, TABLE.z + 3, 0))
)


def broken(method, table=LARGE, draws=DRAWS):
    with pytest.raises(BrokenPromiseError) as caught:
        check_method(method, table, draws=draws)
    assert method.name in str(caught.value)
    return set(caught.value.broken)


def test_an_honest_method_passes():
    found = check_method(Steps(), LARGE, draws=DRAWS)
    assert found["keeps zeros"] == "5 zeros stayed zero"
    assert "variance 2" in found["variance"] or "variance 1.9" in found["variance"]


@pytest.mark.parametrize("shift", [-0.3, 0.3])
def test_a_bias_in_either_direction_is_caught(shift):
    assert {"unbiased"} <= broken(Steps(shift=shift))


@pytest.mark.parametrize("spread", [0.8, 1.2])
def test_a_wrong_variance_in_either_direction_is_caught(spread):
    assert {"variance"} <= broken(Steps(spread=spread))


@pytest.mark.parametrize("claimed", [1.9, 2.1])
def test_a_wrong_claim_about_the_variance_is_caught(claimed):
    assert broken(Steps(replace(HONEST, variance=claimed)), draws=100_000) == {"variance"}


class Lawful(Steps):
    def cell_law(self, table, position):
        if table.z[position] == 0:
            return np.zeros(1), np.ones(1)
        return np.arange(-2, 3), np.full(5, 0.2)


@pytest.mark.parametrize(("shift", "spread"), [(0.3, 1.0), (-0.3, 1.0), (0.0, 0.8), (0.0, 1.2)])
def test_a_law_that_is_not_followed_is_caught(shift, spread):
    claims = Claims(additive=False, unbiased=False, keeps_zeros=True)
    method = Lawful(claims, shift=shift, spread=spread)
    assert broken(method, draws=100_000) == {"law"}
    assert "follow the law" in check_method(Lawful(claims), LARGE, draws=DRAWS)["law"]


def test_a_wrong_law_of_one_count_alone_is_caught():
    def change(table, z, rng):
        return np.where(table.z == table.z.max(), table.z + rng.integers(-1, 2, len(z)), z)

    claims = Claims(additive=False, unbiased=True, keeps_zeros=True)
    assert broken(Lawful(claims, change=change)) == {"law"}


def one_zero_moves(table, z, rng):
    z = z.copy()
    z[np.flatnonzero(table.z == 0)[0]] = rng.random() < 0.01
    return z


def one_cell_jumps(table, z, rng):
    z = z.copy()
    z[-1] = table.z[-1] + (3 if rng.random() < 0.05 else 0)
    return z


def touch(table, z, rng):
    table.published.count[-1] += 1
    return z


@pytest.mark.parametrize(
    ("method", "check"),
    [
        (Steps(replace(HONEST, additive=True)), "additive"),
        (Steps(change=one_zero_moves), "keeps zeros"),
        (Steps(change=one_cell_jumps), "largest move"),
        (Steps(replace(HONEST, max_move=1)), "largest move"),
        (Steps(replace(HONEST, blocked=(5,))), "blocked values"),
    ],
    ids=["additive", "zeros", "jumps", "moves", "blocked"],
)
def test_each_false_claim_is_caught(method, check):
    assert check in broken(method)


def test_a_touched_input_is_caught():
    published = replace(LARGE.published, count=LARGE.z.copy())
    table = replace(LARGE, published=published)
    claims = Claims(additive=False, unbiased=False, keeps_zeros=False)
    assert "untouched input" in broken(Steps(claims, change=touch), table, draws=10)


class FromKeys(Steps):
    """Noise from keys, with one lie."""

    source = "keys"

    def __init__(self, lie):
        super().__init__(Claims(False, False, False, consistent=True))
        self.lie = lie

    def __call__(self, table, *, rng=None):
        design = table.design
        noise = table.cell_keys % 5
        if self.lie == "generator" and rng is not None:
            noise = noise + rng.integers(0, 5, len(noise))
        if self.lie == "place":
            noise = np.arange(len(noise)) % 5 + noise
        if self.lie == "table":
            noise = noise + design.n_published
        if self.lie == "fixed":
            noise = np.zeros_like(noise)
        if self.lie == "system":
            noise = noise + np.frombuffer(os.urandom(len(noise)), np.uint8) % 3
        statement = Statement((Step("protect:steps"),), "Noise.", version="1")
        return dc.Release.of(design, table.z + noise, statement)

    def cell_law(self, table, position):
        return None


@pytest.mark.parametrize(
    ("told", "caught"),
    [
        ("generator", {"source"}),
        ("place", {"order of variables", "consistent"}),
        ("table", {"consistent"}),
        ("fixed", {"source"}),
        ("system", {"repeatable", "source", "order of variables", "consistent"}),
    ],
)
def test_a_method_by_key_must_depend_on_keys_and_nothing_else(told, caught):
    assert broken(FromKeys(told), TABLE, draws=100) == caught
    assert check_method(FromKeys("none"), TABLE, draws=100)["consistent"].startswith("cells")


class FromSystem(Steps):
    source = "system"

    def __init__(self, seeded):
        super().__init__(Claims(False, False, False))
        self.seeded = seeded

    def __call__(self, table, *, rng=None):
        root = 1 if self.seeded == "always" else None
        own = rng if self.seeded == "guided" and rng is not None else np.random.default_rng(root)
        return super().__call__(table, rng=own)


@pytest.mark.parametrize(
    ("seeded", "caught"), [("always", {"repeatable", "source"}), ("guided", {"source"})]
)
def test_noise_of_the_system_must_not_be_repeatable(seeded, caught):
    assert broken(FromSystem(seeded), draws=100) == caught
    check_method(FromSystem("never"), LARGE, draws=100)


class Impatient(Steps):
    """Draws without being given a stream."""

    def __call__(self, table, *, rng=None):
        return super().__call__(table, rng=rng or np.random.default_rng())


class Stubborn(Steps):
    """Ignores its stream."""

    def __call__(self, table, *, rng):
        return super().__call__(table, rng=np.random.default_rng(1))


class Lucky(Impatient):
    source = "luck"


def test_a_method_by_seed_must_draw_from_its_stream_alone():
    claims = Claims(False, False, False)
    assert broken(Impatient(claims), draws=100) == {"source"}
    assert broken(Stubborn(claims), draws=100) == {"source"}
    assert "source" in broken(Lucky(claims), draws=100)


@pytest.mark.parametrize(
    "statement",
    [
        Statement((Step("protect:other"),), "Noise.", version="1"),
        Statement((Step("protect:steps"),), "", version="1"),
        Statement((Step("protect:steps"),), "Noise.", version=""),
        Statement((Step("protect:steps", {"matrix": object()}),), "Noise.", version="1"),
    ],
    ids=["another name", "no text", "no version", "not plain"],
)
def test_an_incomplete_statement_is_caught(statement):
    class Silent(Steps):
        def __call__(self, table, *, rng):
            return replace(super().__call__(table, rng=rng), statement=statement)

    assert broken(Silent(Claims(False, False, False)), draws=100) == {"statement"}


def test_hidden_cells_are_not_held_against_a_method():
    class Hiding(Steps):
        def __call__(self, table, *, rng):
            release = super().__call__(table, rng=rng)
            small = release.z < 10
            status = np.where(small, CellStatus.below_threshold, 0).astype(np.int8)
            return replace(release, z=np.where(small, 0, release.z), status=status)

    claims = replace(HONEST, unbiased=False, blocked=(0, *range(1, 10)))
    check_method(Hiding(claims), LARGE, draws=1000)


def test_what_a_table_cannot_show_is_said():
    design = dc.Design.from_matrix(np.array([[1, 1], [1, 0]]))
    table = dc.Table.from_inner(design, np.array([8, 9]))
    found = check_method(Steps(), table, draws=1000)
    assert found["keeps zeros"].startswith("not exercised")
    assert found["variance"].startswith("not exercised")


def test_a_table_tabulated_again_holds_the_same_cells():
    again = retabulated(TABLE, [("age", "region")])
    release = Steps()(again, rng=np.random.default_rng(1))
    true = by_cell(replace(release, z=again.z))
    for cell, value in true.items():
        k = TABLE.design.position(dict(cell))
        assert (value, again.cell_keys[again.design.position(dict(cell))]) == (
            TABLE.z[k],
            TABLE.cell_keys[k],
        )


def test_the_statistics_are_those_of_the_textbook():
    drawn = np.repeat([0, 1, 2], [30, 50, 20])
    statistic, degrees = chi_square(drawn, np.arange(3), np.array([0.25, 0.5, 0.25]))
    assert (statistic, degrees) == (pytest.approx(1 + 0 + 1), 2)
    assert chi_square_p(2.0, 2) == pytest.approx(math.exp(-1))
    assert chi_square(drawn, np.arange(2), np.array([0.5, 0.5]))[0] == math.inf
    rare = np.array([0.25, 0.5, 0.24, 0.01])
    assert chi_square(drawn, np.arange(4), rare)[1] == 2
    values = np.array([1.0, 2.0, 3.0, 4.0])
    z = 2.5 / (np.std(values, ddof=1) / 2)
    assert mean_p(values) == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert mean_p(np.zeros(5)) == 1
    assert mean_p(np.ones(5)) == 0
