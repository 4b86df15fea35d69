"""What each method withstands: attacks on the demo census, written to docs/withstands.md.

`python tools/attack_page.py` attacks and writes `docs/withstands.json`, the page and its pictures
(`make attack`, some minutes); `--page` writes page and pictures from the stored figures.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.attacks.reconstruction import IntegerReconstruction
from discreet.attacks.scoring import Tally
from discreet.randomness import stream
from discreet.tables.protected import Protected
from discreet.tables.statement import Statement

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, PAGE = DOCS / "withstands.json", DOCS / "withstands.md"
LIFTS, FIXED = DOCS / "withstands.svg", DOCS / "withstands_fixed.svg"
PEOPLE, MARGINS = 1_500, "district*sex*broad_age"
BLOCK_PEOPLE, BLOCKS = 4_000, "region*sex*age + region*sex*marital + region*age*marital"
REPLICATES = 2
Maker = Callable[[dc.Table, int], Protected]


def as_it_is(table: dc.Table, seed: int) -> dc.Trial:
    """The truth as it stands."""
    return dc.Trial(table.design, table.z, Statement())


METHODS: dict[str, Any] = {
    "nothing": as_it_is,
    "SAFE": dc.Safe(),
    "drop-add 1 %": dc.DropAdd(),
    "PRAM, ε = 2": dc.Pram(),
    "cell keys, D = 5, V = 3": dc.CellKey(dc.perturbation_table(D=5, V=3, js=2)),
    "discrete Laplace, ε = 1": dc.DiscreteLaplace(1.0),
}
NO_BLOCKS = ("SAFE",)
"""Methods that take many minutes on 97,760 published cells, and are left out there."""
ATTACKS = ("integer-reconstruction", "bounds", "averages", "several-laws")
"""Attacks whose claims this table can answer: refits are about municipalities and single ages."""


def made(method: Any) -> Maker:
    """A method as a function of a table and a seed."""
    if hasattr(method, "source"):
        return lambda table, seed: table.simulate(method, seed=seed)
    maker: Maker = method
    return maker


def measure_lifts() -> list[dict[str, Any]]:
    """Method × attack: success, baseline, lift and its interval."""
    people = dc.demo.census(persons=PEOPLE)
    table, rows = people.tabulate(MARGINS), []
    for label, method in METHODS.items():
        began = time.process_time()
        found = dc.attack_method(table, method, ATTACKS, replicates=REPLICATES)
        for name, each in found.items():
            low, high = each.lift_interval()
            rows.append(
                {
                    "method": label,
                    "attack": name,
                    "claims": each.judged.claims,
                    "success": each.success,
                    "baseline": each.guess,
                    "lift": each.lift,
                    "low": low,
                    "high": high,
                    "proven": each.proven,
                    "drawn": isinstance(each.baseline, Tally),
                    "seconds": each.seconds / REPLICATES,
                }
            )
        sys.stderr.write(f"{label}: {time.process_time() - began:.0f} s\n")
    return rows


def measure_fixed() -> list[dict[str, Any]]:
    """The share of people who are the same in every table, of block tables by each method."""
    people = dc.demo.census(persons=BLOCK_PEOPLE)
    table, rows = people.tabulate(BLOCKS), []
    for label, method in METHODS.items():
        if any(word in label for word in NO_BLOCKS):
            continue
        release, began = made(method)(table, 1), time.process_time()
        found = IntegerReconstruction(programs=2_000).vary(release, stream(1, "page"))
        right = found.is_fixed & (found.table > 0)
        if (found.table != table.y)[right].any():
            raise SystemExit(f"{label}: a proven cell is not true.")
        rows.append(
            {
                "method": label,
                "people": int(table.y.sum()),
                "fixed": int(found.table[right].sum()),
                "undecided": found.undecided,
                "seconds": time.process_time() - began,
            }
        )
        sys.stderr.write(f"{rows[-1]}\n")
    return rows


_HEAD = """# What each method withstands

This page is generated (`make attack`). {people:,} people of the demo census, counted by
`{margins}` with all margins, were protected {replicates} times by each method as an experiment, and
each draw was [attacked](attacks.md). A cell shows what share of the claims is right, and, after the
bar, what the same attack gets right on releases drawn *without the records of the people it is
judged on*. **Bold**: above that beyond chance (95 %). The demo's people are invented, and another
table gives other figures: attack your own.

```{{image}} withstands.svg
:alt: Lift of each attack on each method, from white (nothing beyond the baseline) to red (all).
:width: 100%
```
"""
_MIDDLE = """
Of {pairs} pairs {above} are above their baseline. An empty cell: the attack has nothing to attack
there. A dash: it made no claim about the people it is judged on.

