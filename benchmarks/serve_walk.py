"""A random visitor over the small site: 100,000 steps over pages, files, print and interfaces.

Every page is answered, every link leads somewhere, what is printed and every download has the
figures of its page. A fault ends the run with the seed and the command that repeats it.
"""

import secrets
import sys
import time
from collections import Counter

from tests.serve.walk import FaultError, small_walk

STEPS, PARTS = 1_000, 100


def main() -> None:
    """Walk, and say what was met."""
    seen: Counter[tuple[str, int]] = Counter()
    began = time.process_time()
    for _ in range(PARTS):
        seed = secrets.randbelow(10**6)
        try:
            seen += small_walk(seed, STEPS)
        except FaultError as fault:
            sys.exit(f"{fault}; again with: python -m tests.serve.walk {seed} {STEPS}")
    for (kind, status), n in sorted(seen.items()):
        sys.stdout.write(f"{kind}: {status} x {n:,}\n")
    seconds = time.process_time() - began
    sys.stdout.write(f"{STEPS * PARTS:,} steps in {seconds:.0f} s of processor time, no fault\n")


if __name__ == "__main__":
    main()
