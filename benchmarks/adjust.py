"""Additivity of noisy three-way tables: quality beside time, and linked margins beside a MILP."""

import sys
import time

import numpy as np

import discreet as dc
from benchmarks._measure import peak_gib, print_table
from discreet.errors import InfeasibleError
from discreet.noise.linear import linear_table
from discreet.protect.adjust import CellsInUse, adjustment
from discreet.protect.draws import SecretDraws, SeededDraws
from tests.solve.integer.exact import adjust_exactly

CPU = time.process_time
# Sizes of linked tables, and seconds after which the program beside them stops.
PEOPLE, SECONDS = (1e3, 1e4, 1e5, 1e6, 5e6, 1e8, 3e9), 5.0
# Mean deviation from the truth in Table 5 of Giessing & Höhne (2011), before and after.
PAPER = {3: (1.089, 1.191), 4: (0.991, 1.147), 5: (0.966, 1.129)}


def census_table(seed: int = 1) -> dc.Table:
    """Region × age × country of birth: a few large countries, many small ones."""
    rng = np.random.default_rng(seed)
    shape = {"region": 44, "age": 18, "country": 40}
    region, age = rng.gamma(3.0, 1.0, 44), rng.gamma(6.0, 1.0, 18)
    country = 1.0 / np.arange(1, 41) ** 1.5
    mean = np.einsum("i,j,k->ijk", region / region.mean(), age / age.mean(), country)
    mean *= 120 * rng.gamma(1.5, 1 / 1.5, mean.shape)
    design = dc.Design.product(shape, "region*age*country")
    counts = rng.poisson(mean).ravel()
    table = dc.Table.from_inner(design, counts)
    return table.rekeyed(rng).with_secret(dc.Secret.demo())


def adjusted(table: dc.Table, D: int) -> list:
    """Deviation before and after, growth beside the paper's, largest deviation, time."""
    noisy = dc.CellKey(linear_table(D, 2.0, 2))
    some = table.z > 0
    before = np.abs(table.protect(noisy).z - table.z)[some]
    started = time.perf_counter()
    release = table.protect(dc.Adjust(noisy))
    seconds = time.perf_counter() - started
    after = np.abs(release.z - table.z)[some]
    small = int(((release.z > 0) & (release.z < 3)).sum())
    paper = PAPER[D][1] - PAPER[D][0]
    mean = float(before.mean()), float(after.mean())
    return [D, *mean, mean[1] - mean[0], paper, before.max(), after.max(), small, seconds]


def linked(people: float, seed: int, margins: str) -> list:
    """Loss and CPU seconds of `Adjust` and of one program; how far counts are from the truth."""
    rng = np.random.default_rng(seed)
    design = dc.Design.product({"a": 12, "b": 10, "c": 2}, margins)
    share = rng.dirichlet(np.full(design.n_inner, 0.3))
    table = dc.Table.from_inner(design, rng.poisson(people * share)).rekeyed(rng)
    noise = dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))
    noisy, frame, began = noise(table, draws=SeededDraws(seed)).z, CellsInUse.of(table), CPU()
    try:
        made = dc.Adjust(noise)(table, draws=SeededDraws(seed)).z
    except InfeasibleError:
        made = np.full(len(noisy), np.nan)
    own, given = CPU() - began, (noisy[frame.cells], table.z[frame.cells])
    problem, _, aside = adjustment(frame, *given, min_count=3, max_move=5.0, weights=None)
    began = CPU()
    loss, bound = adjust_exactly(problem, table.y[frame.rows] - aside, seconds=SECONDS)
    off = [float(np.abs(z - table.z).mean()) for z in (noisy, made)]
    sizes = [float(np.abs(made - noisy).sum()), loss, bound, *off]
    return [f"{people:.0e}", margins, seed, *sizes, own, CPU() - began]


def beside_program() -> None:
    """Print a row for each size of a linked table."""
    header = ["people", "margins", "seed", "loss", "MILP", "bound", "noise alone", "after"]
    forms = ("a*b + a*c + b*c", "a*b*c")
    rows = [linked(n, seed, form) for form in forms for n in PEOPLE for seed in range(2)]
    print_table([*header, "CPU s", "MILP's"], rows)
    print(f"12 × 10 × 2; a MILP stops after {SECONDS:g} s; nan: no table found.")


def main() -> None:
    """Print both tables; with `bound` also how far the result may be from the best one."""
    beside_program()
    if "linked" in sys.argv[1:]:
        return
    table = census_table()
    table.protect(dc.Adjust(dc.CellKey(linear_table(3, 2.0, 2)), proposals=1))
    header = ["D", "before", "after", "growth", "paper's", "max before", "max after", "1s and 2s"]
    print(f"{int((table.z > 0).sum()):,} non-empty cells, {int((table.y > 0).sum()):,} inner")
    print_table([*header, "seconds"], [adjusted(table, D) for D in PAPER])
    print(f"Target: growth no more than the paper's, under 20 s. Peak {peak_gib():.2f} GiB.")
    if "bound" in sys.argv[1:]:
        found = dc.Adjust(dc.CellKey(linear_table(3, 2.0, 2))).search(table, draws=SecretDraws())
        print(f"D = 3: loss {found.loss:,.0f}, relaxed bound {found.lower_bound:,.0f}")


if __name__ == "__main__":
    main()
