"""Every registered method keeps every law, and each law catches the fault it is there for."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreteLaplace, registry
from discreet.design import ProductDesign
from discreet.errors import DiscreetError
from discreet.protect.sentences import claim_sentences, limit, process, statement_of
from discreet.tables import CellStatus, Claims, Protected
from discreet.testing import (
    Broken,
    BrokenPromiseError,
    ReleaseEvidence,
    check_method,
    check_sentences,
    retabulate,
    sample_table,
)
from discreet.testing.laws import neighbours
from tests.protect.methods import ALL, DRAWING, FOR_COUNTS, PTABLE, REGISTERED, VARIANTS, quick
from tests.protect.tables import keyed_party

LAWS = {"sentences", "neighbour", "hidden", "secret", "likelihood ratio"}
TABLE = sample_table()


def test_every_registered_method_is_held_to_the_laws():
    assert set(REGISTERED) == set(registry.METHODS)
    for name, method in REGISTERED.items():
        assert isinstance(method, registry.load("method", name))


TWO_WAY = retabulate(TABLE, [("age", "region[leaves]"), ("age",), ("region[leaves]",), ()])
TABLES = {  # where a method is quick, and where it has a choice to draw
    "controlled-rounding": TWO_WAY,
    "small-count-rounding": keyed_party(),
    "forced rounding": keyed_party(),
    "suppressed at least cost": TWO_WAY,
    "suppressed as decimals": TWO_WAY,
}
HELD = [*FOR_COUNTS, *(name for name in VARIANTS if VARIANTS[name].source != "system")]


@pytest.mark.parametrize("name", HELD)
def test_every_method_keeps_its_promises_and_every_law(name):
    found = check_method(quick(ALL[name]), TABLES.get(name, TABLE), draws=500)
    assert set(found) >= LAWS
    is_exempt = "neighbour" in ALL[name].claims.follows_truth
    assert ("exempt" if is_exempt else "alike") in found["neighbour"]
    if name not in DRAWING:
        assert "nothing is drawn" in found["secret"]
    elif ALL[name].source == "system":
        assert "guarantee" in found["likelihood ratio"]
    else:
        assert "uncorrelated" in found["secret"]


def test_hidden_cells_are_put_to_the_test_where_there_are_some():
    found = check_method(ALL["cell-key with threshold"], TABLE, draws=500)
    assert "hidden cells show nothing" in found["hidden"]


def test_weighted_counts_keep_the_laws_too():
    table = sample_table(weights=True, unit="weight")
    for method in (dc.CellKey(PTABLE, grid=30), dc.DropAdd(grid=12.5)):
        found = check_method(method, table, draws=500)
        assert "alike" in found["neighbour"]


def test_neighbours_differ_by_one_record():
    for other in neighbours(TABLE):
        assert 1 <= np.abs(other.y - TABLE.y).sum() <= 2
        assert np.abs(other.y - TABLE.y).max() == 1
        np.testing.assert_array_equal(other.design.aggregate(other.y), other.z)


HONEST = Claims(additive=False, unbiased=True, keeps_zeros=False, max_move=2)


def stated(claims=HONEST, more=(), privacy=None, parameters=None):
    said = [process("noise", "Noise.", "Noise."), *claim_sentences(claims, "count"), *more]
    said.append(limit("rest", "The rest."))
    return statement_of("planted", parameters or {}, said, privacy)


@dataclass(frozen=True)
class Planted:
    """Honest noise -2..2 by a hash of the key, with one fault that is planted."""

    fault: str = "none"

    name = "planted"
    source = "keys"
    claims = HONEST

    def __call__(self, table, *, draws):
        keys = table.secret.mix_keys(table.cell_keys + 7 * (table.z == 0), self.name)
        if self.fault == "fixed noise":
            keys = table.secret.mix_keys(np.arange(len(table.z)), self.name)
        z = table.z + keys % 5 - 2
        made = Protected.of(table.design, z, stated())
        fault = getattr(self, f"_{self.fault.replace(' ', '_')}", None)
        return made if fault is None else fault(table, made)

    def _printed_count(self, table, made):
        return replace(made, statement=stated(parameters={"largest": int(table.y.max())}))

    def _counted_zeros(self, table, made):
        text = process("zeros", f"{int((table.y == 0).sum())} cells are empty.")
        return replace(made, statement=stated(more=[text]))

    def _narrow_type(self, table, made):
        return replace(made, z=made.z.astype(np.int64 if table.y.max() < 421 else np.float64))

    def _true_error(self, table, made):
        if table.y.max() > 420:
            error = DiscreetError("a cell has more than 420 records.")
            error.is_public = True
            raise error
        return made

    def _true_precision(self, table, made):
        return replace(made, precision=1 / (1.0 + table.z))

    def _true_status(self, table, made):
        small = np.where(table.z == 1, CellStatus.suppressed, CellStatus.published)
        return replace(made, status=small.astype(np.int8))

    def _hidden(self, table, made):
        small = made.z < 20
        status = np.where(small, CellStatus.below_threshold, 0).astype(np.int8)
        return replace(made, z=np.where(small, 0, made.z), status=status)

    def _hidden_values(self, table, made):
        hidden = self._hidden(table, made)
        return replace(hidden, z=made.z)

    def _hidden_quality(self, table, made):
        return replace(self._hidden(table, made), quality=np.minimum(table.z, 3))

    def _stale_sentence(self, table, made):
        claims = Claims(additive=False, unbiased=False, keeps_zeros=True)
        more = claim_sentences(claims, "count")[:1]
        return replace(made, statement=stated(more=more))

    def _untestable_sentence(self, table, made):
        bare = replace(claim_sentences(HONEST, "count")[0], holds=None, text="All is well.")
        return replace(made, statement=stated(more=[bare]))

    def _new_label(self, table, made):
        if not isinstance(made.design, ProductDesign):
            return made
        axis = replace(made.design.axes[1], total=f"Total of {int(table.y.max())}")
        axes = [made.design.axes[0], axis, made.design.axes[2]]
        return replace(made, design=ProductDesign(axes, made.design.terms))


CAUGHT = {
    "fixed noise": {"order of variables", "secret"},
    "printed count": {"neighbour"},
    "counted zeros": {"neighbour"},
    "narrow type": {"neighbour"},
    "true error": {"neighbour"},
    "true precision": {"neighbour"},
    "true status": {"neighbour"},
    "hidden values": {"hidden"},
    "hidden quality": {"hidden"},
    "stale sentence": {"sentences"},
    "untestable sentence": {"sentences"},
    "new label": {"neighbour"},
}


def broken(method, table=TABLE, draws=2_000):
    with pytest.raises(BrokenPromiseError) as caught:
        check_method(method, table, draws=draws)
    return set(caught.value.broken)


@pytest.mark.parametrize("fault", ["none"])
def test_the_planted_method_is_honest_without_its_fault(fault):
    check_method(Planted(fault), TABLE, draws=2_000)


@pytest.mark.parametrize("fault", CAUGHT)
def test_each_fault_is_caught_by_the_law_that_is_there_for_it(fault):
    found = broken(Planted(fault)) - {"unbiased"}
    assert found & LAWS == CAUGHT[fault] & LAWS, found
    assert found - LAWS <= CAUGHT[fault] - LAWS | {"largest move", "source"}


def test_hiding_by_the_published_value_is_no_fault():
    found = check_method(Planted("hidden"), TABLE, draws=500)
    assert "hidden cells show nothing" in found["hidden"]


def test_noise_that_ignores_the_table_is_caught_under_one_secret():
    """Two seeds for all tables of the world: other records share their noise."""

    @dataclass(frozen=True)
    class Shared:
        name = "planted"
        source = "keys"
        claims = replace(HONEST, unbiased=False)

        def __call__(self, table, *, draws):
            noise = table.secret.mix_keys(np.arange(len(table.z)), "noise") % 5 - 2
            return Protected.of(table.design, table.z + noise, stated(self.claims))

    assert "secret" in broken(Shared())


class Undercounting(DiscreteLaplace):
    """Noise for a record that counts once, stated as if it counted in every margin."""

    def draw(self, share, draws):
        return super().draw(replace_times(share, 1), draws)


def replace_times(share, times):
    return type(share)(share.cells, share.budget, times, share.unit)


class Overstating(DiscreteLaplace):
    """What holds for one record more or less is stated for one replaced as well."""

    def privacy(self, shares, unit):
        found = super().privacy(shares, unit)
        return replace(found, epsilon_replace=found.epsilon)


class Silent(DiscreteLaplace):
    """States no guarantee."""

    def _statement(self, *given):
        return replace(super()._statement(*given), privacy=None)


@pytest.mark.parametrize("planted", [Undercounting, Overstating, Silent])
def test_a_guarantee_that_does_not_hold_is_caught_by_its_likelihood_ratio(planted):
    method = planted(2.0, margins="summed" if planted is Overstating else "own")
    found = broken(method, draws=500)
    assert "likelihood ratio" in found
    assert not found & (LAWS - {"likelihood ratio"})


def test_evidence_judges_single_sentences():
    made = [Planted()(TABLE.with_secret(s), draws=None) for s in secrets(20)]
    evidence = ReleaseEvidence(TABLE.z, made, lambda: True)
    assert check_sentences(made[0].statement, evidence).endswith("are true")
    stale = Planted("stale sentence")(TABLE.with_secret(secrets(1)[0]), draws=None)
    with pytest.raises(Broken, match="True zeros are published as zeros"):
        check_sentences(stale.statement, evidence)


def secrets(n):
    return [dc.Secret(f"custodian number {k} has a secret of their own".encode()) for k in range(n)]