## How to read it

- `integer-reconstruction` is about municipalities and single ages, which these tables do not show:
  its claims are those of one table among many, and few are right.
- *Nothing* shows what the attacks can do. Where even that is not told, no method is credited with
  withstanding.
- Claims about counts (`averages`, `several-laws`, `bounds`) are about the smallest published cell
  of a person. A method that leaves most small counts as they are is told there, whatever it does
  to the others.
- Few claims make wide intervals: `docs/withstands.json` has the numbers of claims.
- Not shown: refits by least squares, least absolute deviation and the log-linear model. They got
  next to nothing right even where nothing was protected, since they claim cells by municipality and
  single age. Suppression, roundings and adjusted tables were not tried.

## People who are certain

Block tables of {everybody:,} people in 401 municipalities, `{blocks}`, 97,760 published cells:
about ten people to a municipality, as in a census block. `integer-reconstruction` proves who is the
same in *every* table that agrees with the release. After the census of 2010 the Census Bureau found
all records of 70 % of blocks fixed, 97 million people, from 34 published tables.

```{{image}} withstands_fixed.svg
:alt: Share of people who are provably fixed, by method.
:width: 80%
```

| method | people fixed, at least | share | undecided cells | seconds |
|---|---|---|---|---|"""
_END = """
Every proven cell was held against the truth. Undecided: more than 4,000 open cells hang together,
so bounds alone were passed on, and others may be fixed too. That a person is not certain does not
make the person safe: the table above says what is likely. SAFE takes many minutes on so many
cells. Suppression, roundings and adjusted tables are not on this page: their draws take longer.
"""


def page(data: dict[str, Any]) -> str:
    """The page of stored figures."""
    lifts, fixed = data["lifts"], data["fixed"]
    rows = {(row["method"], row["attack"]): row for row in lifts}
    methods = list(dict.fromkeys(row["method"] for row in lifts))
    attacks = [name for name in ATTACKS if any(row["attack"] == name for row in lifts)]
    above = [row for row in lifts if row["low"] > 0]
    lines = [
        _HEAD.format(**data),
        "| method | " + " | ".join(f"`{name}`" for name in attacks) + " |",
        "|---" * (len(attacks) + 1) + "|",
    ]
    for method in methods:
        cells = [_cell(rows.get((method, name))) for name in attacks]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    everybody = fixed[0]["people"]
    lines.append(_MIDDLE.format(pairs=len(lifts), above=len(above), everybody=everybody, **data))
    for row in fixed:
        share = row["fixed"] / row["people"]
        figures = f"{row['fixed']:,} | {share:.1%} | {row['undecided']:,} | {row['seconds']:.1f}"
        lines.append(f"| {row['method']} | {figures} |")
    lines.append(_END)
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if not row["claims"]:
        return "–"
    text = f"{row['success']:.0%} / {row['baseline']:.0%}"
    return f"**{text}**" if row["low"] > 0 else text


def lifts_picture(data: dict[str, Any]) -> str:
    """A square for each pair, the redder the larger the lift."""
    rows = {(row["method"], row["attack"]): row for row in data["lifts"]}
    methods = list(dict.fromkeys(row["method"] for row in data["lifts"]))
    attacks = [name for name in ATTACKS if any(key[1] == name for key in rows)]
    left, top, wide, high = 210, 150, 58, 26
    width, height = left + wide * len(attacks) + 60, top + high * len(methods) + 10
    parts = [_svg(width, height)]
    for j, name in enumerate(attacks):
        x = left + wide * j + wide / 2
        parts.append(f'<text transform="translate({x},{top - 8}) rotate(-40)">{name}</text>')
    for i, method in enumerate(methods):
        y = top + high * i
        parts.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{method}</text>')
        for j, name in enumerate(attacks):
            row = rows.get((method, name))
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


def fixed_picture(data: dict[str, Any]) -> str:
    """A bar for each method."""
    left, high = 210, 28
    parts = [_svg(640, high * len(data["fixed"]) + 20)]
    for i, row in enumerate(data["fixed"]):
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


def write(data: dict[str, Any]) -> None:
    """Page and pictures."""
    PAGE.write_text(page(data), encoding="utf-8")
    LIFTS.write_text(lifts_picture(data), encoding="utf-8")
    FIXED.write_text(fixed_picture(data), encoding="utf-8")


def main() -> int:
    """Attack, unless the stored figures are enough."""
    if "--page" not in sys.argv[1:]:
        data = {
            "people": PEOPLE,
            "margins": MARGINS,
            "replicates": REPLICATES,
            "blocks": BLOCKS,
            "fixed": measure_fixed(),
            "lifts": measure_lifts(),
        }
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write(json.loads(DATA.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
