"""Measured figures of suppression in the docs, from two files beside them.

`python tools/suppression_page.py` writes the tables of docs/suppression_compared.md, and the totals
of docs/methods/suppress.md and docs/benchmarks.md, between `<!-- measured -->` and `<!-- end -->`;
what patterns tell stands in docs/methods/suppress.md between marks with names of their own.
`python -m benchmarks.suppression` and `python -m benchmarks.suppression_patterns` measure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "suppression_compared.json"
PATTERNS = DOCS / "suppression_patterns.json"
COSTS = ("0.3 0", "0.3 0.15")  # spread and decoys, beside fixed costs
KINDS = {"public": "public", "lone": "alone", "inside": "inside", "outside": "elsewhere"}
Cases = dict[str, dict[str, Any]]


def pages() -> dict[Path, str]:
    """Each page with what is measured."""
    cases: Cases = json.loads(DATA.read_text(encoding="utf-8"))
    told = json.loads(PATTERNS.read_text(encoding="utf-8"))
    method = {"measured": totals(cases)}
    writers = {"inversion": inverted, "utility": drawn, "editions": editions}
    for name, write in {**writers, "corrections": corrections}.items():
        method[f"measured: {name}"] = write(told[name])
    compared = {"measured": every_case(cases), "measured: slower": slower(cases)}
    compared["measured: effort"] = efforts(told["effort"])
    parts = {
        DOCS / "suppression_compared.md": compared,
        DOCS / "methods" / "suppress.md": method,
        DOCS / "benchmarks.md": {"measured": totals(cases)},
    }
    return {path: with_parts(path.read_text(encoding="utf-8"), of) for path, of in parts.items()}


def with_parts(page: str, parts: dict[str, str]) -> str:
    """A page with what stands between the marks replaced."""
    for name, part in parts.items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, rest = page.split(start)
        page = f"{before}{start}\n{part}\n{end}{rest.split(end, 1)[1]}"
    return page


def inverted(settings: Cases) -> str:
    """What running the program on every table that fits tells, by how costs are drawn."""
    head = ["rows", "costs", "decoys", "tables", "sensitive", "one value left"]
    head += ["narrower than promised", "best guess: shown cells", "with the pattern"]
    head += ["cells hidden", "sum hidden"]
    rows = []
    for name, found in sorted(settings.items()):
        n, spread, decoys = name.split()
        all_of = found["sensitive"]
        shares = [found[key] / all_of for key in ("exact", "narrow", "before", "after")]
        means = [found[key] / found["tables"] for key in ("hidden", "sum")]
        how = "fixed" if spread == "0" else f"σ = {spread}"
        rows.append([n, how, percent(float(decoys)), str(found["tables"]), str(all_of)])
        rows[-1] += [*map(percent, shares), *(f"{mean:.1f}" for mean in means)]
    return grid(head, rows)


def drawn(cases: Cases) -> str:
    """What is hidden in recorded tables with fixed costs, and how much more with drawn ones."""
    head = ["table, rule", "cells", "hidden: fixed costs", "drawn", "drawn, decoys"]
    head += ["sum hidden: fixed costs", "drawn", "drawn, decoys"]
    rows = []
    for name, case in sorted(cases.items(), key=lambda pair: (pair[1]["cells"], pair[0])):
        n, total = case["0 0"]
        which = ", ".join(f"`{word}`" for word in name.split())
        rows.append([which, text(case["cells"]), text(n), *(text(case[key][0]) for key in COSTS)])
        rows[-1] += [text(round(total)), *(percent(case[key][1] / total - 1, "+") for key in COSTS)]
    return grid(head, rows)


def editions(series: Cases) -> str:
    """What several editions tell, by how their patterns were made."""
    ways = ("no secret", "secret", "following")
    head = ["editions", "claimed exactly: no secret", "secret", "`previous=`"]
    head += ["sensitive among those always hidden: no secret", "secret", "`previous=`"]
    head += ["among those hidden now: no secret", "secret", "`previous=`"]
    rows = []
    for n in sorted({int(name.split()[-1]) for name in series}):
        found = [series[f"{way} {n}"] for way in ways]
        parts = (("exact", "sensitive"), ("always_sensitive", "always"), ("sensitive", "hidden"))
        shares = [one[part] / one[whole] for part, whole in parts for one in found]
        rows.append([str(n), *map(percent, shares)])
    return grid(head, rows)


def corrections(ways: Cases) -> str:
    """What an edition and its correction give away together."""
    head = ["correction", "tables", "sensitive counts of both editions", "given away exactly"]
    names = {"anew": "suppressed anew", "following": "with `previous=` what it corrects"}
    found = [(name, ways[way]) for way, name in names.items()]
    rows = [
        [name, text(one["tables"]), text(one["sensitive"]), share(one["exact"], one["sensitive"])]
        for name, one in found
    ]
    return grid(head, rows)


def share(part: int, whole: int) -> str:
    """A number and what share of another it is."""
    return f"{part} ({100 * part / whole:.1f} %)"


def slower(cases: Cases) -> str:
    """Recorded runs that were more than twice as quick, and the load under which ours ran."""
    loads = [case["load"] for case in cases.values()]
    times = {
        name: case["ours"]["cpu"] / case["recorded"]["cpu"]
        for name, case in cases.items()
        if case["recorded"]["cpu"]
    }
    rows = []
    for name, ratio in sorted(times.items(), key=lambda pair: -pair[1]):
        if ratio > 2:
            which, run = name.split(" ", 1)
            both = (cases[name]["recorded"]["cpu"], cases[name]["ours"]["cpu"])
            rows.append([f"`{which}`, `{run}`", *map(seconds, both), f"{ratio:.1f}"])
    few = f"{len(times) - len(rows)} of {len(times)} recorded runs took at least half of our time."
    large = [case for case in kind(cases, "freq_").values() if case["cells"] > 15_000]
    spans = [ends([case[side]["cpu"] for case in large]) for side in ("ours", "recorded")]
    said = (
        f"Tables of 20,000 counts take {spans[0]} seconds, the recorded runs {spans[1]}. {few} "
        f"Ours ran under loads of {ends(loads)}. The others:"
    )
    return f"{said}\n\n{grid(['table, recorded run', 'CPU s: recorded', 'ours', 'times'], rows)}"


def ends(values: list[float]) -> str:
    """The smallest and the largest of some numbers."""
    return f"{min(values):.0f} to {max(values):.0f}"


def efforts(cases: Cases) -> str:
    """What thinning and swaps are worth, by their share of the usual effort."""
    head = ["table", "effort of thinning and swaps", "secondary", "sum hidden", "CPU s", "load"]
    rows = []
    for name, found in cases.items():
        for part, words in {"0": "none", "0.2": "a fifth", "1": "usual"}.items():
            n, total, cpu = found[part]
            figures = [text(n), text(round(total)), seconds(cpu), text(round(found["load"]))]
            rows.append([f"`{name.split()[0]}`", words, *figures])
    return grid(head, rows)


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of a page."""
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def every_case(cases: Cases) -> str:
    """A line for each recorded run, counts and sums apart, and the least cost of small tables."""
    parts = {"Counts": table(kind(cases, "freq_")), "Sums": table(kind(cases, "mag_"))}
    parts["Least cost"] = least(cases)
    return "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items())


