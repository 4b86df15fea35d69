"""A universe of private tables: exact losses through the builder, and what is said under tables."""

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.ledger import Ledger
from discreet.publication import Choice, Publication
from discreet.serve import DiskCache, PrivateSource, RecipeTables, texts
from discreet.serve.web.wording import statement_notes
from discreet.testing.exact_privacy import PrescribedNoise

LISTS = {name: dc.Hierarchy.flat(["1", "2"], "all") for name in "abc"}
K = 1000


def universe(folder, records, method, margins=(("a", "b"), ("c",))):
    frame = pa.table({name: [record[k] for record in records] for k, name in enumerate("abc")})
    ledger = Ledger(folder / "ledger.db", epsilon=9.0)
    data = dc.open(frame, hierarchies=LISTS, name="tiny", ledger=ledger)
    tables = RecipeTables(Publication(list(margins), method), data)
    return PrivateSource(tables, DiskCache(folder / "shelf", "a")), ledger


def drawn(source, monkeypatch):
    """True values and scales of everything that the universe publishes."""
    found = []
    for term in source.universe:
        probe = PrescribedNoise(K)
        monkeypatch.setattr("discreet.protect.publish.SecretDraws", lambda probe=probe: probe)
        values = source.cube(term, "count").values.ravel() - K
        ((_, scale, _),) = probe.asked
        found += [(float(value), scale) for value in values]
    return found


@pytest.mark.parametrize(
    ("there", "change", "is_worst"),
    [
        (["111", "122", "212"], "add-remove", True),
        (["111", "211"], "replace", True),
        (["111", "121"], "replace", False),
    ],
)
def test_tables_of_the_universe_cost_together_what_exact_losses_are(
    there, change, is_worst, tmp_path, monkeypatch
):
    method = Choice("discrete-laplace", {"epsilon": 0.5, "nonnegative": False})
    laws = []
    for k, records in enumerate((["111", "122"], there)):
        (tmp_path / str(k)).mkdir()
        source, ledger = universe(tmp_path / str(k), records, method)
        laws.append(drawn(source, monkeypatch))
    assert source.budget.spent == 1.0
    loss = sum(abs(a - b) / scale for (a, scale), (b, _) in zip(*laws, strict=True))
    stated = ledger.spent("tiny").under(change).epsilon
    assert loss == pytest.approx(stated) if is_worst else loss < stated


def test_figures_of_planned_tables_differ_and_the_note_says_so(tmp_path):
    """The same margin in two tables: the old note said that it is changed alike."""
    method = Choice("discrete-laplace", {"epsilon": 0.2})
    rng = np.random.default_rng(1)
    records = ["".join(map(str, row)) for row in rng.integers(1, 3, (400, 3))]
    source, _ = universe(tmp_path, records, method, [("a", "b"), ("b", "c")])
    one, two = (source.cube(term, "count") for term in source.universe)
    shared = one.at("a", "all"), two.at("c", "all")
    assert shared[0].axes[0].codes == shared[1].axes[0].codes == ("all", "1", "2")
    assert (shared[0].values != shared[1].values).any()  # alike in one run of ten thousand
    np.testing.assert_array_equal(source.cube(source.universe[0], "count").values, one.values)
    for language, true, false in (
        ("en", "may therefore differ from table to table", "in the same way in every table"),
        ("nb", "kan derfor være ulikt i ulike tabeller", "på samme måte i alle tabeller"),
    ):
        notes = statement_notes(one.statement, source.mode, texts(language))
        said = " ".join(s.text for note in notes for s in note.sentences)
        assert true in said
        assert false not in said
