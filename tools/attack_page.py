"""What each method withstands: attacks on two tables, written to docs/withstands.md.

`python tools/attack_page.py` attacks and writes `docs/withstands.json`, the page and its pictures
(`make attack`, some twenty minutes of one core). Parts can be run alone: `census`, `survey`,
`groups`, `people`, `records`, `overlaps`, the first two also for one attack alone
(`census:inner-table`), the third for one method (`groups:SAFE`); `--page` writes page and pictures
from the stored figures. The survey is a public use file that is not part of this repository: where
it is missing its stored figures stay.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from discreet import registry
from discreet.attacks.differencing import Differencing
from discreet.attacks.games import OF_RECORDS, trait
from discreet.attacks.groups import GroupAttributes, NestedCrossings
from discreet.attacks.insiders import ClusterInsider
from discreet.attacks.leverage import FittedValues
from discreet.attacks.reconstruction import IntegerReconstruction
from discreet.attacks.run import Findings, refusal_of, true_view
from discreet.attacks.scoring import Finding, Tally
from discreet.design import Axis
from discreet.design.axis import Level
from discreet.design.product import ProductDesign
from discreet.randomness import stream
from discreet.synthesis.methods import ipso
from discreet.synthesis.result import Synthesized
from discreet.tables.protected import Protected
from discreet.tables.statement import Statement, step_of
from discreet.tables.truth import CellValues

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DATA, PAGE = DOCS / "withstands.json", DOCS / "withstands.md"
PICTURES = {
    "census": DOCS / "withstands.svg",
    "survey": DOCS / "withstands_survey.svg",
    "people": DOCS / "withstands_fixed.svg",
}
SURVEY = Path(
    os.environ.get("DISCREET_SURVEY", ROOT.parent / "shared/data/eurostat_lfs_puf_fr_50k.csv.gz")
)
PEOPLE, RECORDS, REPLICATES = 1_000, 1_500, 3
TABLES = {
    "census": "district*sex + district*broad_age + sex*broad_age",
    "survey": "age*occupation + age*education + occupation*education*sex",
}
BLOCK_PEOPLE, BLOCKS = 4_000, "region*sex*age + region*sex*marital + region*age*marital"
GROUPS = "region[district]*sex*marital + region[district]*age[broad_age]*sex"
GROUPS_PEOPLE, GROUPS_DRAWS = 1_500, 8
FEWER_DRAWS = {"suppression, threshold 3": 2}  # eight searches of a quarter of a minute, not 32
OVERLAPS = "region[{}]*age[broad_age]*marital*sex"
OVERLAPS_PEOPLE, OVERLAPS_DRAWS, OVERLAPS_SHARE = 3_000, 4, 0.95
EVERY = 25  # of the municipalities, for methods that search: each by itself, with ten people
Maker = Callable[[dc.Table, int], Protected]


def as_it_is(table: dc.Table, seed: int) -> dc.Trial:
    """The truth as it stands."""
    return dc.Trial(table.design, table.z, Statement())


PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS: dict[str, Any] = {
    "nothing": as_it_is,
    "suppression, threshold 3": dc.Suppress("threshold(3)"),
    "small count rounding, base 3": dc.SmallCountRounding(3),
    "controlled rounding, base 3": dc.ControlledRounding(3),
    "SAFE": dc.Safe(),
    "adjusted cell keys": dc.Adjust(dc.CellKey(PTABLE)),
    "cell keys, D = 5, V = 3": dc.CellKey(PTABLE),
    "cell keys with quality": dc.protect.Quality(dc.CellKey(PTABLE)),
    "drop-add 1 %": dc.DropAdd(),
    "PRAM, ε = 2": dc.Pram(),
    "Laplace, ε = 1": dc.Laplace(1.0),
    "discrete Laplace, ε = 1": dc.DiscreteLaplace(1.0),
    "discrete Gaussian, ε = 1": dc.DiscreteGaussian(epsilon=1.0, delta=1e-5),
}
"""Every registered method, but the one for sums: attacks here are about counts."""
SYNTHESIZERS: dict[str, dict[str, Any] | None] = {
    "ipso, not checked": None,
    "ipso": {},
    "residual-correlation": {"correlations": 0.5},
    "score-correlation": {"correlations": 0.4},
    "from-residuals": {"share": 0.5},
    "romm": {"lambda_": 0.5},
    "hybrid": {"clusters": "cluster", "formula": "sales ~ 1"},
}
SLOW = "refit-noise-likelihood"  # half of the time of all others together
PROGRAMS = 50  # of a reconstruction, since each draw has eight without some of the people beside it
ON_TABLES: list[Any] = [
    IntegerReconstruction(programs=PROGRAMS) if name == IntegerReconstruction.name else name
    for name in registry.ATTACKS
    if name != SLOW and trait(registry.build("attack", name), "about") not in OF_RECORDS
]
MODEL, FILES = "sales ~ size", 40


def made(method: Any) -> Maker:
    """A method as a function of a table and a seed."""
    if hasattr(method, "source"):
        return lambda table, seed: table.simulate(method, seed=seed)
    maker: Maker = method
    return maker


def census() -> dc.Table:
    """Three linked tables of the demo census over the combinations that they tell apart."""
    return true_view(dc.demo.census(persons=PEOPLE).tabulate(TABLES["census"]))


def survey() -> dc.Table:
    """Three linked tables of the labour force survey, sampled people counted as they are."""
    names = {"AGE": "age", "ISCO1D": "occupation", "HATLEV1D": "education", "SEX": "sex"}
    frame = pd.read_csv(SURVEY, usecols=list(names), dtype=str).rename(columns=names)
    frame = frame.fillna("none")[:RECORDS]
    codes = [pd.factorize(frame[name], sort=True) for name in names.values()]
    axes = [
        Axis.flat(n, [str(c) for c in c[1]]) for n, c in zip(names.values(), codes, strict=True)
    ]
    design = ProductDesign(axes, TABLES["survey"])
    cell = np.ravel_multi_index([c[0] for c in codes], design.shape)
    return dc.Table.from_inner(design, np.bincount(cell, minlength=design.n_inner))


def measure_lifts(table: dc.Table, attacks: list[Any]) -> dict[str, Any]:
    """Method × attack: success, baseline, lift and its interval, of many draws."""
    rows = []
    for label, method in METHODS.items():
        began = time.process_time()
        drawn = made(method)(table, 1)
        if not any(not refusal_of(each, drawn, dc.Knowledge(), False) for each in attacks):
            continue
        found = dc.attack_method(table, method, attacks, replicates=REPLICATES)
        rows += rows_of(label, found)
        sys.stderr.write(f"{label}: {time.process_time() - began:.0f} s\n")
    size = {"inner": table.design.n_inner, "published": table.design.n_published}
    return {"people": int(table.y.sum()), "replicates": REPLICATES, **size, "lifts": rows}


def rows_of(label: str, found: Findings) -> list[dict[str, Any]]:
    """A row for each attack that found something to attack."""
    rows = []
    for name, each in found.items():
        low, high = each.lift_interval()
        row = {"method": label, "attack": name, "claims": each.judged.claims}
        row |= {"success": each.success, "baseline": each.guess, "lift": each.lift}
        row |= {"low": low, "high": high, "proven": each.proven}
        row |= {"drawn": isinstance(each.baseline, Tally), "seconds": each.seconds / REPLICATES}
        rows.append({key: round(v, 5) if isinstance(v, float) else v for key, v in row.items()})
    return rows


def fitted(table: dc.Table, seed: int) -> dc.Trial:
    """Counts of cell keys, and whole sums that are fitted to them."""
    return table.simulate(dc.CellKey(PTABLE), seed=seed).fit("non-negative")


def measure_groups(label: str = "") -> list[dict[str, Any]]:
    """What small groups say of sex: all claims, and the surest tenth."""
    people = dc.demo.census(persons=GROUPS_PEOPLE)
    table, rows = true_view(people.tabulate(GROUPS)), []
    attacks = [GroupAttributes("sex"), NestedCrossings("sex")]
    for name, method in {**METHODS, "cell keys, fitted": fitted}.items():
        if label not in ("", name):
            continue
        draws = FEWER_DRAWS.get(name, GROUPS_DRAWS)
        found = dc.attack_method(table, method, attacks, replicates=draws)
        for attack, each in found.items():
            row: dict[str, Any] = {"method": name, "attack": attack}
            row |= {"all": part_of(each), "surest": part_of(each.surest)}
            rows.append(row)
    return rows


def overlapping(level: str = "district", share: float = 1.0) -> dc.Table:
    """People by district, or by zones of which every second took in a municipality more.

    With a share below 1 only so many people are counted, always the same ones.
    """
    people = dc.demo.census(persons=OVERLAPS_PEOPLE)
    table = true_view(people.tabulate(OVERLAPS.format("municipality")))
    region, *others = table.design.axes
    district = region.level("district").group
    first = np.flatnonzero(np.diff(district, prepend=-1))
    zone = district.copy()
    zone[first[1::2]] -= 1
    codes = tuple(f"zone {k}" for k in range(int(zone.max()) + 1))
    area = replace(region, levels=(*region.levels, Level("region[zone]", codes, zone)))
    design = ProductDesign([area, *others], OVERLAPS.format(level))
    place = np.ravel_multi_index([np.asarray(c) for c in table.design.inner_codes()], design.shape)
    rng, person = stream(1, "overlaps"), np.repeat(place, table.y)
    keys, stays = rng.integers(2**32, size=len(person)), rng.random(len(person)) < share
    sums = np.zeros(design.n_inner, dtype=np.int64)
    np.add.at(sums, person[stays], keys[stays])
    counts = np.bincount(person[stays], minlength=design.n_inner)
    return dc.Table.from_inner(design, CellValues(counts, key=sums % 2**32))


def measure_overlaps() -> list[dict[str, Any]]:
    """What two releases say that overlap in areas or in people, of methods that do not search."""
    table, rows = overlapping(), []
    pairs = {"areas": overlapping("zone"), "people": overlapping(share=OVERLAPS_SHARE)}
    for label, method in METHODS.items():
        if getattr(method, "source", "") == "table":
            continue
        draw = made(method)
        apart = getattr(method, "source", "") != "keys"  # by key noise is the same on both sides
        row: dict[str, Any] = {"method": label}
        for name, other in pairs.items():
            attack, pooled = Differencing("sex", outside=name == "people"), Findings({})
            for seed in range(1, OVERLAPS_DRAWS + 1):
                known = dc.Knowledge(earlier=(draw(other, 2 * seed + apart),))
                release = draw(table, 2 * seed)
                options: dict[str, Any] = {"knowledge": known, "before": [other], "seed": seed}
                if not hasattr(method, "source"):
                    options["method"] = method
                pooled = pooled.pooled(dc.attack(table, release, [attack], **options))
            row[name] = part_of(pooled["differencing"])
        rows.append(row)
        sys.stderr.write(f"{row}\n")
    return rows


def part_of(found: Finding) -> dict[str, Any]:
    """What a finding says beside its baseline, and beside naming the commonest category."""
    return {
        "claims": found.judged.claims,
        "success": round(found.success, 5),
        "baseline": round(found.guess, 5),
        "usual": round(found.usual.precision, 5) if found.usual else 0.0,
        "low": round(found.gain(), 5),
    }


def blocks(every: int) -> dc.Table:
    """The block tables, of all municipalities or of every so many."""
    table = dc.demo.census(persons=BLOCK_PEOPLE).tabulate(BLOCKS)
    if every == 1:
        return table
    axes, codes = table.design.axes, [np.asarray(c) for c in table.design.inner_codes()]
    at = next(k for k, axis in enumerate(axes) if axis.name == "region")
    some = np.flatnonzero(codes[at] % every == every // 2)  # the first ones are cities
    few = list(axes)
    few[at] = Axis.flat("region", list(axes[at].leaves)[every // 2 :: every])
    for k, axis in enumerate(axes):
        few[k] = few[k] if k == at else Axis.flat(axis.name, list(axis.leaves))
    design = ProductDesign(few, BLOCKS)
    place = [c[some] // every if k == at else c[some] for k, c in enumerate(codes)]
    cell = np.ravel_multi_index(place, design.shape)
    return dc.Table.from_inner(
        design, np.bincount(cell, table.y[some], design.n_inner).astype(np.int64)
    )


def measure_people() -> list[dict[str, Any]]:
    """The share of people who are the same in every table, of block tables by each method.

    Methods that search take many minutes on all municipalities, so they have a few of them.
    """
    tables, rows = {1: blocks(1), EVERY: blocks(EVERY)}, []
    for label, method in METHODS.items():
        searches = getattr(method, "source", "") == "table"
        for every in (EVERY,) if searches else (EVERY, 1):
            table, began = tables[every], time.process_time()
            release = made(method)(table, 1)
            drawn = time.process_time()
            attack = IntegerReconstruction(programs=PROGRAMS)
            row = {"method": label, "every": every, "people": int(table.y.sum())}
            if why := attack.refusal(release, dc.Knowledge()):
                raise SystemExit(f"{label}: {why}")
            found = attack.vary(release, stream(1, "page"))
            right = found.is_fixed & (found.table > 0)
            if (found.table != table.y)[right].any():
                raise SystemExit(f"{label}: a proven cell is not true.")
            row |= {"fixed": int(found.table[right].sum()), "undecided": found.undecided}
            row |= {"draw": drawn - began, "seconds": time.process_time() - drawn}
            rows.append({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()})
            sys.stderr.write(f"{rows[-1]}\n")
    return rows


def firms(seed: int) -> pd.DataFrame:
    """Sixty firms, one of them far larger than the others, in clusters of ten."""
    rng = stream(seed, "firms")
    size = np.exp(rng.normal(3, 0.6, 60))
    size[0] = 40 * size[1:].mean()
    sales = 10 * size * np.exp(rng.normal(0, 0.5, 60))
    return pd.DataFrame({"sales": sales, "size": size, "cluster": np.arange(60) // 10})


def unchecked(frame: pd.DataFrame, seed: int) -> Synthesized:
    """A file by IPSO as it comes, without the check of large units."""
    X = np.column_stack([np.ones(len(frame)), frame["size"]])
    made_up = ipso(frame[["sales"]].to_numpy(), X, rng=stream(seed, "unchecked")).Y
    statement = Statement((step_of("synthesize:ipso", {"missing": "refuse"}, []),))
    return Synthesized(frame.assign(sales=made_up), statement, ("sales",), MODEL, "ipso")


def measure_records() -> list[dict[str, Any]]:
    """Synthesizer × attack, large units top-coded, of many files of firms."""
    rows = []
    for label, options in SYNTHESIZERS.items():
        pooled = Findings({})
        for seed in range(1, FILES + 1):
            frame = firms(seed)
            if options is None:
                file: Any = unchecked(frame, seed)
            else:
                given: dict[str, Any] = {"formula": MODEL, "large": "top-code"}
                given |= {"simulate": True, "seed": seed, **options}
                file = dc.synthesize(frame, method=label, **given)
            attacks: list[Any] = [FittedValues(most=1), "longest-column", "copies"]
            if options and "clusters" in options:
                attacks.append(ClusterInsider("cluster"))
            pooled = pooled.pooled(dc.attack(frame, file, attacks))
        rows += rows_of(label, pooled)
    return rows


_HEAD = """# What each method withstands