def least(cases: Cases) -> str:
    """Costs of our patterns beside the least cost and its bounds."""
    head = ["table, rule", "`interval`", "`optimal`", "at least", "relaxation", "CPU s: `optimal`"]
    rows = []
    for name, case in {**kind(cases, "freq_"), **kind(cases, "mag_")}.items():
        if "least" in case:
            found, ours = case["least"], case["ours"]
            costs = (ours["cost"], found["cost"], found["bound"], ours["relaxed"])
            figures = [*(f"{round(cost):,}" for cost in costs), seconds(found["cpu"])]
            which = ", ".join(f"`{word}`" for word in name.split())
            rows.append([which, *figures])
    return grid(head, rows)


def kind(cases: Cases, start: str) -> Cases:
    """Some of the cases, small tables first."""
    some = {name: case for name, case in cases.items() if name.startswith(start)}
    return dict(sorted(some.items(), key=lambda pair: (pair[1]["cells"], pair[0])))


def table(cases: Cases) -> str:
    """Recorded patterns beside ours."""
    short = [f"short: {word}" for word in KINDS.values()]
    head = ["table, recorded run", "cells", "sensitive", "secondary: recorded", "ours"]
    head += ["sum hidden: recorded", "ours", *short, "in sums", "ours: short", "open"]
    head += ["CPU s: recorded", "ours"]
    return grid(head, [line(name, case) for name, case in cases.items()])


def line(name: str, case: dict[str, Any]) -> list[str]:
    """One recorded run."""
    theirs, ours = case["recorded"], case["ours"]
    which, run = name.split(" ", 1)
    cells = [f"`{which}`, `{run}`", case["cells"], case["sensitive"]]
    cells += [theirs["secondary"], ours["secondary"], round(theirs["sum"]), round(ours["sum"])]
    cells += [theirs.get("short", {}).get(word) for word in KINDS] + [theirs.get("in_sums")]
    cells += [ours["short"] + ours["in_sums"], ours["unproved"]]
    return [*map(text, cells), seconds(theirs["cpu"]), seconds(ours["cpu"])]


def totals(cases: Cases) -> str:
    """All cases together that have a recorded time and were attacked, and the large ones."""
    head = ["", "runs", "secondary: recorded", "ours", "sum hidden: recorded", "ours"]
    head += ["short: recorded", "ours", "CPU s: recorded", "ours"]
    rows = []
    for title, start in (("counts", "freq_"), ("sums", "mag_")):
        some = [case for case in kind(cases, start).values() if case["recorded"]["cpu"]]
        for word, chosen in (
            (f"{title}, up to 4,000 cells", [c for c in some if "short" in c["recorded"]]),
            (f"{title}, larger", [c for c in some if "short" not in c["recorded"]]),
        ):
            if chosen:
                rows.append([word, *map(text, added(chosen))])
    return grid(head, rows)


def added(cases: list[dict[str, Any]]) -> list[Any]:
    """Figures of several runs added up."""
    theirs, ours = ([case[side] for case in cases] for side in ("recorded", "ours"))
    found: list[Any] = [len(cases)]
    for name in ("secondary", "sum"):
        found += [round(sum(one[name] for one in side)) for side in (theirs, ours)]
    short = [sum(one["short"].values()) for one in theirs if "short" in one]
    found += [sum(short) if short else None, sum(one["short"] for one in ours)]
    return found + [round(sum(one["cpu"] for one in side)) for side in (theirs, ours)]


def text(value: Any) -> str:
    """A number as it is written, or a dash."""
    return "–" if value is None else value if isinstance(value, str) else f"{value:,}"


def percent(share: float, sign: str = "") -> str:
    """A share as it is written."""
    return f"{100 * share:{sign}.0f} %".replace("-", "−")


def seconds(value: float | None) -> str:
    """CPU seconds, short."""
    return "–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page, encoding="utf-8")
