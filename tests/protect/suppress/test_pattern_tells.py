"""What the pattern tells: costs from the secret, the program run on other tables, editions."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import Knowledge, Secret, registry
from discreet.assessment.audit import inversion
from discreet.publication import Publication, publish
from discreet.suppress.plan import draw_decoys, draw_factors
from tests.attacks.test_hidden_cells import public_bytes

COUNTS = np.array([[1, 3, 0, 21], [4, 6, 4, 6], [2, 11, 8, 13]])
METHOD = dc.Suppress(dc.rules.Threshold(3))
SECRET = Secret(b"a secret of thirty-two bytes, at least")
NOTHING = np.random.default_rng(0)


def flat(counts, margins="a*b"):
    """A table of two variables."""
    rows, columns = np.shape(counts)
    design = dc.Design.product({"a": rows, "b": columns}, margins)
    return dc.Table.from_inner(design, np.ravel(counts))


def all_tables(pattern):
    """Every table with the shown cells: free inner cells are tried one by one, others follow."""
    X, shown = pattern.design.matrix().toarray().astype(float), ~pattern.suppressed
    places = pattern.design.inner_in_published()
    cells = np.flatnonzero(pattern.suppressed[places])
    A, b = (
        X[cells][:, shown].T,
        pattern.z[shown]
        - X[:, shown].T @ np.where(np.isin(np.arange(len(X)), cells), 0, pattern.y),
    )
    _, _, v = np.linalg.svd(A)
    rank = np.linalg.matrix_rank(A)
    free = [k for k in range(len(cells)) if np.abs(v[rank:, k]).max() > 1e-9]
    chosen: list[int] = []
    for k in free:
        if np.linalg.matrix_rank(v[rank:][:, [*chosen, k]]) == len(chosen) + 1:
            chosen.append(k)
    found = set()
    rest = [k for k in range(len(cells)) if k not in chosen]
    for values in product(range(1, 26), repeat=len(chosen)):
        y = np.zeros(len(cells))
        y[chosen] = values
        y[rest] = np.linalg.lstsq(A[:, rest], b - A[:, chosen] @ values, rcond=None)[0]
        whole = np.rint(y)
        if np.allclose(y, whole) and (whole >= 1).all() and np.allclose(A @ whole, b):
            table = np.asarray(pattern.y).copy()
            table[cells] = whole
            if ((X.T @ table)[pattern.suppressed] >= 1).all():
                found.add(tuple(table.tolist()))
    return found


def test_without_a_secret_one_of_fifteen_tables_has_the_pattern():
    pattern = METHOD.pattern(flat(COUNTS))
    found = dc.audit(pattern, program=True)
    told = found.inversion
    assert told.is_all
    assert told.tables == len(all_tables(pattern)) == 15
    assert (told.before < 0.5).all()
    assert (told.after == 1).all()
    assert set(found.told_by_pattern) == set(np.flatnonzero(pattern.primary))
    assert dc.audit(pattern).is_clean
    assert not found.is_clean  # the intervals hold, and the pattern tells all the same
    assert "best guess" in found.text


def test_a_walk_draws_from_all_tables_and_no_others(monkeypatch):
    pattern = METHOD.pattern(flat(COUNTS))
    monkeypatch.setattr(inversion, "_MOST_TABLES", 3)
    monkeypatch.setattr(inversion, "_pattern_weights", lambda p, tables, draws: seen(tables))
    drawn = []

    def seen(tables):
        drawn.extend(map(tuple, tables.tolist()))
        return np.ones(len(tables))

    told = inversion.invert_pattern(pattern)
    assert not told.is_all
    assert len(told.exact) == 0  # a sample proves nothing
    assert set(drawn) == all_tables(pattern)


def test_patterns_of_sums_and_of_other_programs_are_refused():
    pattern = METHOD.pattern(flat(COUNTS))
    with pytest.raises(dc.errors.ParameterError, match="program=True"):
        dc.audit(replace(pattern, method=None), program=True)
    with pytest.raises(dc.errors.ParameterError, match="program=True"):
        dc.audit(flat(COUNTS).protect(METHOD), program=True)


def test_costs_follow_from_data_set_cell_and_secret_alone():
    table = flat(COUNTS).with_secret(SECRET)
    factors = draw_factors(table)
    assert draw_factors(flat(COUNTS)) is None
    fewer = flat(COUNTS + 5, "a + b").with_secret(SECRET)  # other counts, other margins
    places = [table.design.position(fewer.design.cell(k)) for k in range(len(fewer.z))]
    np.testing.assert_array_equal(draw_factors(fewer), factors[places])
    renamed = replace(table, data_set=replace(table.data_set, edition="2"))
    np.testing.assert_array_equal(draw_factors(renamed), factors)
    other = replace(table, data_set=replace(table.data_set, name="another"))
    stranger = table.with_secret(Secret(b"another secret of thirty-two bytes"))
    for each in (draw_factors(other), draw_factors(stranger)):
        assert (each != factors).all()
    assert METHOD.pattern(table).is_drawn


def test_secrets_hide_other_cells_and_keep_all_intervals():
    table = flat(COUNTS)
    patterns = []
    for k in range(8):
        pattern = METHOD.pattern(
            table.with_secret(Secret(b"%d secret of thirty-two bytes or so" % k))
        )
        assert len(pattern.proofs.unproven(pattern)) == 0
        patterns.append(tuple(pattern.suppressed))
    assert len(set(patterns)) > 1


def test_decoys_are_hidden_and_protected_and_not_called_sensitive():
    table, found = flat(COUNTS + 3), 0
    for k in range(12):
        one = table.with_secret(Secret(b"%d secret of thirty-two bytes or so" % k))
        decoys = draw_decoys(one, 3)
        assert ((one.z > 3) & (one.z <= 6))[decoys].all()
        pattern = METHOD.pattern(one)
        assert pattern.suppressed[decoys].all()
        assert not pattern.primary[decoys].any()
        told = dc.audit(pattern, intervals="all")
        assert not np.isin(np.flatnonzero(decoys), told.one_whole_number).any()
        found += int(decoys.sum())
    assert found > 4
    assert not draw_decoys(table, 3).any()


def test_a_cell_that_must_be_shown_is_no_decoy():
    every = [{}, *({"a": str(a)} for a in (1, 2, 3)), *({"b": str(b)} for b in range(1, 5))]
    method = dc.Suppress(dc.rules.Threshold(3), frozen=every)
    for k in range(6):
        one = flat(COUNTS).with_secret(Secret(b"%d secret of thirty-two bytes or so" % k))
        assert not method.pattern(one).suppressed[[one.design.position(c) for c in every]].any()


def test_the_statement_says_whether_a_secret_was_used():
    said = [t.protect(METHOD).statement for t in (flat(COUNTS), flat(COUNTS).with_secret(SECRET))]
    texts = [next(s.text for s in each.sentences if s.kind == "pattern-tells") for each in said]
    assert "No secret was used" in texts[0]
    assert "drawn from a secret" in texts[1]
    assert all("cannot be computed" not in str(each) for each in said)


def test_no_export_tells_sensitive_cells_from_others(tmp_path):
    mirrored = [[[1, 9, 30], [9, 1, 30], [30, 30, 30]], [[9, 1, 30], [1, 9, 30], [30, 30, 30]]]
    releases = [flat(counts).protect(METHOD) for counts in mirrored]
    primaries = [METHOD.pattern(flat(counts)).primary for counts in mirrored]
    assert (primaries[0] != primaries[1]).any()
    assert (releases[0].hidden == releases[1].hidden).all()
    first, second = (public_bytes(release, tmp_path) for release in releases)
    assert first == second


def editions():
    """Two editions: the second shows what protected a small count in the first."""
    before = np.array([[2, 9, 30], [9, 12, 30], [30, 30, 30]])
    after = before.copy()
    after[0, 0] = 7  # no longer sensitive, so that nothing is hidden beside one other rectangle
    after[1, 2] = 2
    return flat(before), flat(after)


def test_a_cell_that_another_edition_shows_gives_what_the_first_one_hid():
    first, second = editions()
    hides, shows = first.protect(METHOD), second.protect(METHOD)
    assert (hides.hidden & ~shows.hidden).any()
    attack = registry.build("attack", "pattern-difference")
    alone = attack(hides, Knowledge(), rng=NOTHING)
    both = attack(hides, Knowledge(earlier=(shows,)), rng=NOTHING)
    truth = first.z

    def right(claims):
        return sum(truth[k] == v for k, v in zip(claims.targets, claims.values, strict=True))

    assert right(both) == hides.hidden.sum()
    assert right(alone) < right(both)


def test_cells_hidden_in_all_editions_are_claimed():
    first, second = editions()
    releases = [each.protect(METHOD) for each in (first, second)]
    attack = registry.build("attack", "pattern-intersection")
    claims = attack(releases[1], Knowledge(earlier=(releases[0],)), rng=NOTHING)
    in_both = releases[0].hidden & releases[1].hidden
    assert set(claims.targets) == set(np.flatnonzero(in_both))


def two_editions():
    """A table, and one of the next edition in which what was cheap to hide is dear."""
    counts = np.array([[2, 9, 8, 30], [9, 12, 14, 30], [8, 11, 13, 30], [30, 30, 30, 30]])
    first = flat(counts)
    hidden = METHOD.pattern(first).suppressed[first.design.inner_in_published()].reshape(4, 4)
    moved = counts.copy()
    moved[hidden & (counts > 3)] += 6
    return first, flat(moved)


def test_a_new_edition_starts_from_the_earlier_pattern():
    first, second = two_editions()
    earlier = first.protect(METHOD)
    second = replace(second, data_set=replace(second.data_set, edition="2"))
    again = METHOD.follow(second, [earlier]).pattern(second)
    assert (METHOD.pattern(second).suppressed != earlier.hidden).any()
    assert (again.suppressed == earlier.hidden).all()
    release = second.protect(METHOD, previous=earlier)
    assert (release.hidden == earlier.hidden).all()
    assert "that an earlier edition hid" in release.statement.text
    assert "suppressed anew" in second.protect(METHOD).statement.text


def test_a_publication_starts_from_the_period_before_and_from_what_it_corrects(tmp_path):
    (tmp_path / "publication.toml").write_text(
        '[publication]\nname = "t"\nformats = ["csv"]\n[data]\nsource = "t.csv"\nname = "t"\n'
        '[tabulate]\nmargins = "a*b"\n[protect]\nmethod = "suppress"\n[gate]\nattack = "off"\n'
    )
    first, second = two_editions()
    plan = Publication.read(tmp_path / "publication.toml")
    hidden = {}
    for edition, table, corrects in (("1", first, None), ("2", second, None), ("2b", second, "2")):
        inner = np.repeat(np.arange(16), table.y)
        frame = pd.DataFrame({"a": inner // 4, "b": inner % 4})
        frame.to_csv(tmp_path / "t.csv", index=False)
        made = publish(plan, tmp_path, edition=edition, corrects=corrects, reason="why")
        hidden[edition] = made.release.hidden
        assert ("an earlier edition" in made.release.statement.text) == (edition != "1")
    assert (hidden["1"] == METHOD.pattern(first).suppressed).all()
    for edition in ("2", "2b"):
        assert (hidden[edition] == hidden["1"]).all()
