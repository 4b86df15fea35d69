"""Run the benchmarks one after another: `python -m benchmarks [NAME …]`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(chosen: list[str]) -> int:
    """Run the chosen cases, each in a process of its own so that peak memory is its own."""
    known = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_"))
    unknown = [name for name in chosen if name not in known]
    if unknown:
        print(f"error: no benchmark {unknown[0]!r}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in chosen or known:
        print(f"==> {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
