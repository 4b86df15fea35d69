"""Cell keys for magnitudes: a slow reference, the published law, promises, and attacks."""

import bisect
import contextlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.app import app
from discreet.errors import DataError, DesignError, KeysError, ParameterError
from discreet.noise import perturbation_table
from discreet.protect import MagnitudeKey
from discreet.protect.magnitude_key import entropy_sizes
from discreet.tables import CONVENTIONS

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "d_ptable_num_D5_V2_step4.json"
SECRET = dc.Secret(b"what the custodian knows and nobody else")
COUNTS = dc.CellKey(perturbation_table(D=5, V=3, js=2))


def firms(n=300, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": range(n),
            "firm": [f"f{k}" for k in rng.integers(0, n // 3, n)],
            "act": rng.choice(list("abcd"), n),
            "region": rng.choice(list("xyz"), n),
            "size": rng.choice(list("sm"), n),
            "turnover": np.round(rng.lognormal(5, 1.5, n)),
        }
    )


def opened(frame, secret=SECRET, **options):
    return dc.open(frame, id="id", secret=secret, name="firms", **options)


def tabulated(frame, by="act*region", **options):
    return opened(frame).tabulate(by, value="turnover", contributor="firm", **options)


@pytest.fixture(scope="module")
def table():
    return tabulated(firms())


# The law and the construction.


@pytest.mark.skipif(not REFERENCE.exists(), reason="no reference files here")
def test_the_law_is_that_of_the_published_table():
    printed = np.array(json.loads(REFERENCE.read_text())["tMatrix"])
    sizes = MagnitudeKey().law
    symmetric = np.concatenate([sizes[:0:-1] / 2, sizes[:1], sizes[1:] / 2])
    np.testing.assert_allclose(symmetric, printed[3], atol=1e-7)
    # The rows of small values, which this method never needs, are those of tables for counts.
    fine = perturbation_table(D=20, V=32, js=0, variant="ptable")
    for row, count in ((1, 4), (2, 12), (3, 20)):
        law = np.zeros(41)
        law[count + fine.deviations[fine.deviations >= -count]] = fine.probabilities(count)[
            fine.deviations >= -count
        ]
        np.testing.assert_allclose(law, printed[row], atol=1e-7)


@pytest.mark.parametrize(("reach", "variance"), [(20, 32.0), (5, 0.01), (3, 2.9), (1, 0.5)])
def test_sizes_have_the_variance_that_was_asked_for(reach, variance):
    law = entropy_sizes(reach, variance)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(reach + 1.0) ** 2 == pytest.approx(variance)
    assert (law >= 0).all()


def reference_value(frame, method, cell):
    """One published sum, from records and in plain arithmetic."""
    rule = CONVENTIONS["discreet"]
    chosen = frame[np.all([frame[name] == code for name, code in cell.items()], axis=0)]
    cell_key = sum(int(k) for k in SECRET.keys_for_ids(chosen["id"], rule, "1")) % rule.modulus
    by_firm = chosen.groupby("firm")["turnover"].sum().sort_values(ascending=False, kind="stable")
    ends = np.cumsum(method.law).tolist()

    def size(key, purpose):
        point = (int(SECRET.mix_keys(np.array([key]), purpose)[0]) + 0.5) / 2**32
        place = min(bisect.bisect_right(ends, point), len(ends) - 1)
        return max(place - (ends[place] - point) / method.law[place], 0.0) / method.steps

    noise, direction = 0.0, None
    for k, (firm, amount) in enumerate(by_firm[by_firm > 0].iloc[: method.top].items()):
        own = int(SECRET.zero_key([{"\0contributor": firm, "\0edition": "1"}], rule)[0])
        if direction is None:
            up = int(SECRET.mix_keys(np.array([own]), f"{method.purpose} direction")[0]) % 2 == 1
            direction, noise = (1 if up else -1), amount * method.scale * method.least
        shared = size(own, f"{method.purpose} contributor")
        alone = size(cell_key, f"{method.purpose} cell {k}")
        noise += amount * method.scale / (k + 1) * (shared + alone)
    changed = float(by_firm.sum()) + (direction or 0) * noise
    return round(changed / method.base) * method.base


@pytest.mark.parametrize("method", [MagnitudeKey(), MagnitudeKey(scale=0.03, top=3, base=10.0)])
def test_values_are_those_of_a_slow_reference(table, method, tmp_path):
    release = table.protect(method, ledger=tmp_path / "ledger.db")
    frame = firms()
    for position in range(0, release.design.n_published, 3):
        expected = reference_value(frame, method, release.design.cell(position))
        assert release.z[position] == pytest.approx(expected, abs=1e-6)


# Promises.


def test_the_same_records_have_the_same_sum_in_every_table(table):
    first = table.protect("magnitude-key")
    other = tabulated(firms(), "region*act*size + size*act").protect("magnitude-key")
    for position in range(first.design.n_published):
        cell = first.design.cell(position)
        assert other.z[other.design.position(cell)] == first.z[position]
    shuffled = tabulated(firms().sample(frac=1, random_state=3)).protect("magnitude-key")
    np.testing.assert_array_equal(shuffled.z, first.z)


def test_noise_of_sums_is_not_that_of_counts(table):
    """The direction of a sum says nothing of the change of its count."""
    up, count_up = [], []
    for seed in range(40):
        sums = table.simulate("magnitude-key", seed=seed)
        counts = table.simulate(COUNTS, seed=seed, unit="count")
        up.append(sums.z > table.contributions.sum)
        count_up.append(counts.z > table.z)
    r = np.corrcoef(np.ravel(up), np.ravel(count_up))[0, 1]
    assert abs(r) < 0.12


def evidence(table, method, seeds=20):
    finals = [table.simulate(method, seed=seed) for seed in range(seeds)]
    given = table.contributions
    return SimpleNamespace(finals=finals, truth=given.sum, largest=given.largest[:, 0])


def test_sentences_hold_and_false_ones_are_caught(table):
    found = evidence(table, MagnitudeKey())
    sentence = next(
        s for s in found.finals[0].statement.sentences if s.kind == "moves-with-largest"
    )
    assert sentence.holds(found)
    faint = evidence(table, MagnitudeKey(scale=0.01))  # a fifth of what the sentence says
    assert not sentence.holds(faint)
    found.finals[0].z[0] = found.truth[0] * 9
    assert not sentence.holds(found)


def test_the_statement_tells_nothing_of_the_records():
    tables = (tabulated(firms(n, seed)) for n, seed in ((300, 1), (90, 2)))
    first, other = (t.simulate("magnitude-key", seed=1).statement for t in tables)
    assert first.to_json() == other.to_json()


def test_sums_stay_above_zero_and_zeros_stay():
    frame = firms(60)
    frame.loc[(frame["act"] == "a") & (frame["region"] == "x"), "turnover"] = 0.0
    table = tabulated(frame)
    for seed in range(20):
        trial = table.simulate("magnitude-key", seed=seed)
        assert (trial.z >= 0).all()
        assert (trial.z[table.contributions.sum == 0] == 0).all()


def test_up_and_down_are_equally_likely(table):
    moves = [table.simulate("magnitude-key", seed=s).z - table.contributions.sum for s in range(80)]
    relative = np.array(moves) / table.contributions.largest[:, 0]
    assert abs(relative.mean()) < 4 * relative.std() / np.sqrt(80)
    assert np.abs(relative).min() > 0.1 - 0.02


def test_means_are_changed_sums_over_changed_counts(table):
    method = MagnitudeKey(counts=COUNTS)
    means, sums = table.protect(method), table.protect(MagnitudeKey())
    counts = table.protect(COUNTS, unit="count")
    shown = ~means.hidden
    np.testing.assert_allclose(means.z[shown], sums.z[shown] / counts.z[shown])
    np.testing.assert_array_equal(means.hidden, counts.z == 0)
    assert means.unit == "mean turnover"
    found = dc.assess(table, means, ["mean-relative-deviation"])
    truth = table.contributions.sum / np.maximum(table.z, 1)
    value = found["mean-relative-deviation"].value
    assert value == pytest.approx(np.mean(np.abs(means.z - truth)[shown] / truth[shown]))


# Refusals.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": 0.2}, "below zero"),
        ({"V": 9.0}, "too large for D=5"),
        ({"counts": dc.Safe()}, "by cell keys"),
        ({"scale": 0}, "scale"),
        ({"base": -1}, "base"),
    ],
)
def test_options_that_cannot_work_are_refused(options, said):
    with pytest.raises(ParameterError, match=said):
        MagnitudeKey(**options)


