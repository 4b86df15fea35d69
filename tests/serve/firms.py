"""A data set of firms: counts released once, and turnover beside them in two ways of protection."""

import csv

import tomli_w

from discreet import Secret
from discreet.randomness import stream

CODES = """
[region.codes]
N = "North"
S = "South"
[activity.codes]
bread = "Bread"
glass = "Glass"
steel = "Steel"
[year]
codes = ["2024", "2025"]
"""
RECORDS = {
    "source": "firms.csv",
    "id": "id",
    "edition": "2026",
    "codes": "codes.toml",
    "secret": "keys.secret",
}
RULES = {"rules": ["p%(10)"]}


def records():
    """Firms with their turnover; one has nearly all the glass of the south."""
    rng = stream(4, "firms")
    found = []
    for k in range(400):
        region, activity = rng.choice(["N", "S"]), rng.choice(["bread", "steel"])
        turnover = int(rng.lognormal(5, 1))
        if k % 40 == 0:
            region, activity = "S", "glass"
            turnover = 90_000 if k < 80 else 3
        found.append([k, f"e{k // 2 % 150}", region, activity, 2024 + k % 2, turnover, 100 + k])
    return found


def site_file(folder, measures=None, **changes):
    """A site's file of firms, in a folder with its records and code lists."""
    with (folder / "firms.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "enterprise", "region", "activity", "year", "turnover", "wages"])
        writer.writerows(records())
    (folder / "codes.toml").write_text(CODES)
    Secret.from_file(folder / "keys.secret", create=True)
    sums = {"value": "turnover", "contributor": "enterprise"}
    hidden = {"method": "suppress", "parameters": RULES}
    tables = {"margins": "region*activity + activity*year", **sums}
    changed = {"margins": "region*activity*year", **sums, "value": "wages"}
    given = {
        "turnover": {
            "title": "turnover in million crowns",
            "mean": "turnover per firm",
            "recipe": {"tabulate": tables, "protect": hidden},
        },
        "wages": {"recipe": {"tabulate": changed, "protect": {"method": "magnitude-key"}}},
    }
    firms = {
        "title": "Firms",
        "records": {**RECORDS, "name": "firms"},
        "recipe": {
            "tabulate": {"margins": "region*activity*year"},
            "protect": {"method": "safe"},
        },
        "measures": given if measures is None else measures,
    }
    file = folder / "site.toml"
    file.write_text(tomli_w.dumps({"datasets": {"firms": {**firms, **changes}}}))
    return file
