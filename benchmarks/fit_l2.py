"""Least squares fits at full scale: time, memory, and the certificate beside them.

The five-way table has 497,952 inner cells; its margins carry Laplace noise of scale 20, as when ten
margins are released with a privacy loss of one half. The hierarchical table is the demo census by
region (four levels), age, occupation and sex, all levels published.
"""

import itertools
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import discreet as dc
from benchmarks._measure import best_of, peak_gib, print_table
from discreet.randomness import stream
from discreet_studies.inner_frequencies.standin import stand_in

SHARED = Path(__file__).parents[2] / "shared" / "data"
FIVE_WAY = {"a": 7, "b": 19, "c": 12, "d": 52, "e": 6}
PAIRS = list(itertools.combinations(FIVE_WAY, 2))
TRIPLES = list(itertools.combinations(FIVE_WAY, 3))
DRAW = os.environ.get("DRAW")  # where to draw the growth curves
HEADER = ["fit", "inner", "published", "seconds", "CPU s", "peak GiB"]
HEADER += ["gradient", "feasibility", "selection", "status", "times the peer"]


def five_way_counts() -> np.ndarray:
    """The inner table of the labour force like file, or a stand-in of the same size."""
    shape = tuple(FIVE_WAY.values())
    file = SHARED / "lfs_like_agg.csv.gz"
    if not file.exists():
        print("shared data not found: a random table of the same size stands in.")
        rng = stream(1, "stand-in")
        return rng.poisson(rng.gamma(0.08, 12.0, int(np.prod(shape))))
    from pyarrow import csv

    table = csv.read_csv(file)
    codes = [np.unique(table[v].to_numpy(), return_inverse=True)[1] for v in FIVE_WAY]
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(codes), table["freq"].to_numpy())
    return counts.ravel()


def hierarchical(*, complete: bool) -> tuple[dc.Design, np.ndarray]:
    """The demo census by region, age, occupation and sex, every level published."""
    margins = "region*age*occupation*sex"
    table = dc.demo.census(1_000_000).tabulate(margins)
    if not complete:
        return table.design, table.y
    axes = table.design.axes
    counts = np.zeros([len(axis) for axis in axes], dtype=np.int64)
    counts[tuple(table.design.inner_codes())] = table.y
    return dc.Design.product(axes, margins), counts.ravel()


def noisy(design: dc.Design, counts: np.ndarray, scale: float) -> np.ndarray:
    """Published cells with Laplace noise."""
    return design.aggregate(counts) + stream(1, "noise").laplace(0.0, scale, design.n_published)


def measured(name: str, fitter, design: dc.Design, z: np.ndarray, peer: float | None) -> list:
    """One row of the table."""
    began = time.process_time()
    seconds, fit = best_of(1, lambda: fitter(design, z))
    used = time.process_time() - began
    c = fit.certificate
    quality = [c.stationarity, c.feasibility, c.selection]
    ratio = "" if peer is None else f"{peer / seconds:.0f}"
    print(f"{name}: {seconds:.3g} s, {used:.3g} s CPU, {fit.status.name}", file=sys.stderr)
    sizes = [name, design.n_inner, design.n_published, seconds, used, peak_gib()]
    return [*sizes, *quality, fit.status.name, ratio]


def warm_up() -> None:
    """Load compiled code, so that rows measure fits."""
    design = dc.Design.product({"a": 3, "b": 3}, [("a",), ("b",), ()])
    z = np.array([11, 13, 45, 11, 18, 38, 61.0])
    for fitter in (dc.LeastSquares(), dc.NonNegative(), dc.NonNegative(exact="a"), dc.Additive()):
        fitter(design, z)


