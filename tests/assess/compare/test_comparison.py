import math

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.assessment.compare.job import DEFAULT_MEASURES
from discreet.assessment.compare.summary import is_tied, prediction_range
from discreet.errors import NotConvergedError, ParameterError, UnknownNameError
from discreet.frames import Frame
from discreet.progress import listening
from tests.assess import party
from tests.assess.compare.fitting import SlowChain
from tests.assess.compare.methods import Shift, Stalled
from tests.assess.helpers import weighted_table
from tests.protect.methods import FOR_COUNTS

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
CELL_KEY = dc.CellKey(PTABLE)
FIT = SlowChain()
QUICK = ["exact-disclosure-own", "hellinger-utility"]


def compare(methods, **settings):
    given = {"fitters": FIT, "measures": QUICK, "sensitive": "party", "replicates": 5, **settings}
    return dc.compare(party.table(), methods, **{k: v for k, v in given.items() if v is not None})


def values(found, **where):
    mask = np.full(len(found.replicates), True)
    for name, wanted in where.items():
        mask &= found.replicates[name].equal(wanted)
    return found.replicates.filter(mask)["value"].to_numpy()


@pytest.fixture(scope="module")
def published_example():
    measures = ["hellinger-utility", "exact-disclosure", "exact-disclosure-own"]
    return compare(CELL_KEY, measures=measures, replicates=600, workers=1)


def test_the_intervals_of_langsrud_and_lupp(published_example):
    """Section 5: 95 % of redrawn keys give utilities in these intervals."""
    for stage, printed, apart in (
        ("published", (0.8871, 0.9392), (0.003, 0.003)),
        ("fitted", (0.8920, 0.9659), (0.006, 0.003)),
    ):
        drawn = values(published_example, measure="hellinger-utility", stage=stage)
        ends = np.quantile(drawn, [0.025, 0.975])
        assert (np.abs(ends - printed) < apart).all()
        line = published_example[f"hellinger-utility@{stage}"].lines[0]
        inside = (line["lower"] <= drawn) & (drawn <= line["upper"])
        assert 0.95 <= inside.mean() <= 0.96


@pytest.mark.parametrize(
    ("measure", "shares"),
    [
        ("exact-disclosure", {0: 0.49, 0.5556: 0.48}),
        ("exact-disclosure-own", {0: 0.36, 0.7143: 0.08, 0.9091: 0.51, 1: 0.04}),
    ],
)
def test_the_shares_of_langsrud_and_lupp(published_example, measure, shares):
    """Section 6: how often redrawn keys give which risk."""
    risk = values(published_example, measure=measure, stage="fitted")
    for value, share in shares.items():
        found = np.mean(np.abs(risk - value) < 1e-3)
        assert found == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 600) + 0.005)


def test_scores_are_those_of_an_assessment():
    found = compare([CELL_KEY, dc.Pram()], measures=None)
    for label in found.labels:
        for i, trial in enumerate(found.trials(label, 5)):
            for stage, release in (("published", trial), ("fitted", trial.fit(FIT))):
                expected = dc.assess(party.table(), release, DEFAULT_MEASURES, sensitive="party")
                for score in expected:
                    ours = values(found, label=label, replicate=i, stage=stage, measure=score.name)
                    assert ours.tolist() == [score.value]


def test_the_frame_summarises_the_replicates():
    found = compare([CELL_KEY, dc.Pram()], replicates=12)
    for row in found.frame.to_pylist():
        if not row["replicates"]:
            continue
        where = {k: row[k] for k in ("label", "stage", "fitter", "measure")}
        drawn = values(found, **where)
        assert row["replicates"] == len(drawn) == 12
        assert row["mean"] == pytest.approx(drawn.mean())
        assert row["sd"] == pytest.approx(drawn.std(ddof=1))
        assert row["standard_error"] == pytest.approx(row["sd"] / math.sqrt(12))
        assert row["lower"] <= drawn.min() <= drawn.max() <= row["upper"]


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(3, n),
    "few values": lambda rng, n: rng.choice([0, 0.71, 0.91, 1], n, p=[0.37, 0.08, 0.51, 0.04]),
    "rare jump": lambda rng, n: (rng.random(n) < 1 / 21).astype(float),
}


