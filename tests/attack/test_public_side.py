"""Somebody else's attack that tries to cheat reaches no truth, spoils nothing, and is caught."""

import gc
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np
import pytest

import discreet as dc
from discreet.attacks import Claims, Knowledge
from discreet.attacks.custodian import Custodian
from discreet.errors import ParameterError
from discreet.records.secret import Secret
from discreet.tables.truth import TrueTable
from tests.attacks.test_large_units import firms
from tests.attacks.victims import PTABLE, country

TABLE = country(mean=4.0)
METHOD = dc.CellKey(PTABLE)
CODE = (ModuleType, type, FunctionType, BuiltinFunctionType)


class Cheat:
    """Claims the values as they stand, after a trick."""

    name = "cheat"

    def __init__(self, trick=None):
        self.trick = trick

    def __call__(self, release, knowledge, *, rng):
        if self.trick is not None:
            return self.trick(release, knowledge)
        return Claims.ranked(range(len(release.z)), release.z.tolist(), -release.z)


def reachable(*roots):
    """Everything that some objects lead to; code is no data, and leads to every module."""
    seen, waiting = {}, list(roots)
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, CODE):
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    return seen.values()


def is_true(each):
    if isinstance(each, np.ndarray):
        return any(np.array_equal(each, true) for true in (TABLE.z, TABLE.y, TABLE.cell_keys))
    return isinstance(each, TrueTable | Custodian | Secret)


class Searcher(Cheat):
    """Looks through everything that it was handed."""

    def __init__(self, about="cells"):
        super().__init__()
        self.about, self.found, self.looked = about, [], 0

    def __call__(self, release, knowledge, *, rng):
        every = reachable(release, knowledge, rng)
        self.looked += len(every)
        self.found += [each for each in every if is_true(each)]
        return Claims.ranked([], [], [])


@pytest.mark.parametrize("about", ["cells", "inner", "attributes"])
@pytest.mark.parametrize("draw", [TABLE.protect, lambda m: TABLE.simulate(m, seed=1)])
def test_nothing_that_an_attack_is_handed_leads_to_the_truth(draw, about):
    searcher = Searcher(about)
    earlier = Knowledge(earlier=(TABLE.simulate(METHOD, seed=2),))
    dc.attack(TABLE, draw(METHOD), searcher, knowledge=earlier)
    assert searcher.looked > 1_000
    assert not searcher.found
    # the planted fault: knowledge that carries the table
    leaking = replace(earlier, extra={"note": lambda: None, "kept": [TABLE]})
    dc.attack(TABLE, draw(METHOD), searcher, knowledge=leaking)
    assert searcher.found


def test_an_attack_spoils_no_release():
    release = TABLE.protect(METHOD)
    before = release.z.copy()

    def wipe(seen, knowledge):
        seen.z[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        dc.attack(TABLE, release, Cheat(wipe))
    assert (release.z == before).all()
    release.z[0] = before[0]  # its owner may still write

    def wipe_records(seen, knowledge):
        seen.frame["sales"] = 0.0
        return Claims.ranked([], [], [])

    frame = firms(1.0, n=60)
    made = dc.synthesize(frame, "sales ~ size", simulate=True, seed=1)
    spoiler = Cheat(wipe_records)
    spoiler.about, spoiler.within = "units", 0.1
    dc.attack(frame, made, spoiler)
    assert (made.frame["sales"] != 0).all()


class Yes:
    """Equal to everything."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return True


class Whole(int):
    """A number that is equal to everything."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (Claims.ranked([0, 1], [Yes(), Yes()], [1, 1]), "has Yes as the value"),
        (Claims.ranked([0], [Whole(3)], [1]), "has Whole as the value"),
        (Claims.ranked([0], [(1, (Yes(),))], [1]), "has Yes as the value"),
        (Claims.ranked([Yes()], [1], [1]), "has Yes as the target"),
        (Claims.ranked([0] * 500, [0] * 500, np.ones(500)), "makes several claims"),
        ([(0, 1)], "returned list"),
    ],
)
def test_claims_that_are_right_without_being_so_are_refused(claims, said):
    with pytest.raises(ParameterError, match=f"'cheat' {said}"):
        dc.attack(TABLE, TABLE.protect(METHOD), Cheat(lambda *_: claims))


def test_parameters_that_are_not_known_are_not_handed_out():
    release, kept = TABLE.protect(METHOD), Knowledge(parameters=False)
    said = []
    spy = Cheat(lambda seen, _: said.append(seen.statement) or Claims.ranked([], [], []))
    dc.attack(TABLE, release, spy, knowledge=kept)
    assert not set(said[0].steps[-1].parameters) & {"D", "V", "js", "matrix"}
    found = dc.attack(TABLE, release, ["bounds", "group-attributes"], knowledge=kept)
    assert "does not tell the law" in found.passed_over["bounds"]
    assert "group-attributes" in found, "the values themselves need no parameter"
    assert "bounds" in dc.attack(TABLE, release, ["bounds"])