This page is generated (`make attack`). Every registered method for counts was tried on two tables
as an experiment, and each draw was [attacked](attacks.md) by every registered attack that finds
something to attack in it. A cell shows what share of the claims is right, and, after the bar, what
the same attack gets right on releases drawn *without the records of the people it is judged on*.
**Bold**: above that beyond chance (95 %). Other tables give other figures: attack your own.

## {people:,} people of the demo census

Three linked tables, `{margins}`: {published:,} published cells over {inner:,} combinations, which
are not shown themselves. The demo's people are invented. {draws}.
"""
_SURVEY = """
## {people:,} people of a labour force survey

The first records of the Eurostat public use file for France (2004–2013; EU-LFS, reuse with
acknowledgement), counted without weights: `{margins}`, {published:,} published cells over {inner:,}
combinations. {draws}.
"""
_GROUPS = """
## The surest claims

Few of {people:,} people of the demo census share a district, a sex and a marital status or an age:
`{margins}`,
{draws}. The attacks look for sex; all else is known. An intruder acts on claims that are
sure, so the surest tenth stands beside all: what is right, and after the bar the same attack
without the person's record. **Bold**: beyond chance (95 %) above that, and above naming the
commonest sex for the same people.{missing}

| method | `group-attributes`, all | the surest | `nested-crossings`, all | the surest |
|---|---|---|---|---|"""
_OVERLAPS = """
## Two releases that overlap