def covered(law, draws, ends_of, repeats=3000):
    """How often a further draw lies in the range of some draws."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(repeats):
        *seen, following = law(rng, draws + 1)
        low, high = ends_of(np.array(seen))
        hits += low <= following <= high
    return hits / repeats


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("draws", [10, 20, 39, 60])
def test_a_further_draw_lies_in_the_range_in_95_of_100_cases(law, draws):
    assert covered(law, draws, prediction_range) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 3000)


def test_quantiles_of_few_draws_would_not_cover_them():
    share = covered(LAWS["normal"], 20, lambda seen: np.quantile(seen, [0.025, 0.975]))
    assert share == pytest.approx(0.875, abs=0.02)


def test_ranges_end_where_a_measure_does_and_one_draw_has_none():
    assert prediction_range(np.array([0.9, 1.0]), (0.0, 1.0)) == (0.0, 1.0)
    assert prediction_range(np.array([0.5])) == (None, None)
    assert prediction_range(np.full(5, 0.5)) == (0.5, 0.5)
    one = compare([CELL_KEY, Shift(1)], replicates=1)
    assert one["hellinger-utility"].lines[0]["lower"] is None
    assert " – " in repr(one).splitlines()[-1]
    one.plot()


def test_the_frame_says_what_every_row_is():
    found = compare({"mine": CELL_KEY})
    row = next(r for r in found.frame.to_pylist() if r["stage"] == "fitted")
    assert (row["label"], row["method"], row["fitter"]) == ("mine", "cell-key", "slow-chain")
    assert row["parameters"] == '{"D": 5, "V": 3.0, "js": 2}'
    assert row["reading"] in ("lower is safer", "higher is better")
    assert Frame.from_arrow(pa.table(found)) == found.frame
    assert len(found.to_pandas()) == len(found.to_polars()) == len(found.frame)


def test_what_does_not_apply_has_a_reason():
    found = compare(CELL_KEY)
    row = next(
        r
        for r in found.frame.to_pylist()
        if r["stage"] == "published" and r["measure"] == "exact-disclosure-own"
    )
    assert row["mean"] is None
    assert row["replicates"] == 0
    assert "Fit them first" in row["note"]


def test_draws_do_not_depend_on_other_methods_or_on_how_many_there_are():
    one = compare([CELL_KEY], replicates=3)
    two = compare([dc.Pram(), CELL_KEY], replicates=6)
    label = one.labels[0]
    for measure in QUICK:
        few = values(one, label=label, measure=measure, stage="fitted")
        many = values(two, label=label, measure=measure, stage="fitted")
        assert few.tolist() == many[:3].tolist()


def test_another_seed_gives_other_draws():
    first, second = compare(CELL_KEY, seed=1), compare(CELL_KEY, seed=2)
    assert first.replicates["value"] != second.replicates["value"]


def test_inner_cells_of_a_release_are_used_as_they_are():
    found = compare(Shift(2), measures=["hellinger-utility", "exact-disclosure"])
    fitted = [r for r in found.frame.to_pylist() if r["stage"] == "fitted"]
    assert {r["fitter"] for r in fitted} == {"own"}
    assert values(found, stage="fitted").tolist() == values(found, stage="published").tolist()


def test_several_fitters_see_the_same_draws():
    found = compare(CELL_KEY, fitters=[FIT, SlowChain(sweeps=1)])
    assert len(found["hellinger-utility"].lines) == 2
    as_published = values(found, stage="published", measure="hellinger-utility")
    assert len(as_published) == 5
    with pytest.raises(ParameterError, match="differ"):
        compare(CELL_KEY, fitters=[FIT, FIT])


def test_the_fit_of_the_paper_is_a_chain_by_name():
    """Clamp and refit, then proportional fitting: every draw as in the slow reference."""
    named = compare(CELL_KEY, fitters=dc.solve.Chain(["additive", "log-linear"]))
    slow = compare(CELL_KEY)
    assert values(named, stage="fitted") == pytest.approx(values(slow, stage="fitted"), abs=1e-6)


def test_the_usual_fitter_gives_expected_inner_frequencies():
    """Non-negative least squares first: never further from what was published than another."""
    found = compare(CELL_KEY, fitters=None)
    assert {r["fitter"] for r in found.frame.to_pylist() if r["stage"] == "fitted"} == {"chain"}
    for trial in found.trials(found.labels[0], 5):
        best, other = trial.fit(dc.solve.Chain()), trial.fit(FIT)
        assert (best.y >= 0).all()
        assert np.square(best.z - trial.z).sum() <= np.square(other.z - trial.z).sum() + 1e-6


CELL_KEYS = {"D": 5, "V": 3, "js": 2}
NEEDED = {
    "adjust": CELL_KEYS,
    "cell-key": CELL_KEYS,
    "discrete-gaussian": {"rho": 0.1},
    "discrete-laplace": {"epsilon": 1},
    "laplace": {"epsilon": 1},
    "quality": CELL_KEYS,
    "safe": {"proposals": 1e4},
}


@pytest.mark.parametrize("name", FOR_COUNTS)
def test_every_registered_method_takes_part_with_the_usual_fitter(name):
    method = dc.registry.build("method", name, NEEDED.get(name))
    found = compare(method, fitters=None, replicates=2)
    for measure in QUICK:
        line = found[f"{measure}@fitted"].lines[0]
        assert line["method"] == name
        assert math.isfinite(line["mean"])
        assert line["note"] is None


def test_fits_that_did_not_converge_are_reported():
    found = compare(CELL_KEY, fitters=Stalled())
    notes = [r["note"] for r in found.frame.to_pylist() if r["stage"] == "fitted"]
    assert notes == ["the fit ended as 'stalled' in 5 of 5 draws."] * 2
    trial = next(found.trials(found.labels[0], 1)).fit(Stalled(), require=False)
    with pytest.raises(NotConvergedError):
        trial.fit_result.require()


def test_measures_of_the_noise_know_the_law_of_each_method():
    matrices = {"strong": PTABLE, "weak": dc.perturbation_table(D=5, V=2, js=2)}
    found = compare(
        {**{k: dc.CellKey(m) for k, m in matrices.items()}, "none": dc.Pram(invariant=True)},
        measures=["mechanism-epsilon", "proven-nonzero"],
        sensitive=None,
    )
    lines = found["mechanism-epsilon"].by_method()
    assert lines.keys() == {("strong", ""), ("weak", "")}
    assert "name the noise" in found["mechanism-epsilon"].missing["none"]
    assert "Not applicable\n  mechanism-epsilon (published): none: name the noise" in repr(found)
    for label, matrix in matrices.items():
        assert lines[label, ""]["mean"] == pytest.approx(matrix.audit().epsilon)
    assert found["proven-nonzero"].stage == "published"


def test_the_budget_of_a_private_method_is_not_dropped_beside_the_noise_of_one_cell():
    found = compare(
        {"keyed": CELL_KEY, "also keyed": dc.CellKey(PTABLE), "private": dc.Laplace(epsilon=1.5)},
        measures=["mechanism-epsilon", "hellinger-utility"],
        sensitive=None,
    )
    chosen = found["mechanism-epsilon"]
    lines = {line["label"]: (line["on"], line["mean"]) for line in chosen.lines}
    assert lines["private"] == ("the whole release", pytest.approx(1.5))
    assert lines["keyed"] == ("one cell", pytest.approx(PTABLE.audit().epsilon))
    assert "one cell for keyed, also keyed; the whole release for private" in chosen.remark
    assert chosen.remark in repr(found)


def test_measures_can_be_all_or_one():
    found = compare(Shift(), measures="all", replicates=1)
    assert set(found.frame["measure"].to_pylist()) == set(dc.registry.MEASURES)
    assert set(compare(Shift(), measures="exact-disclosure").frame["measure"].to_pylist()) == {
        "exact-disclosure"
    }
    with pytest.raises(ParameterError, match="no measure"):
        compare(Shift(), measures=[])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"replicates": 0}, "replicates"),
        ({"replicates": 2.5}, "replicates"),
        ({"workers": 0}, "workers"),
        ({"seed": -1}, "seed"),
        ({"tune": {"pram": ("alpha", 0.1, 1.0)}}, "equal_risk"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(ParameterError, match=words):
        compare(dc.Pram(), **wrong)


def test_options_that_no_measure_has_are_refused():
    with pytest.raises(UnknownNameError, match="sensitive"):
        compare(Shift(), sensitiv="party")
    with pytest.raises(UnknownNameError, match="'party'") as caught:
        compare({"mine": Shift()}, sensitive="partei")
    assert "mine" in caught.value.__notes__[0]


def test_rows_of_a_measure_are_found_by_name_and_stage():
    found = compare([CELL_KEY, Shift(1)])
    assert found["hellinger-utility"].stage == "fitted"
    assert found["hellinger-utility@published"].title == "hellinger-utility (published)"
    with pytest.raises(ParameterError, match="stage"):
        found["hellinger-utility@fited"]
    with pytest.raises(UnknownNameError, match="hellinger-utility"):
        found["helinger-utility"]
    assert compare(CELL_KEY)["exact-disclosure-own"].stage == "fitted"
    with pytest.raises(ParameterError, match="no values"):
        compare(CELL_KEY)["exact-disclosure-own@published"]


def test_the_ranking_follows_the_utility():
    found = compare({"bad": Shift(5), "good": Shift(0), "middling": Shift(1)})
    assert [line["label"] for line in found.ranking()] == ["good", "middling", "bad"]
    by_deviation = compare(
        {"bad": Shift(5), "good": Shift(0)}, measures=["mean-absolute-deviation", *QUICK]
    )
    ranked = by_deviation.ranking("mean-absolute-deviation")
    assert [line["label"] for line in ranked] == ["good", "bad"]


def test_ties_are_marked():
    methods = {"a": dc.Laplace(epsilon=2.0), "b": dc.DiscreteLaplace(epsilon=2.0), "c": Shift(9)}
    found = compare(methods)
    first, second, third = found.ranking()
    assert {first["label"], second["label"]} == {"a", "b"}
    assert [line["tied"] for line in (first, second, third)] == [False, True, False]
    shown = {line.split()[0]: line for line in repr(found).splitlines()[3:]}
    assert shown[first["label"]].endswith("  best")
    assert shown[second["label"]].endswith("  tied with best")
    assert not shown["c"].endswith("best")
    same = compare({"a": Shift(1), "b": Shift(1), "c": Shift(2)})
    assert [line["tied"] for line in same.ranking()] == [False, True, False]


def test_series_are_told_apart_by_a_paired_test():
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(3)
    for _ in range(200):
        shared = rng.normal(size=12)
        first, second = shared + rng.normal(size=12), shared + rng.normal(0.7, 1, 12)
        assert is_tied(first, second) == (ttest_rel(first, second).pvalue >= 0.05)
    assert is_tied(np.array([1.0]), np.array([2.0]))
    assert not is_tied(np.array([1.0, 1.0]), np.array([2.0, 2.0]))


def test_methods_that_none_beats_are_efficient():
    found = compare({"truth": Shift(0), "noise": Shift(3)}, measures=["unchanged-cells", *QUICK])
    risk = "unchanged-cells"
    assert {r["label"] for r in found.efficient(risk)} == {"truth", "noise"}
    worse = compare({"a": Shift(2), "b": Shift(4)}, measures=["unchanged-cells", *QUICK])
    assert [r["label"] for r in worse.efficient(risk)] == ["a"]


def test_it_reads_well_and_says_that_it_is_confidential():
    text = repr(compare([CELL_KEY, Shift(1)]))
    assert text.startswith("Comparison (confidential): 2 methods, 5 draws each")
    assert "exact-disclosure-own (fitted), lower is safer" in text
    assert "shift by=1" in text


def test_progress_is_reported():
    heard = []
    with listening(lambda task, share: heard.append((task, share))):
        compare(CELL_KEY)
    assert heard[-1] == ("comparing methods", 1.0)
    assert [share for _, share in heard] == sorted(share for _, share in heard)


def test_trials_of_an_unknown_method_are_refused():
    with pytest.raises(UnknownNameError, match="pram"):
        next(compare(dc.Pram()).trials("pran", 1))


def compare_weighted(methods, **settings):
    given = {"fitters": FIT, "measures": ["mean-absolute-deviation"], "replicates": 3, **settings}
    return dc.compare(weighted_table(), methods, **given)


@pytest.mark.parametrize("unit", ["count", "weight"])
def test_what_is_compared_is_said_by_the_unit(unit):
    found = compare_weighted(dc.Laplace(epsilon=1.0), unit=unit)
    assert found.job.table.unit == unit
    rows = [r for r in found.frame.to_pylist() if r["replicates"]]
    assert {r["on"] for r in rows} == {f"published {unit}s"}
    assert all(r["note"] is None for r in rows)
    trial = next(found.trials(found.labels[0], 1))
    assert trial.unit == unit


def test_methods_for_weighted_counts_alone_need_no_word():
    methods = [dc.DropAdd(grid=10.0), dc.Pram(grid=10.0)]
    found = compare_weighted(methods)
    assert found.job.table.unit == "weight"
    assert found.frame == compare_weighted(methods, unit="weight").frame


def test_a_table_with_weights_must_say_what_is_compared():
    with pytest.raises(ParameterError, match="unit='count'"):
        compare_weighted([dc.DropAdd(grid=10.0), dc.DropAdd()])
    with pytest.raises(ParameterError, match="'pram' cannot publish unit='weight'"):
        compare_weighted([dc.DropAdd(grid=10.0), dc.Pram()], unit="weight")
    with pytest.raises(ParameterError, match="needs a table with weights"):
        compare(dc.Laplace(epsilon=1.0), unit="weight")
    with pytest.raises(ParameterError, match="'count' or 'weight'"):
        compare(dc.Laplace(epsilon=1.0), unit="euro")
