"""What editions of cell-key tables give away: mode by churn by method, with three figures.

Run `python -m benchmarks.editions`, or parts of it (`--churn 0.01`, `--rest`). They write
`docs/editions.json`, from which the tables and the picture of `docs/editions.md` are made
(`--docs`). People, tables and the size of every run stand in the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks import Knowledge, judge
from discreet.attacks.editions import Leavers
from discreet.design import Axis
from discreet.design.product import ProductDesign
from discreet.noise.series import leaver_claims, unchanged_recovered
from discreet.protect.editions import editions_allowed
from discreet.protect.editions import tables_of as number_of_tables
from discreet.randomness import stream
from discreet.tables.editions import EditionMode
from discreet.tables.truth import CellValues, DataSet

DATA = Path(__file__).parents[1] / "docs" / "editions.json"
PAGE, PICTURE = DATA.with_suffix(".md"), DATA.with_suffix(".svg")
SIZES = {"region": 40, "age": 15, "sex": 2, "marital": 4, "work": 5}
SHARES = {"marital": (0.4, 0.4, 0.13, 0.07)}
MODES = ("kept", "renewed:0.05", "fresh", "phased:4")
EDITIONS = {0.002: 12, 0.01: 12, 0.05: 6, 0.2: 4}
CHURN = tuple(EDITIONS)
METHODS = {"V=3": {"D": 5, "V": 3, "js": 2}, "V=5": {"D": 8, "V": 5, "js": 2}}
WINDOW = 8
SECRET = dc.Secret(b"a secret of the benchmark, which protects nobody at all")
TERMS = " + ".join("*".join(three) for three in itertools.combinations(SIZES, 3))
DESIGN = ProductDesign(
    [Axis.flat(name, [f"{name}{k}" for k in range(n)]) for name, n in SIZES.items()], TERMS
)


class Population:
    """People with profiles and ids, of whom a share is replaced, or leaves, at each edition."""

    def __init__(self, n: int, churn: float, seed: int, *, joins: bool = True) -> None:
        self.rng, self.churn, self.joins = stream(seed, "benchmark.editions"), churn, joins
        self.codes, self.ids, self.next = self._draw(n), np.arange(n), n

    def _draw(self, n: int):
        return np.array([self.rng.choice(k, n, p=SHARES.get(name)) for name, k in SIZES.items()])

    def move(self):
        """One edition later; returns the profiles that left."""
        n = len(self.ids)
        gone = self.rng.choice(n, round(self.churn * n), replace=False)
        left = self.codes[:, gone].copy()
        if self.joins:
            self.codes[:, gone] = self._draw(len(gone))
            self.ids[gone] = np.arange(self.next, self.next + len(gone))
            self.next += len(gone)
        else:
            self.codes, self.ids = np.delete(self.codes, gone, 1), np.delete(self.ids, gone)
        return left

    def table(self, mode: str, edition: int):
        """The table of an edition, with keys as `with_keys` makes them."""
        keys = SECRET.keys_for_ids(self.ids, edition=str(edition), mode=mode)
        cell = np.ravel_multi_index(tuple(self.codes), tuple(SIZES.values()))
        sums = np.zeros(DESIGN.n_inner, dtype=np.int64)
        np.add.at(sums, cell, keys)
        counts = np.bincount(cell, minlength=DESIGN.n_inner)
        made = dc.Table.from_inner(DESIGN, CellValues(counts, key=sums % 2**32))
        made = made.with_secret(SECRET)
        return replace(made, data_set=DataSet("census", str(edition), mode, churn=self.churn))


def profiles(codes) -> dict[tuple[str, ...], bool]:
    """Profiles as the attack names them."""
    leaves = [axis.leaves for axis in DESIGN.axes]
    return {tuple(leaves[a][c] for a, c in enumerate(row)): True for row in codes.T}


def series(mode: str, method, people: Population, editions: int):
    """Releases of so many editions, the profiles that left before each, and the last table."""
    releases, left, made = [], [], None
    for edition in range(1, editions + 1):
        left.append(people.move() if edition > 1 else None)
        table = people.table(mode, edition)
        made = table.protect(method, previous=made)
        releases.append(made)
    return releases, left, table


def leavers(mode: str, name: str, churn: float, n: int, editions: int) -> dict[str, object]:
    """Who left: before the newest of 2, within a window of a long series, beside one edition."""
    method = dc.CellKey(dc.perturbation_table(**METHODS[name]))
    releases, left, table = series(mode, method, Population(n, churn, 1), editions)
    window = min(WINDOW, editions - 1)
    after = (editions - window) // 2
    first = editions - after - window
    gone = np.concatenate(left[first : first + window], axis=1)
    found = {}
    for what, attack, seen, truth in (
        ("2 editions", Leavers(churn), releases[:2], left[1]),
        (f"{editions} editions", Leavers(churn, window, after), releases, gone),
    ):
        started = time.perf_counter()
        knowledge = Knowledge(tuple(seen[:-1]))
        claims = attack(seen[-1], knowledge, rng=stream(2, "attack"))
        alone = Leavers(churn * (1 if what[0] == "2" and len(seen) == 2 else window))
        base = alone(seen[0], Knowledge(), rng=stream(2, "attack"))
        result = judge(claims, profiles(truth), attack=what, baseline=base)
        low, high = result.tally.interval()
        surest = result.tally.right[: max(1, len(claims) // 10)]
        found[what] = {
            "right": result.success,
            "interval": [low, high],
            "surest": float(surest.mean()),
            "one edition only": result.guess,
            "leavers": len(truth.T),
            "seconds": round(time.perf_counter() - started, 1),
        }
    law, tables, chosen = method.law, number_of_tables(DESIGN), EditionMode.parse(mode)
    found["bound"] = {
        t: list(leaver_claims(chosen, law, tables, churn, t)) for t in (2, min(editions, 12))
    }
    found["allowed"] = editions_allowed(mode, law, tables, churn)
    found["error"] = float(np.sqrt(np.mean((releases[-1].z - table.z)[table.z > 0] ** 2)))
    return found


def unchanged(mode: str, name: str) -> dict[str, float]:
    """Unchanged small cells that the posterior gives exactly, after 1, 4, 12 and 40 editions."""
    law = dc.perturbation_table(**METHODS[name])
    return {str(t): unchanged_recovered(EditionMode.parse(mode), law, t) for t in (1, 4, 12, 40)}


def shrinking(mode: str, churn: float, n: int, editions: int = 12) -> float:
    """By how much sums of three-way tables are off when people leave and nobody joins."""
    method = dc.CellKey(dc.perturbation_table(**METHODS["V=3"]))
    people = Population(n, churn, 3, joins=False)
    releases, _, table = series(mode, method, people, editions)
    fine = [
        k for k, b in enumerate(DESIGN.blocks) if len([v for v in b.levels if v is not None]) == 3
    ]
    off = [
        releases[-1].z[DESIGN.slice_of(k)].sum() / table.z[DESIGN.slice_of(k)].sum() - 1
        for k in fine
    ]
    return float(max(off, key=abs))


def held(churn: float, n: int, threshold: int, editions: int = 12) -> float:
    """The same if a value were held until 3 to 6 (10 to 20) records of its cell changed."""
    rng, people = stream(4, "held"), Population(n, churn, 3, joins=False)
    law = dc.perturbation_table(**METHODS["V=3"])
    members = DESIGN.members(np.arange(DESIGN.n_inner))
    size = DESIGN.n_published

    def drawn(z):
        return z + law.noise(z, rng.integers(2**32, size=size), 2**32)

    z = people.table("fresh", 1).z
    shown, moved = drawn(z), np.zeros(size, dtype=np.int64)
    limit = rng.integers(threshold, 2 * threshold + 1, size)
    for edition in range(2, editions + 1):
        gone = np.ravel_multi_index(tuple(people.move()), tuple(SIZES.values()))
        moved += np.bincount(members[gone].ravel(), minlength=size + 1)[:size]
        z, due = people.table("fresh", edition).z, moved >= limit
        shown = np.where(due, drawn(z), shown)
        limit = np.where(due, rng.integers(threshold, 2 * threshold + 1, size), limit)
        moved[due] = 0
    fine = [
        k for k, b in enumerate(DESIGN.blocks) if len([v for v in b.levels if v is not None]) == 3
    ]
    off = [shown[DESIGN.slice_of(k)].sum() / z[DESIGN.slice_of(k)].sum() - 1 for k in fine]
    return float(max(off, key=abs))


def table_wise(churn: float, n: int = 2_000, trials: int = 1) -> dict[str, float]:
    """SAFE on a three-way table: who left between two editions, drawn afresh or repeated."""
    axes = [Axis.flat(v, [f"{v}{k}" for k in range(s)]) for v, s in (("a", 12), ("b", 8), ("c", 4))]
    design, rng = ProductDesign(axes, "a*b*c"), stream(5, "table-wise")
    codes = np.array([rng.choice(len(axis), n) for axis in axes])
    shape, method = tuple(map(len, axes)), dc.Safe(proposals=20_000)

    def release(codes, edition, previous=None, mode="fresh"):
        counts = np.bincount(np.ravel_multi_index(tuple(codes), shape), minlength=design.n_inner)
        made = dc.Table.from_inner(design, CellValues(counts)).with_secret(SECRET)
        made = replace(made, data_set=DataSet("safe", edition, mode))
        return made.protect(method, previous=previous)

    gone = rng.choice(n, round(churn * n), replace=False)
    later = codes.copy()
    later[:, gone] = np.array([rng.choice(len(axis), len(gone)) for axis in axes])
    left = set(np.ravel_multi_index(tuple(codes[:, gone]), shape).tolist())
    found = {}
    for mode in ("fresh", "phased:4"):
        one = release(codes, "1", mode=mode)
        two = release(later, "2", one, mode)
        fall = (one.y - two.y) + stream(6, "ties").random(design.n_inner) * 1e-6
        claimed = np.argsort(-fall)[: len(left)]
        found[mode] = float(np.mean([k in left for k in claimed.tolist()]))
    found["guess"] = len(left) / design.n_inner
    return found


def rows_of(churn: float, n: int) -> list[dict[str, object]]:
    """Who left, for one share of changes: every mode and method."""
    rows = []
    for mode, name in itertools.product(MODES, METHODS):
        if name != "V=3" and mode in ("kept", "renewed:0.05"):
            continue  # a larger variance changes nothing where a cell shows whether it changed
        # many changes leave a long series little to say; a larger variance shows in a short one
        long = EDITIONS[churn] if name == "V=3" else 4
        row = {"mode": mode, "method": f"cell-key {name}", "churn": churn}
        rows.append({**row, **leavers(mode, name, churn, n, long)})
        sys.stderr.write(f"{rows[-1]}\n")
    return rows


def rest(n: int) -> dict[str, object]:
    """Unchanged cells, age, what was tried and left out, and a table-wise method."""
    return {
        "people": n,
        "profiles": DESIGN.n_inner,
        "tables": TERMS,
        "window": WINDOW,
        "unchanged": {f"{m} {v}": unchanged(m, v) for m in MODES for v in METHODS},
        "bias": {f"{m} {r}": shrinking(m, r, n) for m in ("fresh", "phased:4") for r in CHURN[:3]},
        "held": {f"{k} {r}": held(r, n, k) for k in (3, 10) for r in CHURN[:3]},
        "safe": {str(r): table_wise(r) for r in CHURN},
    }


MARK = "<!-- made by benchmarks/editions.py -->"


def write_page(data: dict[str, object]) -> None:
    """The table of the page, between its marks, and the picture."""
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{tables_of(data)}\n{MARK}{after}", encoding="utf-8")
    chart_of(data).save(str(PICTURE), format="svg")


def tables_of(data: dict[str, object]) -> str:
    """Leavers and allowed numbers by mode, churn and method; then unchanged cells; then age."""
    out = [
        f"{data['people']:,} people, {data['profiles']:,} profiles, ten three-way tables with "
        "their margins. Shares of right claims with 95 % intervals, then the surest tenth; as many "
        "profiles are claimed as left. *Bound*: what `leaver_claims` says beforehand for two "
        "editions. *Allowed*: editions that the ledger takes.",
        "",
        "| mode | method | changes | two editions | one edition only | bound | long series | "
        "one edition only | error | allowed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in data["leavers"]:
        (a, two), (b, long) = [(k, v) for k, v in row.items() if k.endswith(" editions")]
        said = [
            f"{v['right']:.0%} ({v['interval'][0]:.0%}–{v['interval'][1]:.0%}), {v['surest']:.0%}"
            for v in (two, long)
        ]
        bound = next(iter(row["bound"].values()))
        allowed = row["allowed"] if row["allowed"] < 120 else "120 or more"
        out.append(
            f"| {row['mode']} | {row['method']} | {row['churn']:.1%} | {said[0]} | "
            f"{two['one edition only']:.1%} | {bound[0]:.0%}, {bound[1]:.0%} | {b}: {said[1]} | "
            f"{long['one edition only']:.1%} | {row['error']:.2f} | {allowed} |"
        )
    out += [
        "",
        beside_bounds(data),
        "",
        "Unchanged small counts that the exact posterior gives (40 % without a table):",
        "",
        "| mode | 1 edition | 4 | 12 | 40 |",
        "|---|---|---|---|---|",
    ]
    for name, found in data["unchanged"].items():
        out.append(f"| {name} | " + " | ".join(f"{x:.0%}" for x in found.values()) + " |")
    out += [
        "",
        "Age: how far the sum of a three-way table is off after 12 editions if people leave and "
        "nobody joins, the worst of ten tables. *Held* was tried and is not offered.",
        "",
        "| mode | changes | sum off by |",
        "|---|---|---|",
    ]
    both = {**data["bias"], **{f"held:{k}": v for k, v in data["held"].items()}}
    for key, off in both.items():
        mode, churn = key.rsplit(" ", 1)
        out.append(f"| {mode} | {float(churn):.1%} | {off:+.1%} |")
    out += [
        "",
        "SAFE, one inner table of 384 cells, 2,000 people; cells claimed to have lost somebody:",
        "",
        "| changes | fresh | phased:4 | guess |",
        "|---|---|---|---|",
    ]
    for churn, found in data["safe"].items():
        out.append(
            f"| {float(churn):.1%} | {found['fresh']:.0%} | {found['phased:4']:.0%} | "
            f"{found['guess']:.0%} |"
        )
    return "\n".join(out)


def beside_bounds(data: dict[str, Any]) -> str:
    """In how many rows the measured share, or the end of its interval, is above the bound."""
    rows, above, reach, few = data["leavers"], [], [], []
    for row in rows:
        found, bound = row["2 editions"], row["bound"]["2"][0]
        name = f"{row['mode']}, {row['method']}, {row['churn']:.1%}"
        if found["right"] > bound:
            above.append(f"{name}: {found['right']:.1%} of {found['leavers']} against {bound:.1%}")
        if found["interval"][1] > bound:
            reach.append(name)
            few.append(found["leavers"])
    most = f", with {min(few)} to {max(few)} leavers" if few else ""
    return (
        f"Of {len(rows)} rows, the share of right claims for two editions is above the bound in "
        f"{len(above)} ({'; '.join(above) or 'none'}), and the upper end of its 95 % interval in "
        f"{len(reach)}{most}. So few leavers cannot show that a small bound holds."
    )


def chart_of(data: dict[str, object]):
    """Right claims over churn, one line a mode, two editions and the long series beside it."""
    import altair as alt

    rows = []
    for row in data["leavers"]:
        if not row["method"].endswith("V=3"):
            continue
        for what, found in row.items():
            if what.endswith(" editions"):
                seen = "two editions" if what[:2] == "2 " else "a series, window of up to eight"
                rows.append(
                    {
                        "seen": seen,
                        "mode": row["mode"],
                        "churn": row["churn"],
                        "right": found["right"],
                    }
                )
                rows.append(
                    {
                        "seen": seen,
                        "mode": "one edition only",
                        "churn": row["churn"],
                        "right": found["one edition only"],
                    }
                )
    base = alt.Chart(alt.Data(values=rows)).mark_line(point=True)
    return base.encode(
        x=alt.X(
            "churn:Q",
            scale=alt.Scale(type="log", domain=[0.0015, 0.3]),
            title="share that changes",
            axis=alt.Axis(format=".1~%", values=[0.002, 0.01, 0.05, 0.2]),
        ),
        y=alt.Y(
            "mean(right):Q", title="claims about leavers that are right", axis=alt.Axis(format="%")
        ),
        color=alt.Color("mode:N", title="", legend=alt.Legend(labelLimit=300, padding=12)),
        column=alt.Column("seen:N", title=""),
    ).properties(width=260, height=220)


def main() -> None:
    """Measure all of it or one part, then make the page from what is in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--churn", type=float, action="append", help="rows of this share alone")
    parser.add_argument("--rest", action="store_true", help="what has no share of changes")
    parser.add_argument("--docs", action="store_true", help="make the page and measure nothing")
    parser.add_argument("--people", type=int, default=20_000)
    chosen = parser.parse_args()
    wanted = chosen.churn or ([] if chosen.rest or chosen.docs else list(CHURN))
    for churn in wanted:
        rows = rows_of(churn, chosen.people)
        data = _read()
        kept = [row for row in data.get("leavers", []) if row["churn"] != churn]
        ordered = sorted([*kept, *rows], key=lambda row: row["churn"])
        DATA.write_text(json.dumps({**data, "leavers": ordered}, indent=1) + "\n", encoding="utf-8")
    if chosen.rest or not (chosen.churn or chosen.docs):
        found = rest(chosen.people)
        DATA.write_text(json.dumps({**_read(), **found}, indent=1) + "\n", encoding="utf-8")
    if "unchanged" in _read() and "leavers" in _read():
        write_page(_read())


def _read() -> dict[str, Any]:
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}


if __name__ == "__main__":
    main()
