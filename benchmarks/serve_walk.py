"""Visitors who follow links at random through the demo and a small site, checking what they meet.

Each walk has a seed of its own and goes over valid questions, charts, layouts, languages and files:
no status of 500 or above, no row that lost a column, every link leads somewhere, and every file,
read back by its own reader, has the figures of its page. A fault is printed with the seed that
repeats it, and the walks go on.

Run: python -m benchmarks.serve_walk --steps 100000
     python -m benchmarks.serve_walk --steps 1000 --seed 4711 --site demo
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.serve import prepared

EACH = 1_000  # steps of one walk


def walked(site: object, seed: int, steps: int) -> Counter[tuple[str, int]]:
    """What one walk met.

    Raises:
      FaultError: Something that a visitor should not meet.
    """
    from discreet.serve.app import make_app
    from discreet.serve.office.office import Office
    from tests.serve.walk import Walk

    office = Office()
    app = make_app(site, office)  # type: ignore[arg-type]
    office.rate_limiter.rate = 0
    return Walk(app, site.datasets, seed).run(steps)  # type: ignore[attr-defined]


def main() -> int:
    """Walk, count, and say what was met."""
    from discreet.serve.site.start import load_site
    from tests.serve.sites import small_site
    from tests.serve.walk import FaultError

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="Processor minutes at most.")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--site", choices=["demo", "small"])
    parser.add_argument("--persons", type=int, default=20_000)
    options = parser.parse_args()
    draws, seen, faults, done = random.SystemRandom(), Counter[tuple[str, int]](), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "keys.secret"  # figures repeat, too
        secret.touch(0o600)
        secret.write_text(hashlib.sha256(b"walks").hexdigest(), encoding="ascii", newline="\n")
        site = prepared(Path(folder), options.persons)
        sites = {"demo": load_site(site).current, "small": small_site()}
        names = [options.site] if options.site else list(sites)
        while done < options.steps and time.process_time() < 60 * options.minutes:
            seed = draws.randrange(10**6) if options.seed is None else options.seed
            name, steps = names[done // EACH % len(names)], min(EACH, options.steps - done)
            try:
                seen += walked(sites[name], seed, steps)
            except FaultError as fault:
                faults += 1
                print(f"{fault}\n  again: --steps {steps} --seed {seed} --site {name}", flush=True)
            done += steps
            print(f"{done:,} steps, {faults} faults", file=sys.stderr, flush=True)
    for (kind, status), n in sorted(seen.items()):
        print(f"{kind:>20} {status}: {n:,}")
    spent, load = time.process_time(), os.getloadavg()[0]
    print(f"{done:,} steps, {faults} walks met a fault; {spent:.0f} processor s, load {load:.1f}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
