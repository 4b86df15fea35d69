"""A small site that can be files: one release under several policies, and with periods."""

from dataclasses import replace

import numpy as np

from discreet.serve import InnerSource, Office, Policy, Site, make_app
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


def server_of(site):
    """Requests to a server of the same site, as many as there are."""
    office = Office()
    office.rate_limiter.rate = 0
    return Server(make_app(site, office))