{people:,} people of the demo census by `{margins}` are released twice, and attacked by
`differencing`. *Other areas*: everybody by district, and by zones of which every second took in
one municipality of the next district. *Other people*: everybody, and everybody but {outside:.0f} %,
by district. The attack looks for the sex of people whose other variables are known, {draws} draws.
Noise by key is the same where the people are the same; other noise is drawn for each release.
**Bold**: beyond chance (95 %) above the same attack without the person, and above naming the
commonest sex. Methods that search whole tables were left out.

| method | other areas | other people |
|---|---|---|"""
_MIDDLE = """
## How to read it

- Of {pairs} pairs of a method and an attack {above} are above their baseline. By chance alone it
  would be about one in forty.
- *Nothing* shows what the attacks can do. Where even that is not told, no method is credited with
  withstanding. An empty cell: the attack has nothing to attack there. A dash: it made no claim
  about the people it is judged on.
- `integer-reconstruction`, the refits and `inner-table` are about people of combinations that the
  tables do not show; `group-attributes` and `nested-crossings` about the last variable of a person;
  `complements` and `contributor` about hidden counts. These tell of people.
- `bounds`, `averages` and `several-laws` are about the smallest published count of a person. A
  method that leaves most small counts as they are is told there, whatever it does to the others,
  and a count near the truth is what tables are published for.