def eurostat() -> tuple[dict[str, int], np.ndarray] | None:
    """Age, hours, occupation, week and industry of the labour force survey's public use file."""
    file = SHARED / "eurostat_lfs_puf_fr_50k.csv.gz"
    if not file.exists():
        return None
    from pyarrow import csv

    names = ["AGE", "HOURREAS", "ISCO1D", "REFWEEK", "NACE1D"]
    options = csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, "string"))
    table = csv.read_csv(file, convert_options=options)
    columns = [table[v].to_numpy(zero_copy_only=False).astype(str) for v in names]
    codes = [np.unique(c, return_inverse=True)[1] for c in columns]
    sizes = {v: int(c.max()) + 1 for v, c in zip(names, codes, strict=True)}
    counts = np.zeros(tuple(sizes.values()), dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    return sizes, counts.ravel()


def eurostat_rows() -> list:
    """The same on real records, from three-way margins."""
    found = eurostat()
    if found is None:
        print("the labour force survey's file is not here: left out.")
        return []
    sizes, counts = found
    three = dc.Design.product(sizes, list(itertools.combinations(sizes, 3)))
    z = noisy(three, counts, 20.0)
    fitters = {"A": dc.LeastSquares(), "B": dc.NonNegative(), "Additive": dc.Additive()}
    return [measured(f"Eurostat: {n}, 3-way", f, three, z, None) for n, f in fitters.items()]


def sparse_rows() -> list:
    """Exact and heavy two-way margins beside noisy three-way ones, where people are few.

    Invented records with the sparsity of a labour force survey, on their non-empty cells alone, to
    1e-5; and the public use file with its empty cells.
    """
    table = stand_in()
    names = [axis.name for axis in table.design.axes]
    pairs, triples = (list(itertools.combinations(names, k)) for k in (2, 3))
    kept = np.flatnonzero(table.y)
    codes = np.unravel_index(kept, [len(axis) for axis in table.design.axes])
    both = dc.Design.sparse(table.design.axes, [*pairs, *triples], codes)
    z, is_pair = pairs_exact(both, table.y[kept], len(pairs))
    exact = dc.NonNegative(exact=pairs, tolerance=1e-5)
    heavy = partial(dc.NonNegative(tolerance=1e-5), weights=np.where(is_pair, 1000.0, 1.0))
    cases = [("sparse: exact 2-way", exact, both, z), ("sparse: 2-way × 1000", heavy, both, z)]
    if (found := eurostat()) is not None:
        sizes, counts = found
        pairs, triples = (list(itertools.combinations(sizes, k)) for k in (2, 3))
        both = dc.Design.product(sizes, [*pairs, *triples])
        exact = dc.NonNegative(exact=pairs)
        z, _ = pairs_exact(both, counts, len(pairs))
        cases.append(("Eurostat: exact 2-way", exact, both, z))
    return [measured(*case, None) for case in cases]


def pairs_exact(
    design: dc.Design, counts: np.ndarray, n_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """True two-way margins with noisy three-way ones, and which they are; the pairs come first."""
    z, is_pair = (
        noisy(design, counts, 20.0),
        np.arange(design.n_published) < design.offsets[n_pairs],
    )
    z[is_pair] = design.aggregate(counts)[is_pair]
    return z, is_pair


def five_way_rows() -> list:
    """Methods A, B and C and the peers' repair on the five-way table; peers' times are recorded."""
    counts = five_way_counts()
    two, three = (dc.Design.product(FIVE_WAY, m) for m in (PAIRS, TRIPLES))
    both = dc.Design.product(FIVE_WAY, [*PAIRS, *TRIPLES])
    exact = noisy(both, counts, 20.0)
    exact[: two.n_published] = two.aggregate(counts)
    non_negative, method_c = dc.NonNegative(), dc.NonNegative(exact=PAIRS)
    cases = [
        ("A, 3-way", dc.LeastSquares(), three, noisy(three, counts, 20.0), None),
        ("B, 2-way", non_negative, two, noisy(two, counts, 20.0), 411.0),
        ("B, 3-way", non_negative, three, noisy(three, counts, 20.0), None),
        ("C, 3-way with exact 2-way", method_c, both, exact, None),
        ("Additive, 2-way", dc.Additive(), two, noisy(two, counts, 20.0), 247.0),
        ("Additive, 3-way", dc.Additive(), three, noisy(three, counts, 20.0), 600.0),
    ]
    return [measured(*case) for case in cases]


def hierarchical_rows() -> list:
    """The same fitters on the hierarchical table, with and without its structural zeros."""
    fitters = {
        "A": dc.LeastSquares(),
        "B": dc.NonNegative(),
        "C, exact total": dc.NonNegative(exact=[()]),
        "Additive": dc.Additive(),
    }
    rows = []
    for kind in ("complete", "structural zeros"):
        design, counts = hierarchical(complete=kind == "complete")
        z = noisy(design, counts, 2.0)
        rows += [measured(f"{kind}: {n}", f, design, z, None) for n, f in fitters.items()]
    return rows


def growth_rows() -> list:
    """Against the number of inner cells and the number of margins; drawn where DRAW says."""
    sizes = [(side, 6) for side in (10, 18, 32, 56)]
    margins = [(24, k) for k in range(1, 7)]
    found = {case: _growth(*case) for case in [*sizes, *margins]}
    if DRAW is not None:
        _draw_growth(found, sizes, margins, Path(DRAW))
    return [row for rows in found.values() for row in rows]


def _growth(side: int, n_margins: int) -> list:
    """Two fits of a four-way table from two-way margins with much noise."""
    pairs = list(itertools.combinations("abcd", 2))[:n_margins]
    design = dc.Design.product(dict.fromkeys("abcd", side), pairs)
    rng = stream(side, "growth")
    z = noisy(design, rng.poisson(rng.gamma(0.1, 5.0, design.n_inner)), 0.15 * side**2)
    name = f"{side}^4, {n_margins} margins"
    return [
        measured(f"A, {name}", dc.LeastSquares(), design, z, None),
        measured(f"B, {name}", dc.NonNegative(), design, z, None),
    ]


def _draw_growth(found: dict, sizes: list, margins: list, path: Path) -> None:
    import altair as alt

    def curve(cases: list, x: str, at: int) -> alt.Chart:
        rows = [
            {x: case[at] ** 4 if at == 0 else case[at], "CPU seconds": row[4], "fitter": fitter}
            for case in cases
            for fitter, row in zip(("least-squares", "non-negative"), found[case], strict=True)
        ]
        scale = alt.Scale(type="log") if at == 0 else alt.Scale(zero=False)
        axis = (
            alt.Axis(format="~s", values=[1e4, 1e5, 1e6, 1e7]) if at == 0 else alt.Axis(format="d")
        )
        return (
            alt.Chart(alt.Data(values=rows), width=320, height=240)
            .mark_line(point=True)
            .encode(
                x=alt.X(x, type="quantitative", scale=scale, axis=axis, title=x),
                y=alt.Y("CPU seconds", type="quantitative", scale=alt.Scale(type="log")),
                color=alt.Color("fitter", type="nominal"),
                strokeDash=alt.StrokeDash("fitter", type="nominal"),
            )
        )

    both = curve(sizes, "inner cells", 0) | curve(margins, "two-way margins", 1)
    both.save(path)


def replicate_rows() -> list:
    """One design, a hundred right-hand sides."""
    design = dc.Design.product(FIVE_WAY, TRIPLES)
    z = noisy(design, five_way_counts(), 20.0)
    prepared = dc.LeastSquares().prepare(design)
    prepared(z)
    seconds, _ = best_of(1, lambda: [prepared(z + i) for i in range(100)])
    print(f"one hundred right-hand sides of A, 3-way: {seconds / 100:.3g} s each")
    return []


PARTS = {
    "five-way": five_way_rows,
    "eurostat": eurostat_rows,
    "sparse": sparse_rows,
    "hierarchy": hierarchical_rows,
    "growth": growth_rows,
    "replicates": replicate_rows,
}


def main() -> None:
    """Print the table; name parts on the command line to run only those."""
    warm_up()
    rows = [row for part in sys.argv[1:] or PARTS for row in PARTS[part]()]
    if rows:
        print_table(HEADER, rows)
    print("Peers: glmnet 411 s at 1e-12 for B, 2-way; SSBtools 247 s and over 600 s for Additive.")


if __name__ == "__main__":
    main()
