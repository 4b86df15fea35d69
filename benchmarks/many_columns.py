"""Private two-way margins of a dozen columns: records from margins beside a mixture of products.

The other side is `mbi` from PyPI in an environment of its own (`.deps/mbi`, made on the first run),
with its mixture of products at several settings; the one nearest to the truth counts for it. Data
sets lie in `../shared/data`. Both sides see the same noisy margins.

    python -m benchmarks many_columns            # all data sets, three budgets
    python -m benchmarks.many_columns acs adult  # some data sets
    QUICK=1 python -m benchmarks many_columns    # one data set, one budget
    python -m benchmarks.many_columns wide [10]  # thirty columns, 10⁶ records (or so many), alone
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.design.product import ProductDesign
from discreet.progress import listening
from discreet.records.backend import fetch
from discreet.solve import FromMargins

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DATA", ROOT.parent / "shared" / "data"))
ENVIRONMENT = Path(os.environ.get("MBI", ROOT / ".deps" / "mbi"))
SETS = {
    "acs": (
        "acs_nist_national2019.csv.gz",
        "PUMA SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT INDP_CAT EDU PINCP_DECILE",
    ),
    "adult": ("adult_discretised.csv.gz", ""),
    "eu-lfs": (
        "eurostat_lfs_puf_fr_50k.csv.gz",
        "SEX AGE MARSTAT NATIONAL COUNTRYB ILOSTAT NACE1D ISCO1D FTPT TEMP HATLEV1D URBAN",
    ),
    "demo census": ("", "sex marital education citizenship occupation industry region relation"),
}
BUDGETS = (0.01, 0.1, 1.0)
# Components, iterations and step of the other side: its own defaults for both of the latter, and
# three times as many smaller steps.
MIXTURES = ((100, 1000, 0.1), (1000, 1000, 0.1), (300, 3000, 0.03))
PEER = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, optax
from mbi import Domain, LinearMeasurement
from mbi.extensions import MixtureOfProductsEstimator
job = np.load(sys.argv[1], allow_pickle=True)
shape, pairs = job["shape"].tolist(), job["pairs"].tolist()
names = [str(i) for i in range(len(shape))]
domain = Domain(names, shape)
cut = np.cumsum([0] + [shape[i] * shape[j] for i, j in pairs])
measured = [
    LinearMeasurement(job["z"][a:b], (names[i], names[j]), float(job["sigma"]))
    for (i, j), a, b in zip(pairs, cut, cut[1:])
]
for components, iterations, step in json.loads(sys.argv[2]):
    began = time.process_time()
    made = MixtureOfProductsEstimator(optimizer=optax.adam(step), num_components=components)
    model = made.estimate(domain, measured, iters=iterations)
    records = model.synthetic_data(int(round(float(model.total))))
    x = np.stack([np.asarray(records.data[name]) for name in names], 1)
    seconds = time.process_time() - began
    np.savez(f"{sys.argv[1]}.{components}.npz", x=x)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"components": components, "seconds": seconds, "memory": memory}), flush=True)
"""


def records_of(name: str) -> np.ndarray:
    """Records of a data set as positions of codes; at most 100 codes a column."""
    import pandas as pd

    file, columns = SETS[name]
    if file:
        frame = pd.read_csv(DATA / file, dtype=str)
        chosen = [c for c in columns.split() if c in frame] or list(frame)
    else:
        people = dc.demo.census(persons=30_000)
        frame = fetch(people.backend, people.table, "the demo's census").to_pandas()
        chosen = [c for c in columns.split() if c in frame]
    kept = [c for c in chosen if frame[c].nunique() <= 100]
    return np.stack([np.unique(frame[c].fillna("-"), return_inverse=True)[1] for c in kept], 1)


def margins_of(x: np.ndarray, shape: list[int], axes: tuple[int, ...]) -> np.ndarray:
    """One margin of records, as shares."""
    sizes = [shape[a] for a in axes]
    flat = np.ravel_multi_index([x[:, a].astype(np.int64) for a in axes], sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))) / len(x)


def distance(x: np.ndarray, truth: np.ndarray, shape: list[int], order: int) -> float:
    """Mean total variation distance of all margins of so many variables."""
    every = itertools.combinations(range(len(shape)), order)
    gaps = [np.abs(margins_of(x, shape, a) - margins_of(truth, shape, a)).sum() for a in every]
    return 0.5 * float(np.mean(gaps))


