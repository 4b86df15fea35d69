"""What benchmarks share: time and peak memory of a piece of work, and a table of results."""

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest wall time of several runs, and the last result."""
    shortest, result = float("inf"), None
    for _ in range(times):
        started = time.perf_counter()
        result = work()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest, result


def peak_gib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows under a header, columns aligned."""
    text = [[_shown(v) for v in row] for row in [header, *rows]]
    widths = [max(len(row[j]) for row in text) for j in range(len(header))]
    for row in text:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
