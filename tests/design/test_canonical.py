"""One order for every table: however it was written, it has the same release."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import LedgerError
from discreet.protect.draws import SecretDraws
from discreet.tables import DataSet, Protected, Statement
from discreet.tables.canonical import as_requested, canonical_order, canonical_table, table_digest
from discreet.testing import by_cell, retabulate
from tests.protect.methods import TABLE_WISE
from tests.protect.tables import SECRET
from tests.strategies import designs

TREE = {"All": {"north": ["n1", "n2"], "south": ["s1", "s2", "s3"]}}
QUICK = ["safe", "small-count-rounding", "invariant pram", "realised pram", "adjust"]


def census(order=("region", "age", "sex"), margins=None, seed=None, **options):
    """Counts over three variables, rows and codes shuffled with a seed."""
    rng = np.random.default_rng(7)
    shape = {"region": ["n1", "n2", "s1", "s2", "s3"], "age": ["0-17", "18-64", "65+"]}
    shape["sex"] = ["f", "m"]
    codes = np.array(list(np.ndindex(*map(len, shape.values()))))
    frame = {name: np.array(shape[name])[codes[:, k]] for k, name in enumerate(shape)}
    frame["n"] = rng.poisson(rng.gamma(0.7, 5.0, len(codes)))
    frame["key"] = rng.integers(2**32, size=len(codes)) * (frame["n"] > 0)
    if seed is not None:
        shuffled = np.random.default_rng(seed).permutation(len(codes))
        frame = {name: column[shuffled] for name, column in frame.items()}
    chosen = "*".join(order) if margins is None else margins
    table = dc.Table.from_counts(
        {name: column.tolist() for name, column in frame.items()},
        "n",
        chosen,
        key="key",
        name="census",
        **options,
    )
    return table.with_secret(SECRET)


def same(one, other):
    """Whether two releases show the same cells with the same values."""
    return by_cell(one) == by_cell(other)


@pytest.mark.parametrize("name", TABLE_WISE)
def test_the_order_of_variables_and_rows_has_no_effect(name):
    method = TABLE_WISE[name]
    first = census().protect(method)
    orders = [("sex", "region", "age"), ("age", "sex", "region")]
    for seed, order in enumerate(orders if name in QUICK else orders[:1]):
        assert same(census(order, seed=seed).protect(method), first)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize(
    "options",
    [
        {"hierarchies": {"region": dc.Hierarchy.from_dict(TREE)}},
        {"structural_zeros": [{"age": "65+", "sex": "f", "region": "n2"}]},
        {"support": "occurring"},
    ],
    ids=["hierarchy", "structural zeros", "occurring"],
)
def test_nor_has_it_with_hierarchies_declared_zeros_and_found_support(name, options):
    method = TABLE_WISE[name]
    first = census(**options).protect(method)
    assert same(census(("sex", "age", "region"), seed=1, **options).protect(method), first)


@pytest.mark.parametrize("name", QUICK)
def test_neither_the_order_of_codes_nor_of_levels_has_an_effect(name):
    other = {"All": {"south": ["s3", "s1", "s2"], "north": ["n2", "n1"]}}
    releases = [
        census(hierarchies={"region": dc.Hierarchy.from_dict(tree)}).protect(TABLE_WISE[name])
        for tree in (TREE, other)
    ]
    assert same(*releases)
    assert releases[0].design.axes[0].leaves != releases[1].design.axes[0].leaves


def test_a_table_on_found_support_has_the_same_digest_and_a_release_of_its_own(tmp_path):
    """Some methods come out otherwise on another support, and two draws can be averaged."""
    margins = [("region", "age"), ("age", "sex"), ()]
    everything, occurring = (census(margins=margins, support=s) for s in ("all", "occurring"))
    assert table_digest(canonical_table(everything)) == table_digest(canonical_table(occurring))
    safe = TABLE_WISE["safe"]
    first, second = (by_cell(t.protect(safe)) for t in (everything, occurring))
    assert first == second
    everything.protect(safe, ledger=tmp_path / "ledger.db")
    with pytest.raises(LedgerError, match="again=True"):
        occurring.protect(safe, ledger=tmp_path / "ledger.db")


def test_formulas_that_mean_the_same_give_the_same_release():
    texts = ["region*age", "age*region", "region:age + region + age + 1", "age + region*age"]
    first, *others = (census(margins=text).protect(TABLE_WISE["safe"]) for text in texts)
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize(
    "other",
    [
        {"secret": dc.Secret(b"another secret of at least thirty-two bytes")},
        {"data_set": DataSet("other")},
        {"data_set": DataSet("census", "2")},
    ],
    ids=["secret", "name", "edition"],
)
def test_secret_name_and_edition_make_another_release(other):
    method = TABLE_WISE["invariant pram"]  # SAFE finds the same optimum of so small a table
    table = census()
    assert not same(table.protect(method), replace(table, **other).protect(method))


def test_other_parameters_and_other_margins_draw_anew():
    def draw(method, margins="region*age"):
        table = canonical_table(census(margins=margins))
        return SecretDraws().generator(method, table).integers(2**60)

    first = draw(dc.Safe())
    assert draw(dc.Safe()) == first
    assert draw(dc.Safe(), "age*region") == first
    others = [draw(dc.Safe(min_count=4)), draw(dc.ControlledRounding()), draw(dc.Safe(), "region")]
    assert len({first, *others}) == 4


@settings(max_examples=60)
@given(designs(), st.integers(0, 2**20))
def test_there_and_back_again(design, seed):
    """On any design the canonical table holds the same cells, and values come back in order."""
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.integers(0, 9, design.n_inner)).rekeyed(rng)
    order = canonical_order(design)
    if order is None:
        assert canonical_table(table) is table
        return
    ordered = canonical_table(table)
    np.testing.assert_array_equal(ordered.design.aggregate(ordered.y), ordered.z)
    keys = ordered.convention.reduce(ordered.design.aggregate(ordered.inner.key))
    np.testing.assert_array_equal(keys, ordered.cell_keys)
    again = canonical_table(ordered)
    np.testing.assert_array_equal(again.y, ordered.y)
    if design.support != "occurring":
        made = Protected(
            ordered.design, ordered.z, Statement(), y=ordered.y, precision=1.0 + ordered.z
        )
        back = as_requested(made, design)
        np.testing.assert_array_equal(back.z, table.z)
        np.testing.assert_array_equal(back.y, table.y)
        np.testing.assert_array_equal(back.precision, 1.0 + table.z)


@settings(max_examples=40)
@given(designs(), st.integers(0, 2**20))
def test_reversed_variables_have_the_same_digest(design, seed):
    if canonical_order(design) is None or not design.axes:
        return
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.integers(0, 4, design.n_inner))
    other = retabulate(table, design.terms)
    digests = [table_digest(canonical_table(t)) for t in (table, other)]
    assert digests[0] == digests[1]
    more = table.y.copy()
    more[0] += 1
    changed = dc.Table.from_inner(design, more)
    assert table_digest(canonical_table(changed)) != digests[0]


PROGRAM = """
import sys
from tests.design.test_canonical import census
from tests.protect.methods import TABLE_WISE
for name in sys.argv[1:]:
    print(census(("sex", "age", "region"), seed=3).protect(TABLE_WISE[name]).z.tolist())
"""


def test_another_process_with_other_hashes_and_threads_makes_the_same_release():
    names = ["safe", "small-count-rounding", "invariant pram", "adjust"]
    printed = []
    for hashes, threads in (("1", "1"), ("77", "2")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hashes,
            "NUMBA_NUM_THREADS": threads,
            "OMP_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *names],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        printed.append(done.stdout)
    here = [census(("sex", "age", "region"), seed=3).protect(TABLE_WISE[n]).z for n in names]
    assert printed[0] == printed[1]
    assert printed[0].splitlines() == [str(z.tolist()) for z in here]