def test_tables_that_cannot_be_protected_are_refused(table):
    with pytest.raises((DesignError, ParameterError)):
        opened(firms()).tabulate("act*region").protect("magnitude-key")
    keys = np.random.default_rng(2).integers(2**32, size=300)
    keyed = dc.open(firms().assign(key=keys), key="key")
    bare = keyed.tabulate("act", value="turnover", contributor="firm")
    with pytest.raises(KeysError, match="secret"):
        bare.protect("magnitude-key")
    with pytest.raises(ParameterError, match="largest=3"):
        tabulated(firms(), largest=2).simulate(MagnitudeKey(top=3, scale=0.03), seed=1)
    given = table.contributions
    unknown = replace(given.published, owner=np.full_like(given.owner, -1))
    nameless = replace(table, contributions=replace(given, published=unknown))
    with pytest.raises(DataError, match="not named"):
        nameless.protect("magnitude-key")
    with pytest.raises(ParameterError, match="scale"):
        table.protect(MagnitudeKey(scale=0.0123))


def test_counts_of_means_come_from_the_lists_and_are_stated(table):
    with pytest.raises(ParameterError, match=r"nobody counts releases.*share="):
        table.protect(MagnitudeKey(counts=dc.DropAdd(0.0501)))
    stated = table.protect(MagnitudeKey(counts=dc.DropAdd(0.05))).statement.steps[-1].parameters
    assert stated["counts"]["method"] == "drop-add"
    assert stated["counts"]["share"] == 0.05


