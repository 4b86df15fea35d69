"""The battery catches every lie it is told, and believes the truth."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.protect import SeededDraws, mean_p
from discreet.protect.sentences import claim_sentences, limit, process, statement_of
from discreet.tables import CellStatus, CellValues, Claims, Protected, Statement, Step
from discreet.testing import (
    BrokenPromiseError,
    by_cell,
    check_method,
    chi_square,
    chi_square_p,
    retabulate,
    sample_table,
)

HONEST = Claims(additive=False, unbiased=True, keeps_zeros=True, max_move=2, variance=2.0)
DRAWS = 20_000


def stated(claims):
    """A complete statement: what was done, what is claimed, and what is not protected."""
    said = [
        process("noise", "Noise.", "Noise."),
        *claim_sentences(claims, "count"),
        limit("more", "More."),
    ]
    return statement_of("steps", {"reach": 2}, said)


class Steps:
    """Noise -2..2 on positive counts by a hash of the key, uniform, unless told otherwise."""

    name, source = "steps", "keys"

    def __init__(self, claims=HONEST, shift=0.0, spread=1.0, change=None):
        self.claims, self.shift, self.spread, self.change = claims, shift, spread, change

    def __call__(self, table, *, draws):
        return self.moved(table, table.secret.mix_keys(table.cell_keys, self.name) / 2**32)

    def moved(self, table, u):
        moves = np.searchsorted(np.cumsum(self.law)[:-1], u, side="right") - 2
        z = np.where(table.z == 0, 0, np.maximum(table.z + moves, 0))
        if self.change is not None:
            z = self.change(table, z, u)
        return Protected.of(table.design, z, stated(self.claims))

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
    dc.Table.from_inner(
        TABLE.design, replace(TABLE.inner, count=np.where(TABLE.y > 0, TABLE.y + 3, 0))
    ),
    data_set=TABLE.data_set,
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


@pytest.mark.slow
@pytest.mark.parametrize("claimed", [1.9, 2.1])
def test_a_wrong_claim_about_the_variance_is_caught(claimed):
    assert broken(Steps(replace(HONEST, variance=claimed)), draws=100_000) == {
        "variance",
        "sentences",
    }


class Lawful(Steps):
    def cell_law(self, table, position):
        if table.z[position] == 0:
            return np.zeros(1), np.ones(1)
        return np.arange(-2, 3), np.full(5, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "spread"), [(0.3, 1.0), (-0.3, 1.0), (0.0, 0.8), (0.0, 1.2)])
def test_a_law_that_is_not_followed_is_caught(shift, spread):
    claims = Claims(additive=False, unbiased=False, keeps_zeros=True)
    method = Lawful(claims, shift=shift, spread=spread)
    assert broken(method, draws=100_000) == {"law"}
    assert "follow the law" in check_method(Lawful(claims), LARGE, draws=DRAWS)["law"]


def test_a_wrong_law_of_one_count_alone_is_caught():
    def change(table, z, u):
        return np.where(table.z == table.z.max(), table.z + np.floor(3 * u).astype(int) - 1, z)

    claims = Claims(additive=False, unbiased=True, keeps_zeros=True)
    assert broken(Lawful(claims, change=change)) == {"law"}


def one_zero_moves(table, z, u):
    z = z.copy()
    k = np.flatnonzero(table.z == 0)[0]
    z[k] = u[k] < 0.1
    return z


def one_cell_jumps(table, z, u):
    z = z.copy()
    z[-1] = table.z[-1] + (3 if u[-1] < 0.05 else 0)
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

    def touch(_, z, u):
        table.published.count[-1] += 1
        return z

    claims = Claims(additive=False, unbiased=False, keeps_zeros=False)
    assert "untouched input" in broken(Steps(claims, change=touch), table, draws=10)


class FromKeys(Steps):
    """Noise from keys, with one lie."""

    source = "keys"

    def __init__(self, lie):
        super().__init__(Claims(False, False, False, consistent=True))
        self.lie = lie

    def __call__(self, table, *, draws):
        design = table.design
        noise = table.cell_keys % 5
        if self.lie == "place":
            noise = np.arange(len(noise)) % 5 + noise
        if self.lie == "table":
            noise = noise + design.n_published
        if self.lie == "fixed":
            noise = table.z % 3
        if self.lie == "system":
            noise = noise + np.frombuffer(os.urandom(len(noise)), np.uint8) % 3
        return Protected.of(design, table.z + noise, stated(self.claims))

    def cell_law(self, table, position):
        return None


@pytest.mark.parametrize(
    ("told", "caught"),
    [
        ("place", {"order of variables", "consistent", "sentences"}),
        ("table", {"consistent", "sentences"}),
        ("fixed", {"source"}),
        ("system", {"repeatable", "order of variables", "consistent", "sentences"}),
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

    def __call__(self, table, *, draws):
        rng = np.random.default_rng(1 if self.seeded else None)
        return self.moved(table, rng.random(len(table.z)))


def test_noise_of_the_system_must_not_be_repeatable():
    """Neither states a guarantee, as a method that draws from the system must."""
    assert broken(FromSystem(True), draws=100) == {"repeatable", "source", "likelihood ratio"}
    assert broken(FromSystem(False), draws=100) == {"likelihood ratio"}


class ForTheTable(Steps):
    """Draws for the whole table, from the secret, or from what it likes instead."""

    source = "table"

    def __init__(self, instead=None):
        super().__init__(Claims(False, False, False))
        self.instead = instead

    def __call__(self, table, *, draws):
        rng = draws.generator(self, table)
        if self.instead is not None:
            rng = np.random.default_rng(None if self.instead == "chance" else 1)
        first = table.design.duplicates()
        return self.moved(table, rng.random(len(table.z))[first])


def test_a_method_that_draws_for_the_table_must_draw_from_the_secret_alone():
    check_method(ForTheTable(), LARGE, draws=100)
    assert broken(ForTheTable("chance"), draws=100) == {"repeatable", "order of variables"}
    assert broken(ForTheTable("seed"), draws=100) == {"source"}


def test_an_unknown_source_is_refused():
    class Lucky(Steps):
        source = "luck"

    with pytest.raises(dc.DiscreetError, match="'keys', 'table' or 'system', got 'luck'"):
        check_method(Lucky(Claims(False, False, False)), LARGE, draws=100)


COMPLETE = stated(Claims(False, False, False))


@pytest.mark.parametrize(
    "statement",
    [
        replace(COMPLETE, steps=(replace(COMPLETE.steps[0], name="protect:other"),)),
        Statement((Step("protect:steps", {}, (limit("more", "More."),)),), version="1"),
        statement_of("steps", {}, [process("noise", "Noise.", "Noise.")]),
        replace(COMPLETE, version=""),
    ],
    ids=["another name", "nothing for visitors", "no limits", "no version"],
)
def test_an_incomplete_statement_is_caught(statement):
    class Silent(Steps):
        def __call__(self, table, *, draws):
            return replace(super().__call__(table, draws=draws), statement=statement)

    assert broken(Silent(Claims(False, False, False)), draws=100) == {"statement"}


def test_hidden_cells_are_not_held_against_a_method():
    class Hiding(Steps):
        def __call__(self, table, *, draws):
            release = super().__call__(table, draws=draws)
            small = release.z < 10
            status = np.where(small, CellStatus.below_threshold, 0).astype(np.int8)
            return replace(release, z=np.where(small, 0, release.z), status=status)

    claims = replace(HONEST, unbiased=False, variance=None, blocked=tuple(range(1, 10)))
    check_method(Hiding(claims), LARGE, draws=1000)


def test_what_a_table_cannot_show_is_said():
    design = dc.Design.from_matrix(np.array([[1, 1], [1, 0]]))
    table = dc.Table.from_inner(design, CellValues(np.array([8, 9]), key=np.array([1, 2])))
    found = check_method(Steps(), table, draws=1000)
    assert found["keeps zeros"].startswith("not exercised")
    assert found["variance"].startswith("not exercised")


def test_a_table_tabulated_again_holds_the_same_cells():
    again = retabulate(TABLE, [("age", "region")])
    draws = SeededDraws(1)
    release = Steps()(again.with_secret(draws.table(again).secret), draws=draws)
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
    assert mean_p(values) == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert mean_p(np.zeros(5)) == 1
    assert mean_p(np.ones(5)) == 0
