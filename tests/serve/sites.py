"""A small site in memory: one country, released once and served on the fly."""

from dataclasses import replace
from functools import cache

import numpy as np

from discreet import Secret
from discreet.publication import Choice, Publication
from discreet.serve import (
    Dataset,
    DatasetInfo,
    InnerSource,
    InnerTable,
    LiveSource,
    Policy,
    Site,
    SiteConfig,
)
from discreet.serve.data.measures import Measure
from discreet.tables import CellStatus
from tests.serve.records import RECIPE, small_country

ZEROS = [{"region": ["ABROAD"], "age": ["65+"]}]
ONCE = Publication("region*age*sex", Choice("safe", {}))
ABOUT = DatasetInfo(
    title="Small country",
    description="People by region, age and sex.",
    source="The census of a small country",
    date="2026-01-01",
    licence="CC BY 4.0",
    contact="statistics@example.org",
    footnotes=("Persons abroad have no town.",),
)


@cache
def inner_table():
    """The small country, released once."""
    table = ONCE.tabulate(small_country(zeros=ZEROS)).with_secret(Secret.demo())
    return InnerTable.of(ONCE.run(table), "2026", ZEROS)


def once(policy=None, **changes):
    """The data set that is released once."""
    dataset = Dataset("once", ABOUT, InnerSource(inner_table()), policy or Policy())
    return replace(dataset, **changes)


def sums_of_once(scale=1):
    """A sum of the small country with hidden cells, and its mean."""
    counts = once().cube(("region", "age"), "count")
    hidden = (counts.values % 7 == 3) & (counts.status == CellStatus.published)
    status = np.where(hidden, np.int8(CellStatus.suppressed), counts.status)
    values = np.where(hidden, 0, counts.values * scale * 10.5)
    table = replace(counts, values=values, status=status.astype(np.int8), unit="income")
    titles = {"income": "income", "mean-income": "income per person"}
    return {name: Measure(name, title, (table,)) for name, title in titles.items()}


def live(policy=None, **changes):
    """The data set that is served on the fly."""
    about = replace(ABOUT, title="Small country on the fly")
    source = LiveSource(RECIPE, small_country(zeros=ZEROS))
    return replace(Dataset("live", about, source, policy or Policy()), **changes)


def small_site(policy=None, released=None, **changes):
    """Both on one site; `released` changes the data set that is released once."""
    config = SiteConfig("Small site", contact="statistics@example.org", address="http://here")
    datasets = {d.name: d for d in (once(policy, **(released or {})), live(policy))}
    return Site(replace(config, **changes), datasets)