- A lift is no probability that a given person is told. `docs/withstands.json` has the numbers of
  claims, and the intervals.
- Not on this page, since they need more than one release: several editions and who left
  ([editions](editions.md)), patterns of several editions ([suppression](methods/suppress.md)).
  `magnitude-key` is for sums, and attacks on counts have nothing to attack there.
  `refit-noise-likelihood` takes half of the time of all others together, and was left out.

## People who are certain

Block tables of {everybody:,} people in 401 municipalities, `{blocks}`, 97,760 published cells:
about ten people to a municipality, as in a census block. `integer-reconstruction` proves who is the
same in *every* table that agrees with the release. After the census of 2010 the Census Bureau found
all records of 70 % of blocks fixed, 97 million people, from 34 published tables.

```{{image}} withstands_fixed.svg
:alt: Share of people who are provably fixed, by method.
:width: 80%
```

| method | municipalities | people | fixed, at least | share | undecided cells | seconds |
|---|---|---|---|---|---|---|"""
_END = """
Every proven cell was held against the truth. Undecided: neither a proof nor a second table was
found in {programs} programs, so others may be fixed too; in all municipalities more than 4,000 open
cells hang together, and bounds alone were passed on. That a person is not certain does not
make the person safe: the tables above say what is likely. Methods that search have every 25th
municipality, {few:,} people, since a search over all of them takes many minutes; the others have
both, so that the two can be compared.