# Attacks, with what the public or a contributor has.


def listed_laws(lists):
    """All methods that options from the lists make, whatever they round to."""
    names = [name for name in lists if name != "base"]
    for values in itertools.product(*(lists[name] for name in names)):
        with contextlib.suppress(ParameterError):
            yield MagnitudeKey(**dict(zip(names, values, strict=True)))


def test_listed_options_cannot_be_averaged(table):
    """Each law draws anew, so that the mean over many of them would be the sum itself."""
    given = table.contributions
    some = given.largest[:, 0] > 0

    def left(laws):
        """What the best mean leaves of the noise, in units of the faintest law alone."""
        noise = np.array([law.noise(table)[some] / given.largest[some, 0] for law in laws])
        weights = np.array([law.scale**-2.0 for law in laws])
        faintest = noise[int(np.argmax(weights))]
        return np.sqrt(np.mean((weights @ noise / weights.sum()) ** 2) / np.mean(faintest**2))

    laws = list(listed_laws(MagnitudeKey().option_lists))
    assert len(laws) <= 4
    for law in laws:
        table.protect(law)  # each of them is published
    assert left(laws) > 0.6
    # the planted fault: lists for every option
    freely = {"V": (0.5, 1.0, 1.5, 2.0), "steps": (1, 2, 4, 10), "D": (3, 4, 5), "top": (1, 2)}
    many = list(listed_laws({"scale": (0.01,), **freely}))
    assert left(many) < 0.25
    with pytest.raises(ParameterError, match="nobody counts releases"):
        table.protect(many[0])


class ByCell(MagnitudeKey):
    """A planted fault: all noise by the cell key, as if no contributor were followed."""

    def noise(self, table):
        cell, given = table.cell_keys, table.contributions
        draws = [table.secret.mix_keys(cell, f"{self.purpose} {part}") for part in "abc"]
        size = self.scale * (self.least + self._sizes(draws[0]) + self._sizes(draws[1]))
        return np.where(draws[2] % 2 == 1, 1, -1) * size * given.largest[:, 0]


def giant(tables=40, seed=5):
    """A giant, sixty small firms, and as many classifications as an attacker can ask tables of."""
    rng = np.random.default_rng(seed)
    n = 61
    frame = pd.DataFrame({"id": range(n), "firm": [f"f{k}" for k in range(n)]})
    frame["turnover"] = np.round(rng.lognormal(3, 0.5, n))
    frame.loc[0, "turnover"] = 20_000.0
    names = [f"c{k}" for k in range(tables)]
    classes = pd.DataFrame(rng.choice(list("xy"), (n, tables)), columns=names)
    return pd.concat([frame, classes], axis=1)


