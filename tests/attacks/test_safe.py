"""SAFE's inner table beside what the true margins give: records found as they are."""

import re

import numpy as np

import discreet as dc
from discreet import margins
from tests.attacks.victims import flat_axes, keyed_table

SIZES = {"a": 8, "b": 6, "c": 4, "d": 4, "e": 2}
PEOPLE = 5_000


def population():
    """People of six kinds, whose variables hang together."""
    rng = np.random.default_rng(3)
    kind, codes = rng.integers(6, size=PEOPLE), []
    for n in SIZES.values():
        shares = rng.dirichlet(np.full(n, 0.5), size=6).cumsum(axis=1)
        codes.append((rng.random(PEOPLE)[:, None] > shares[kind]).sum(axis=1).clip(max=n - 1))
    shape = tuple(SIZES.values())
    counts = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape)))
    return keyed_table(counts, flat_axes(**SIZES), margins(list(SIZES), order=3))


def whole(y):
    """Whole people, as many as there are, by largest remainders."""
    down = np.floor(y + 1e-9)
    missing = round(float(y.sum() - down.sum()))
    down[np.argsort(down - y)[:missing]] += 1
    return down


def found(guess, truth):
    """The share of the records that are in a guessed inner table."""
    return float(np.minimum(guess, truth).sum() / truth.sum())


def test_the_inner_table_holds_more_records_than_the_true_margins_give(record_property):
    table = population()
    safe = table.protect(dc.Safe())
    fitted = dc.NonNegative()(table.design, table.z.astype(float))
    by_table, by_margins = found(safe.y, table.y), found(whole(fitted.y), table.y)
    record_property("records found: SAFE's inner table, true margins", str((by_table, by_margins)))
    assert by_table > by_margins + 0.01
    (said,) = (s.text for s in safe.statement.sentences if s.kind == "inner-table")
    for share in (by_table, by_margins):  # another draw moves them by less than a point
        assert any(abs(100 * share - int(n)) <= 1 for n in re.findall(r"(\d+) %", said))