## Synthetic records

{files} files of sixty firms, one of them forty times as large as the others, `{model}`. The attacks
look for sales within a tenth: `fitted-values` and `longest-column` for those of the largest firm,
`copies` for all. The baseline is the same attack on a file without the firm. In a cluster of ten
firms one member tries to solve for the others. All files but the first have large units top-coded.
"""
_SECOND = """
### A second opinion

Files of {firms} ordinary firms, judged by another program too, {program}
(`python -m benchmarks.second_opinion`). `copies` takes the line of a firm for its sales, within
{percent:.0f} %; its baseline is the fit without the firm. The other program takes the nearest line,
and its baseline is firms that were not in the file. Both numbers are the share of what the baseline
leaves open.

| file | `copies`: lift | right / baseline | anonymeter, inference: risk | right / baseline |
|---|---|---|---|---|"""


def page(data: dict[str, Any]) -> str:
    """The page of stored figures."""
    both = [data[name]["lifts"] for name in TABLES]
    every = [row for rows in both for row in rows]
    census, survey = (
        {**data[name], "margins": TABLES[name], "draws": draws_of(data[name])} for name in TABLES
    )
    lines = [_HEAD.format(**census), *picture_of("census"), *table_of(both[0])]
    lines += [_SURVEY.format(**survey), *picture_of("survey"), *table_of(both[1])]
    lines += groups_of(data["groups"])
    lines += overlaps_of(data["overlaps"])
    above = sum(row["low"] > 0 for row in every)
    people = data["people"]
    size = {row["every"]: row["people"] for row in people}
    pairs = {"pairs": len(every), "above": above, "everybody": size[1], "blocks": BLOCKS}
    lines.append(_MIDDLE.format(**pairs))
    for row in people:
        share, towns = (
            row["fixed"] / row["people"],
            len(range(row["every"] // 2, 401, row["every"])),
        )
        lines.append(
            f"| {row['method']} | {towns} | {row['people']:,} | {row['fixed']:,} | {share:.1%} | "
            f"{row['undecided']:,} | {row['seconds']:.1f} |"
        )
    lines.append(_END.format(few=size[EVERY], files=FILES, model=MODEL, programs=PROGRAMS))
    lines += table_of(data["records"], "synthesizer")
    other = data["second opinion"]
    lines.append(_SECOND.format(**other, percent=100 * other["within"]))
    for row in other["rows"]:
        theirs = row["anonymeter"]
        lines.append(
            f"| {row['file']} | {_interval(row, 'lift')} | {row['success']:.0%} / "
            f"{row['baseline']:.0%} | {_interval(theirs, 'risk')} | {theirs['success']:.0%} / "
            f"{theirs['baseline']:.0%} |"
        )
    return "\n".join(lines) + "\n"


def groups_of(rows: list[dict[str, Any]]) -> list[str]:
    """Methods by attacks on small groups, all claims and the surest."""
    there = {row["method"] for row in rows}
    out = [name for name in METHODS if name not in there]
    said = f"\nLeft out, since their draws take long: {'; '.join(out)}." if out else ""
    few = [f"{n} of {name}" for name, n in FEWER_DRAWS.items() if name in there]
    draws = f"{GROUPS_DRAWS} draws" + (f" ({', '.join(few)})" if few else "")
    options = {"people": GROUPS_PEOPLE, "margins": GROUPS, "draws": draws, "missing": said}
    lines, (found, methods, attacks) = [_GROUPS.format(**options)], by_pair(rows)
    for method in methods:
        each = [found.get((method, name), {}) for name in attacks]
        cells = [_with_few(row.get(which)) for row in each for which in ("all", "surest")]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def _with_few(row: dict[str, Any] | None) -> str:
    """A cell of the page that says so where its shares are those of a few claims."""
    claims = row["claims"] if row else 0
    return _cell(row) + (f", {claims} claims" if 0 < claims < 10 else "")


def overlaps_of(rows: list[dict[str, Any]]) -> list[str]:
    """Methods by what two releases differ in."""
    options = {
        "people": OVERLAPS_PEOPLE,
        "draws": OVERLAPS_DRAWS,
        "outside": 100 - 100 * OVERLAPS_SHARE,
    }
    lines = [_OVERLAPS.format(**options, margins=OVERLAPS.format("district"))]
    for row in rows:
        lines.append(f"| {row['method']} | {_cell(row['areas'])} | {_cell(row['people'])} |")
    return lines


def _interval(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def draws_of(part: dict[str, Any]) -> str:
    """How often a table was drawn, and how many people an attack was judged on."""
    each = max(row["claims"] for row in part["lifts"])
    times = {1: "One draw", 2: "Two draws", 3: "Three draws", 4: "Four draws"}
    number = times.get(part["replicates"], f"{part['replicates']} draws")
    return f"{number} of each method, and up to {each:,} claims of each attack"


def picture_of(name: str) -> list[str]:
    """The picture of a table's lifts on the page."""
    return [
        f"```{{image}} {PICTURES[name].name}",
        ":alt: Lift of each attack on each method, from white (nothing beyond the baseline) to red "
        "(all).",
        ":width: 100%",
        "```",
        "",
    ]


