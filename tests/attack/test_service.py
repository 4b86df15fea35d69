"""A table builder attacked over HTTP: the search finds what works on the fly, and nothing else."""

import itertools
import secrets
import urllib.request
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import attack_service
from discreet.attacks.query_search import search
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.publication import Choice, Publication
from discreet.serve import (
    AccountsConfig,
    Dataset,
    DatasetInfo,
    InnerSource,
    InnerTable,
    Office,
    Site,
    SiteConfig,
    make_app,
    serving,
)
from tests.attacks.builders import LIVE, WIDE, live
from tests.attacks.victims import SECRET

pytest.importorskip("uvicorn")
SPARSE = {"region": 30, "age": 10, "sex": 2}
WAYS = {"attacks": ["other-ways"]}
SURE = 0.999
"""A sound site would look weak in at most one of a thousand draws."""
PRIVATE = Publication(
    "region*age*sex",
    Choice("discrete-laplace", {"epsilon": 0.5}),
    fitter=Choice("non-negative"),
)


def somebody(seed=1, n=240):
    """Many are alone in their region and age; sex is a coin, so that nothing else tells it."""
    rng = np.random.default_rng(seed)
    codes = {name: [f"{name}{k}" for k in range(size)] for name, size in SPARSE.items()}
    frame = {name: rng.choice(each, n) for name, each in codes.items()}
    lists = {name: dc.Hierarchy.flat(each, "all") for name, each in codes.items()}
    return dc.open(
        pa.table({"id": np.arange(n), **frame}), id="id", hierarchies=lists, secret=SECRET,
        name="sparse",
    )  # fmt: skip


def attacked(dataset, people, **options):
    config = SiteConfig(accounts=AccountsConfig(rate=0))
    site, truth = Site(config, {"census": dataset}), people.tabulate("region*age*sex")
    with serving(make_app(site, Office(config))) as address:
        return attack_service(f"{address}d/census", truth, **options)


def released(people):
    return InnerSource(InnerTable.of(PRIVATE.run(people), "1"))


def test_the_search_finds_nested_crossings_on_the_fly_by_itself():
    people = somebody()
    found = attacked(live(people), people, attacks=["query-search"])["query-search"]
    assert found.lift > 0.3, str(found)
    nested = "sex in region × age beside region × age: the same figure up to 5 raises the odds"
    assert found.worst[0].startswith(nested), found.worst
    assert "release-once" in found.remedy


class Answers:
    """A site's answers without the site: figures of a group and category, or of chance."""

    def __init__(self, people, told, seed):
        self.people, self.told, self.budget = people, told, 50
        self.rng = np.random.default_rng(seed)

    def ask(self, names, further=(), *, anew=False):
        wanted = [p for p in self.people if not further or p["sex"] in dict(further).values()]
        cells = [tuple(p[name] for name in names) for p in wanted]
        if self.told:
            return {cell: float(cells.count(cell)) for cell in cells}
        every = itertools.product(*({p[name] for p in self.people} for name in names))
        return {cell: float(self.rng.integers(0, 6)) for cell in sorted(every)}


@pytest.mark.parametrize("told", [True, False])
def test_the_search_learns_from_true_figures_and_not_from_chance(told):
    """In at most one of twenty cases figures of chance seem to tell anything."""
    above = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        people = [{"area": str(rng.integers(60)), "sex": "fm"[rng.integers(2)]} for _ in range(160)]
        found = search(Answers(people, told, seed), people, ("area",), ("sex", ("f", "m")))
        above += found.is_above()
    assert above >= 18 if told else above <= 1


def test_half_of_the_questions_are_left_however_many_groups_there_are():
    """Eight known variables have 256 groups, and their pairs of figures would not fit in memory."""
    names = tuple("abcdefgh")
    people = [{**dict.fromkeys(names, "x"), "sex": "fm"[k % 2]} for k in range(40)]

    class Counted(Answers):
        def ask(self, names, further=(), *, anew=False):
            self.budget -= 1
            return super().ask(names, further, anew=anew)

    asked = Counted(people, True, 1)
    found = search(asked, people, names, ("sex", ("f", "m")))
    assert 25 <= asked.budget < 30
    assert not found.tally.claims, "everybody is in the same groups"
    for too_few in ((people[:3], ("f", "m")), (people, ("f",))):
        with pytest.raises(ParameterError, match="nothing can be learnt"):
            search(asked, too_few[0], names, ("sex", too_few[1]))


def test_a_released_once_site_tells_nothing_above_the_baseline():
    people = somebody()
    found = attacked(Dataset("census", DatasetInfo(title="Sparse"), released(people), WIDE), people)
    low, _ = found["query-search"].lift_interval(SURE)
    assert low <= 0, str(found)
    ways = found["other-ways"]
    assert not ways.worst, "all ways lead to the same figure"
    assert (ways.tally.right == ways.baseline.right).all()


def test_other_ways_to_ask_are_averaged_on_the_fly():
    """Sums have noise of their own; asking again, in another order or by filters has none."""
    found = []
    for seed in range(2):
        people = somebody(seed, 3_000)
        found.append(attacked(live(people), people, **WAYS)["other-ways"])
    again = found[0].pooled(found[1])
    mean, once = again.tally.right, again.baseline.right  # of the same cells
    gained, lost = (mean & ~once).sum(), (once & ~mean).sum()
    assert gained - lost > 2 * np.sqrt(gained + lost), str(again)
    assert again.lift < 0.2
    # of region × age: the sum over sex, and what rows and columns have beyond the others' sum
    sums = 1 + SPARSE["region"] + SPARSE["age"]
    assert f"region × age: {sums} other questions" in again.worst[0]


class Careless(InnerSource):
    """A planted fault: noise drawn anew for every question."""

    def cube(self, details, unit):
        cube = super().cube(details, unit)
        noise = np.random.default_rng(secrets.randbits(64)).integers(-3, 4, cube.values.shape)
        return replace(cube, values=cube.values + noise)


class Forgetful(Dataset):
    """What serves it keeps nothing, so that every question is asked again."""

    def cube(self, details, unit):
        return self.source.cube(details, unit)


def test_a_builder_that_draws_anew_is_caught():
    people = somebody(1, 3_000)
    counts = people.tabulate("region*age*sex").y.reshape(*SPARSE.values())
    codes = np.nonzero(counts)
    bare = replace(released(people).table, codes=codes, values=counts[codes])
    found = attacked(Forgetful("census", DatasetInfo(), Careless(bare), WIDE), people, **WAYS)
    assert found["other-ways"].lift > 0.2, str(found)


def test_questions_are_counted_and_bad_addresses_refused(monkeypatch):
    people, asked = somebody(), []
    fetch = urllib.request.urlopen
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda url, **given: asked.append(url) or fetch(url, **given)
    )
    attacked(live(people, LIVE), people, budget=5)
    assert len(asked) == 5
    truth = people.tabulate("region*age*sex")
    for bad in ("census", "ftp://here/d/census", "http://127.0.0.1:1/"):
        with pytest.raises(ParameterError, match="address"):
            attack_service(bad, truth)
    with pytest.raises(DataError, match="did not answer"):
        attack_service("http://127.0.0.1:1/d/census", truth)
    with pytest.raises(UnknownNameError, match="other-ways"):
        attack_service("http://127.0.0.1:1/d/census", truth, attacks=["averages"])
    with pytest.raises(ParameterError, match="height"):
        attack_service("http://127.0.0.1:1/d/census", truth, secret="height")
