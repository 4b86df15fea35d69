"""A small office: records, code lists, a secret, and a publication of two linked tables."""

import numpy as np
import pandas as pd

import discreet as dc
from tests.commands import run

TEXT = """
[publication]
name = "people"
title = "People"
formats = ["xlsx", "px", "json-stat", "sdmx-csv", "csv"]
languages = ["en", "nb"]
time = "{time}"

[data]
source = "people.csv"
id = "id"
codes = "codes.toml"
secret = "keys.secret"
ledger = "discreet.db"
name = "people"
{more}
[tables."Age by region"]
margins = "region*age"
title = "People by region and age"
footnotes = ["Age in years."]

[tables."Sex by region"]
margins = "region*sex"

[protect]
method = "{method}"
{parameters}
[fit]
fitter = "non-negative"
round = "margins"
seed = 1
"""
NORWEGIAN = """
[publication]
title = "Folk"
[tables."Age by region"]
title = "Folk etter landsdel og alder"
footnotes = ["Alder i år."]
[tables."Sex by region"]
title = "Kjønn etter landsdel"
[variables]
region = "Landsdel"
age = "Alder"
sex = "Kjønn"
year = "År"
[codes.region]
N = "Nord"
S = "Sør"
W = "Vest"
[codes.sex]
f = "kvinner"
m = "menn"
"""
CODES = """
region = {codes = ["N", "S", "W"]}
age = {codes = ["0-17", "18-64", "65+"]}
sex = {codes = ["f", "m"]}
"""
KEYS = "[protect.parameters]\nD = 3\nV = 1.0\n"
PRIVATE = "[protect.parameters]\nepsilon = 1.0\n"
ONE_ATTACK = '[gate]\nattack = ["bounds"]\n'
"""The usual attacks take two thirds of a publication's time: most tests are about the rest."""
OFF = '[gate]\nattack = "off"\n'


def records(seed, n=900):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": np.arange(n) + 1000 * seed,
            "region": rng.choice(["N", "S", "W"], n),
            "age": rng.choice(["0-17", "18-64", "65+"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def found_office(folder, method="cell-key", parameters=KEYS):
    """All files that an office needs to publish."""
    write(folder, method, parameters)
    (folder / "codes.toml").write_text(CODES)
    (folder / "texts").mkdir()
    (folder / "texts" / "nb.toml").write_text(NORWEGIAN)
    dc.Secret.from_file(folder / "keys.secret", create=True)
    records(1).to_csv(folder / "people.csv", index=False)


def write(folder, method="cell-key", parameters=KEYS, more="", time="year", gate=ONE_ATTACK):
    text = TEXT.format(method=method, parameters=parameters, more=more, time=time)
    (folder / "publication.toml").write_text(text + gate)


def publish(edition, *more):
    return run("publish", "publication.toml", "--edition", edition, *more)