def table_of(rows: list[dict[str, Any]], head: str = "method") -> list[str]:
    """Methods by attacks."""
    found, methods, attacks = by_pair(rows)
    lines = [f"| {head} | " + " | ".join(f"`{name}`" for name in attacks) + " |"]
    lines.append("|---" * (len(attacks) + 1) + "|")
    for method in methods:
        cells = [_cell(found.get((method, name))) for name in attacks]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def by_pair(
    rows: list[dict[str, Any]],
) -> tuple[dict[tuple[str, str], dict[str, Any]], list[str], list[str]]:
    """Rows by method and attack, the methods, and the attacks in the order of the registry."""
    found = {(row["method"], row["attack"]): row for row in rows}
    attacks = [name for name in registry.ATTACKS if any(key[1] == name for key in found)]
    return found, list(dict.fromkeys(row["method"] for row in rows)), attacks


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if not row["claims"]:
        return "–"
    text = f"{row['success']:.0%} / {row['baseline']:.0%}"
    return f"**{text}**" if row["low"] > 0 else text


def lifts_picture(rows: list[dict[str, Any]]) -> str:
    """A square for each pair, the redder the larger the lift."""
    found, methods, attacks = by_pair(rows)
    left, top, wide, high = 200, 150, 58, 26
    width, height = left + wide * len(attacks) + 100, top + high * len(methods) + 10
    parts = [_svg(width, height)]
    for j, name in enumerate(attacks):
        x = left + wide * j + wide / 2
        parts.append(f'<text transform="translate({x},{top - 8}) rotate(-40)">{name}</text>')
    for i, method in enumerate(methods):
        y = top + high * i
        parts.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{method}</text>')
        for j, name in enumerate(attacks):
            row = found.get((method, name))
            if row is None or not row["claims"]:
                continue
            lift = max(0.0, row["lift"])
            shade = round(255 * (1 - 0.75 * lift))
            bold = ' font-weight="bold"' if row["low"] > 0 else ""
            parts.append(
                f'<rect x="{left + wide * j}" y="{y}" width="{wide - 2}" height="{high - 2}" '
                f'fill="rgb(255,{shade},{shade})" stroke="#bbb"/>'
                f'<text x="{left + wide * j + wide / 2}" y="{y + 17}" text-anchor="middle"{bold}>'
                f"{lift:.2f}</text>"
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def fixed_picture(rows: list[dict[str, Any]]) -> str:
    """A bar for each method, on the few municipalities that all methods have."""
    left, high = 200, 28
    few = [row for row in rows if row["every"] == EVERY]
    parts = [_svg(640, high * len(few) + 20)]
    for i, row in enumerate(few):
        y, share = 10 + high * i, row["fixed"] / row["people"]
        parts.append(
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{row["method"]}</text>'
            f'<rect x="{left}" y="{y}" width="{max(1, 360 * share):.0f}" '
            f'height="{high - 6}" fill="#b22"/>'
            f'<text x="{left + 360 * share + 6:.0f}" y="{y + 17}">{share:.1%}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _svg(width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )


def texts(data: dict[str, Any]) -> dict[Path, str]:
    """Page and pictures, by their files."""
    return {
        PAGE: page(data),
        PICTURES["census"]: lifts_picture(data["census"]["lifts"]),
        PICTURES["survey"]: lifts_picture(data["survey"]["lifts"]),
        PICTURES["people"]: fixed_picture(data["people"]),
    }


PARTS: dict[str, Callable[[], Any]] = {
    "people": measure_people,
    "records": measure_records,
    "overlaps": measure_overlaps,
}
ON: dict[str, Callable[[], dc.Table]] = {"census": census, "survey": survey}


def measure(part: str, attack: str, stored: dict[str, Any]) -> Any:
    """A part of the figures; of one attack alone beside the stored ones of the others."""
    if part in PARTS:
        return PARTS[part]()
    if part == "groups":
        found = measure_groups(attack)
        kept = [row for row in stored.get(part, []) if attack not in ("", row["method"])]
        order = [*METHODS, "cell keys, fitted"]
        return sorted([*kept, *found], key=lambda row: order.index(row["method"]))
    if not attack:
        return measure_lifts(ON[part](), ON_TABLES)
    others = [row for row in stored[part]["lifts"] if row["attack"] != attack]
    found = measure_lifts(ON[part](), [registry.build("attack", attack)])
    return {**found, "lifts": others + found["lifts"]}


def main() -> int:
    """Attack, unless the stored figures are enough."""
    asked = sys.argv[1:] or [*PARTS, *ON, "groups"]
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for each in asked if asked != ["--page"] else ():
        name, _, attack = each.partition(":")
        if name == "survey" and not SURVEY.exists():
            sys.stderr.write(f"{SURVEY} is not here; the stored figures of the survey stay.\n")
            continue
        data[name] = measure(name, attack, data)
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for file, text in texts(data).items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
