"""Noise on many cells: look-up by key over sizes, and draws through OpenDP in vectors."""

import numpy as np

import discreet as dc
from benchmarks._measure import best_of, peak_gib, print_table
from discreet.protect.draws import laplace_noise
from discreet.tables.truth import CellValues

SIZES = (100_000, 1_000_000, 10_000_000)
PTABLE = dc.perturbation_table(D=5, V=3, js=2)


def table_of(cells: int) -> dc.Table:
    """A two-way table of counts with many small ones, and random keys."""
    rng = np.random.default_rng(1)
    design = dc.Design.product({"area": cells // 100, "age": 100}, [("area", "age")])
    counts = rng.poisson(rng.gamma(0.7, 12.0, cells))
    keys = rng.integers(2**32, size=cells)
    return dc.Table(design, CellValues(counts, key=keys))


def by_key(cells: int) -> list:
    """Times of the look-up alone and of a whole release; quality is the variance that results."""
    table, method = table_of(cells), dc.CellKey(PTABLE)
    keys = table.cell_keys
    look_up, _ = best_of(3, lambda: PTABLE.noise(table.z, keys, 2**32))
    release, result = best_of(3, lambda: table.protect(method))
    moves = (result.z - table.z)[table.z > 0]
    return [cells, look_up, release, 1e9 * release / cells, float(moves.var()), peak_gib()]


def by_system(draws: int, scale: float, cap: int | None) -> list:
    """Time of differentially private draws; quality is their variance over the law's."""
    seconds, noise = best_of(1, lambda: laplace_noise(draws, scale, cap))
    q = np.exp(-1 / scale)
    law = q ** np.abs(np.arange(-(cap or 10_000), (cap or 10_000) + 1.0))
    expected = float(law @ np.arange(-(len(law) // 2), len(law) // 2 + 1.0) ** 2 / law.sum())
    shown = "none" if cap is None else cap
    return [draws, scale, shown, seconds, 1e6 * seconds / draws, noise.var() / expected]


def main() -> None:
    """Print both tables."""
    header = ["cells", "look-up s", "release s", "ns/cell", "variance (3)", "peak GiB"]
    print_table(header, [by_key(cells) for cells in SIZES])
    print("Target: ten million cells in under 0.5 s.")
    header = ["draws", "scale", "cap", "seconds", "µs/draw", "variance ratio (1)"]
    cases = [(100_000, 0.5, None), (100_000, 0.5, 7), (100_000, 20.0, None)]
    print_table(header, [by_system(*case) for case in cases])


if __name__ == "__main__":
    main()
