"""Two editions of a table builder that differ by one person.

No mode hides this: the lift over guessing is measured and printed for both. What prevents it is the
ledger, which refuses an edition that differs from another by so few people.
"""

import sys

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import LedgerError, ParameterError
from discreet.ledger import Ledger
from discreet.publication import Choice, Publication
from discreet.serve import LiveSource, write_build
from discreet.serve.build import inner_table, repeated_table
from tests.attacks.builders import LIVE, NAMES, SIZES, People, Visitor, leaves, live, once
from tests.attacks.victims import SECRET

TABLES = ["rows=region&columns=age&layers=sex", "rows=region&columns=age", "rows=sex&columns=age"]
TRIALS = 30
TREES = {v: dc.Hierarchy.flat([f"{v}{i}" for i in range(n)]) for v, n in SIZES.items()}


def evidence(before, after, person):
    """How far figures of the cells that a person is in fell, over all tables of a visitor."""
    fall = 0.0
    for address in TABLES:
        one, two = before.ask(address), after.ask(address)
        place = tuple(axis.place(person[axis.name]) for axis in one.axes)
        fall += float(one.values[place] - two.values[place])
    return fall


def lift(mode, are_same=False, seed=1):
    """How much more often than by guessing a visitor tells which of two persons has left.

    Args:
      mode: Makes the data set.
      are_same: Whether the two editions hold the same people, the control: nobody has left.
      seed: Draws people and candidates.
    """
    people, rng = People.drawn(seed=seed), np.random.default_rng(seed)
    before, right = Visitor(mode(people)), 0.0
    for _ in range(TRIALS):
        gone, stayed = rng.choice(len(people.ids), 2, replace=False)
        next_one = people if are_same else people.without(gone)
        after = Visitor(mode(People(next_one.codes, next_one.ids, "2")))
        of_gone = evidence(before, after, people.cell(gone))
        of_stayed = evidence(before, after, people.cell(stayed))
        right += 0.5 if of_gone == of_stayed else float(of_gone > of_stayed)
    return right / TRIALS - 0.5


@pytest.mark.parametrize("mode", [once, live], ids=["release-once", "on-the-fly"])
def test_the_lift_of_one_person_less_is_measured(mode, record_property, capsys):
    """Both are far from guessing: this is what the ledger is for."""
    control, found = lift(mode, are_same=True), lift(mode)
    record_property("lift", float(found))
    with capsys.disabled():
        sys.stdout.write(f"\nwho of two has left, {mode.__name__}: {found:+.2f} over guessing\n")
    assert abs(control) < 0.25
    assert 0.1 < found <= 0.5


def test_kept_keys_show_every_attribute_of_who_left():
    """On the fly, only the cells of the person who left have changed."""
    people, found = People.drawn(), 0
    before = Visitor(live(people)).ask(TABLES[0])
    chosen = range(0, len(people.ids), 20)
    for gone in chosen:
        after = Visitor(live(people.without(gone))).ask(TABLES[0])
        changed = np.nonzero(before.values != after.values)
        seen = [
            {axis.codes[k] for k in where} - {axis.codes[0]}
            for axis, where in zip(before.axes, changed, strict=True)
        ]
        found += seen == [{people.cell(gone)[name]} for name in NAMES]
    assert found > 0.9 * len(chosen)


def test_the_ledger_refuses_an_edition_with_one_person_less(tmp_path):
    """A site whose records name a ledger neither builds nor starts with such an edition."""
    people, ledger = People.drawn(), Ledger(tmp_path / "ledger.db")
    codes = {name: [f"{name}{c}" for c in people.codes[k]] for k, name in enumerate(NAMES)}
    frame = pa.table({"pid": people.ids, **codes})

    def start(part, edition, ids="pid"):
        data = dc.open(part, id=ids, name="census", edition=edition, ledger=ledger, secret=SECRET)
        return LiveSource(LIVE, data.with_hierarchies(TREES))

    before = start(frame, "1")
    before.cube(NAMES[:2], "count")  # lies in what was entered when the source started
    with pytest.raises(LedgerError, match=r"age\*region\*sex.*min_changed"):
        start(frame.slice(1), "2")
    again = frame.slice(1).set_column(0, "pid", pa.array(people.ids[1:][::-1] + 10**6))
    with pytest.raises(LedgerError, match="min_changed"):
        start(again, "2")
    start(frame.slice(100), "2").cube(NAMES[:1], "count")


def office(edition, editions, start=0, **options):
    """Records of an edition as an office opens them."""
    people = People.drawn()
    codes = {n: [f"{n}{c}" for c in people.codes[k]] for k, n in enumerate(NAMES)}
    frame = pa.table({"pid": people.ids, **codes}).slice(start)
    lists = {name: dc.Hierarchy.flat(leaves(name)) for name in NAMES}
    return dc.open(
        frame, id="pid", name="census", edition=edition, editions=editions,
        secret=dc.Secret(b"of the office, and of nobody else"), hierarchies=lists, **options,
    )  # fmt: skip


def test_a_phased_build_is_repeated_until_it_is_due(tmp_path):
    """Released once: two visitors of editions 1 and 4 see the same figures, that of 5 sees new."""
    recipe, seen = Publication("region*age*sex", Choice("safe", {})), []
    for number in range(1, 6):
        data = office(str(number), "phased:4", start=20 * number)
        table = repeated_table(recipe, data, tmp_path / "census", str(number))
        is_repeated = table is not None
        table = table or inner_table(recipe, data, str(number))
        assert (table.edition, table.made_from) == (str(number), str(number))
        assert table.statement.says("repeated") == is_repeated
        write_build(table, tmp_path / "census")
        seen.append(table.margin(NAMES))
    assert all((figures == seen[0]).all() for figures in seen[1:4])
    assert (seen[4] != seen[0]).any()
    other = Publication("region*age*sex", Choice("small-count-rounding", {"force_inner": True}))
    data = office("6", "phased:4", start=200)
    assert repeated_table(other, data, tmp_path / "census", "6") is None
    assert repeated_table(recipe, office("6", "fresh"), tmp_path / "census", "6") is None


def test_on_the_fly_editions_are_drawn_afresh_and_nothing_is_repeated():
    recipe = Publication("region*age*sex", Choice("cell-key", {"D": 5, "V": 3, "js": 2}))
    source = LiveSource(recipe, office("1", "phased"))
    assert source.statement.steps[0].parameters["keys"] == "fresh"
    with pytest.raises(ParameterError, match="when somebody asks"):
        LiveSource(recipe, office("1", "phased:4"))
    for mode in ("kept", "renewed:0.05"):
        assert LiveSource(recipe, office("1", mode)).statement.steps[0].parameters["keys"] == mode
