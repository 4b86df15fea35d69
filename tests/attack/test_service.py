"""A table builder attacked over HTTP: the search finds what works on the fly, and nothing else."""

import urllib.request

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import attack_service
from discreet.errors import DataError, ParameterError
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
from tests.attacks.builders import LIVE, WIDE, People, live
from tests.attacks.victims import SECRET

pytest.importorskip("uvicorn")
SPARSE = {"region": 30, "age": 10, "sex": 2}
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


def test_the_search_finds_nested_crossings_on_the_fly_by_itself():
    people = somebody()
    found = attacked(live(people), people)["query-search"]
    assert found.lift > 0.3, str(found)
    assert "same in region × age as region × age" in " ".join(found.worst), found.worst
    assert "release-once" in found.remedy


def test_a_released_once_site_tells_nothing_above_the_baseline():
    people = somebody()
    table = InnerTable.of(PRIVATE.run(people), "1")
    source = InnerSource(table)
    found = attacked(Dataset("census", DatasetInfo(title="Sparse"), source, WIDE), people)
    low, _ = found["query-search"].lift_interval(SURE)
    assert low <= 0, str(found)
    low, high = found["other-ways"].lift_interval(SURE)
    assert low <= 0 <= high, "all ways lead to the same figure"


def test_other_ways_to_ask_are_averaged_on_the_fly():
    people = People.drawn(600)
    found = attacked(live(people, LIVE), people, budget=40)
    again = found["other-ways"]
    assert again.judged.claims == 6 * 4 + 6 * 2 + 4 * 2
    assert again.success >= again.guess


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
    with pytest.raises(ParameterError, match="height"):
        attack_service("http://127.0.0.1:1/d/census", truth, secret="height")