def averaged_error(method, seeds=20):
    """Errors of an attacker who knows all other firms and averages over the giant's cells.

    The attacker takes the mean noise of the law off as well, and guesses the direction.
    """
    frame = giant()
    names = [c for c in frame if c.startswith("c")]
    table = tabulated(frame, " + ".join(names))
    others = frame.iloc[1:]
    cells = [{name: frame.loc[0, name]} for name in names]
    rest = [others.loc[others[n] == frame.loc[0, n], "turnover"].sum() for n in names]
    places = [table.design.position(cell) for cell in cells]
    mean = float(method.law @ np.arange(len(method.law))) / method.steps
    factor = method.scale * (method.least + 2 * mean)
    errors = []
    for seed in range(seeds):
        seen = table.simulate(method, seed=seed).z[places] - rest
        average = seen.mean()
        guess = (average / (1 + factor), average, average / (1 - factor))
        errors.append([each / 20_000 - 1 for each in guess])
    return np.abs(errors)


def test_averages_over_many_tables_do_not_lead_to_the_giant():
    up, plain, down = averaged_error(MagnitudeKey()).T
    assert (plain < 0.1).mean() == 0  # at least a tenth of the giant, whatever is averaged
    # Even with the right direction, which is a guess, the firm's own part is left.
    assert np.mean(np.minimum(up, down) < 0.01) < 0.4
    assert np.mean(up < 0.05) < 0.65
    # Noise by cell keys alone, which is the fault, averages out.
    assert np.median(averaged_error(ByCell())[:, 1]) < 0.04


def test_the_second_largest_does_not_learn_the_largest():
    rng = np.random.default_rng(7)
    n = 600
    frame = pd.DataFrame({"id": range(n), "firm": [f"f{k}" for k in range(n)]})
    frame["cell"] = np.repeat([f"c{k:03d}" for k in range(n // 3)], 3)
    frame["turnover"] = np.tile([1000.0, 200.0, 30.0], n // 3) * np.round(rng.uniform(1, 9, n))
    table = tabulated(frame, "cell")
    largest = table.contributions.largest
    inner = np.flatnonzero(table.contributions.count == 3)

    def share_told(z, within=0.1):
        guess = z - largest[:, 1]
        return float((np.abs(guess / largest[:, 0] - 1) <= within)[inner].mean())

    bare = share_told(table.contributions.sum)
    told = share_told(table.protect("magnitude-key").z)
    assert bare > 0.8  # what the sums themselves tell
    assert told < 0.3


def test_a_record_more_or_less_is_not_read_from_a_difference():
    """Two cells that differ by one small firm: the giant's shared part cancels, the rest stays."""
    frame = giant(1)
    frame["all"] = "yes"
    frame["but_one"] = np.where(frame["firm"] == "f9", "no", "yes")
    table = tabulated(frame, "all + but_one")
    places = [table.design.position({name: "yes"}) for name in ("all", "but_one")]
    true = frame.loc[9, "turnover"]
    errors = []
    for seed in range(200):
        z = table.simulate("magnitude-key", seed=seed).z
        errors.append(abs(z[places[0]] - z[places[1]] - true))
    assert np.median(errors) > 10 * true
    assert np.mean(np.array(errors) < 0.5 * true) < 0.05


def test_command_line_and_comparisons_know_the_method(table, tmp_path):
    table.save(tmp_path / "table.parquet")
    dc.Secret.from_file(tmp_path / "keys.secret", create=True)
    call = ["protect", str(tmp_path / "table.parquet"), "--method", "magnitude-key"]
    call += ["--secret", str(tmp_path / "keys.secret"), "--out", str(tmp_path / "release.csv")]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    written = pd.read_csv(tmp_path / "release.csv")
    assert "turnover" in written.columns
    found = dc.compare(
        table,
        {"strong": MagnitudeKey(), "weak": MagnitudeKey(scale=0.01)},
        measures=["mean-relative-deviation"],
        replicates=4,
    ).to_pandas()
    means = found[found["stage"] == "published"].set_index("label")["mean"]
    assert means["weak"] < means["strong"]