def run_ours(shape: list[int], z: np.ndarray, sigma: float) -> tuple[np.ndarray, dict[str, float]]:
    """Records by this package, with processor seconds and peak memory of the process."""
    names = [f"v{i}" for i in range(len(shape))]
    design = ProductDesign(
        dc.Design.product(dict(zip(names, shape, strict=True)), [()]).axes,
        list(itertools.combinations(names, 2)),
    )
    began = time.process_time()
    fit = FromMargins(unit_variance=sigma**2)(design, z)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return fit.records, {"seconds": seconds, "memory": memory, **fit.notes}


def run_peer(shape: list[int], z: np.ndarray, sigma: float) -> list[tuple[np.ndarray, dict]]:
    """Records by the peer, one result for each of its settings."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "mbi==2.0.0"], check=True)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.npz"
        pairs = list(itertools.combinations(range(len(shape)), 2))
        np.savez(job, shape=shape, pairs=pairs, z=z, sigma=sigma)
        command = [str(python), "-c", PEER, str(job), json.dumps(MIXTURES)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            told = json.loads(line)
            kept = np.load(f"{job}.{told['components']}.npz")
            found.append((kept["x"], told))
        if not found:
            print(done.stderr[-2000:], file=sys.stderr)
    return found


def wide_records(n: int, columns: int = 30, kinds: int = 40) -> tuple[np.ndarray, list[int]]:
    """Records of so many columns of 2 to 12 categories, each record of one of some kinds."""
    rng = np.random.default_rng(3)
    shape = [int(size) for size in rng.integers(2, 13, columns)]
    kind = rng.choice(kinds, n, p=rng.dirichlet(np.full(kinds, 0.5)))
    x = np.empty((n, columns), dtype=np.int8)
    for a, size in enumerate(shape):
        ends = rng.dirichlet(np.full(size, 0.4), kinds).cumsum(1)
        x[:, a] = (rng.random(n)[:, None] > ends[kind]).sum(1).clip(0, size - 1)
    return x, shape


def wide(n: int, rho: float = 0.1) -> None:
    """Print time, memory, progress and error of a wide table's records."""
    truth, shape = wide_records(n)
    pairs = list(itertools.combinations(range(len(shape)), 2))
    exact = np.concatenate([margins_of(truth, shape, p) * n for p in pairs])
    sigma = float(np.sqrt(len(pairs) / (2 * rho)))
    z = exact + np.random.default_rng(17).normal(0, sigma, len(exact))
    heard, began = [time.perf_counter()], time.perf_counter()
    with listening(lambda *_: heard.append(time.perf_counter())):
        x, ours = run_ours(shape, z, sigma)
    seconds, silence = time.perf_counter() - began, max(np.diff([*heard, time.perf_counter()]))
    gap = distance(x, truth, shape, 2)
    print(f"{len(shape)} columns, {n:,} records, {len(z):,} published cells, rho {rho:g}")
    print(f"{seconds:.0f} s ({ours['seconds']:.0f} s CPU), {ours['memory']:.0f} MiB, ", end="")
    print(f"two-way error {gap:.4f}, {len(heard)} reports, longest silence {silence:.0f} s")


def main() -> None:
    """Print one line for each data set and budget."""
    if sys.argv[1:2] == ["wide"]:
        wide(int(float(sys.argv[2])) if sys.argv[2:] else 1_000_000)
        return
    quick = bool(os.environ.get("QUICK"))
    print("data set      columns  rho    ours 2-way 3-way    s   MiB | mbi 2-way 3-way    s   MiB")
    for name in sys.argv[1:] or list(SETS)[: 1 if quick else None]:
        truth = records_of(name)
        shape = [int(n) for n in truth.max(0) + 1]
        pairs = list(itertools.combinations(range(len(shape)), 2))
        exact = np.concatenate([margins_of(truth, shape, p) * len(truth) for p in pairs])
        for rho in BUDGETS[1 : 2 if quick else None] if quick else BUDGETS:
            sigma = float(np.sqrt(len(pairs) / (2 * rho)))
            rng = np.random.default_rng(17)
            z = exact + rng.normal(0, sigma, len(exact))
            x, ours = run_ours(shape, z, sigma)
            errors = [distance(x, truth, shape, order) for order in (2, 3)]
            line = f"{name:13s} {len(shape):7d} {rho:5g}  {errors[0]:.4f} {errors[1]:.4f}"
            line += f" {ours['seconds']:6.1f} {ours['memory']:5.0f} (tau {ours['temperature']:g})"
            peers = [
                ([distance(px, truth, shape, order) for order in (2, 3)], told)
                for px, told in run_peer(shape, z, sigma)
            ]
            for gaps, told in sorted(peers, key=lambda peer: peer[0][0])[:1]:
                line += (
                    f" | {gaps[0]:.4f} {gaps[1]:.4f} {told['seconds']:6.1f} {told['memory']:5.0f}"
                )
                line += f" (K {told['components']})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
