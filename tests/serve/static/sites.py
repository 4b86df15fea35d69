"""A small site that can be files: one release under several policies, and with periods."""

from dataclasses import replace

import numpy as np

from discreet import Hierarchy
from discreet.design.axis import Axis
from discreet.serve import DatasetInfo, InnerSource, Office, Policy, Site, SiteConfig, make_app
from tests.serve.client import Client as Server
from tests.serve.sites import inner_table, once, small_site

FIXED = Policy(groups="fixed", fixed_groups={"age": {"Young": ["0-14", "15-64"]}}, max_variables=2)
COARSE = ["region[county]", "region[part]", "age", "sex"]
SMALL = Policy(groups="none", threshold=30, max_cells=30)


def static_site():
    """The small country as several data sets."""
    table = inner_table()
    shares = replace(table, values=table.values * (1 + 1 / (3 + np.arange(len(table.values)))))
    made = (
        once(),
        once(source=InnerSource(shares), name="decimals"),
        once(source=InnerSource(table, COARSE), name="coarse"),
        once(name="years", time="age"),
        once(FIXED, name="fixed"),
        once(SMALL, name="small"),
    )
    return Site(small_site().config, {dataset.name: dataset for dataset in made})


HURT = "<script>window.hurt = 1</script>"
PLACES = Hierarchy(
    "all",
    {"A": "all", "B": "all", "c<b>": "all", "A1": "A", "A2": "A", "B'1": "B", 'B"2': "B",
     "A1|x": "A1", "A1y": "A1"},
    {"all": "Everywhere & nowhere", "A": HURT, "B": "x" * 180, "A1": "\u202eevil", "A2": "עברית",
     "B'1": "it's {0} {x} %s", 'B"2': '"quoted" \\', "c<b>": "<img src=x onerror=window.hurt=1>"},
)  # fmt: skip
HALVES = Hierarchy("half", {"A1|x": "east", "B'1": "east", "A1y": "west", "A2": "west",
                            "east": "half", "west": "half"})  # fmt: skip


def odd_site():
    """Names that are signs of HTML and of JavaScript, and figures of all kinds."""
    axes = (
        Axis.from_hierarchies("place", [PLACES, HALVES]),
        Axis.flat("constructor", ("toString", "__proto__", "hasOwnProperty", "1.0", "1", "01")),
        Axis.flat("__proto__", [f"{k}–{k + 4}\u00a0år" for k in range(0, 40, 5)]),
        Axis.flat("year", ("2023", "2024", "2025")),
    )
    shape = tuple(map(len, axes))
    draws = np.random.default_rng(5)
    listed = np.sort(draws.permutation(np.prod(shape))[: np.prod(shape) // 2])
    codes = np.unravel_index(listed, shape)
    can_be = codes[1] != axes[1].leaves.index("1")
    table = replace(
        inner_table(),
        axes=axes,
        codes=tuple(column[can_be].astype(np.uint8) for column in codes),
        zeros=({"constructor": ["1"], "place": ["all"]},),
    )
    n = int(can_be.sum())
    figures = {
        "odd": draws.integers(1, 10**6, n),
        "signed": draws.normal(0, 10**4, n).round(3),
        "large": draws.integers(2**36, 2**40, n),
    }
    about = DatasetInfo(f'"Odd" {HURT}', HURT, "a&b<c", footnotes=(f"</footer>{HURT}",))
    datasets = {
        name: once(name=name, about=about, source=InnerSource(replace(table, values=values)))
        for name, values in figures.items()
    }
    datasets["signed"] = replace(datasets["signed"], time="year")
    return Site(SiteConfig(f"Odd {HURT}", description=HURT), datasets)


def server_of(site):
    """Requests to a server of the same site, as many as there are."""
    office = Office()
    office.rate_limiter.rate = 0
    return Server(make_app(site, office))
