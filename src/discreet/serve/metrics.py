"""What an operator watches: counts of requests and refusals, times, seats, queue and store.

Text in the form that Prometheus reads. Nothing of it tells what was asked, by whom, or a figure.
"""

from __future__ import annotations

import math
import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from discreet import __version__
from discreet.serve.data.cache import MAKING_SEATS, WRITING_SEATS
from discreet.serve.office.database import DatabaseError

if TYPE_CHECKING:
    from discreet.serve.office.office import Office
    from discreet.serve.site.site import Site

_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds
_Sample = tuple[Mapping[str, str], float]
_FAILURES = ("store", "disk", "decisions", "build", "records")


class RequestCounts:
    """Requests of one process since it started, by kind, status and refusal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.refusals: Counter[str] = Counter()
        self._within: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, path: str, status: int, refusal: str, seconds: float) -> None:
        """Take note of an answer."""
        kind = kind_of(path)
        with self._lock:
            self.answers[kind, status] += 1
            if refusal:
                self.refusals[refusal] += 1
            within = self._within.setdefault(kind, [0] * (len(_BOUNDS) + 1))
            within[bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[kind] += seconds  # type: ignore[assignment]

    def lines(self) -> Iterable[str]:
        """The counts as Prometheus reads them."""
        with self._lock:
            answers = [({"kind": k, "status": str(s)}, n) for (k, s), n in self.answers.items()]
            refusals = [({"code": code}, n) for code, n in self.refusals.items()]
            within = {kind: list(counts) for kind, counts in self._within.items()}
            seconds = dict(self._seconds)
        yield from metric("requests_total", "counter", "Requests by kind and status.", answers)
        yield from metric("refusals_total", "counter", "Refusals by their code.", refusals)
        name = "discreet_request_seconds"
        yield f"# HELP {name} Seconds until an answer began."
        yield f"# TYPE {name} histogram"
        for kind, counts in within.items():
            passed = 0
            for bound, n in zip((*_BOUNDS, math.inf), counts, strict=True):
                passed += n
                labels = _labels(
                    {"kind": kind, "le": "+Inf" if bound == math.inf else f"{bound:g}"}
                )
                yield f"{name}_bucket{labels} {passed}"
            yield f"{name}_sum{_labels({'kind': kind})} {seconds[kind]:.6f}"
            yield f"{name}_count{_labels({'kind': kind})} {passed}"


def kind_of(path: str) -> str:
    """The class of a request, of which there are few."""
    if path.startswith("/api/"):
        return "program"
    if "/table." in path or path.endswith("/chart.svg"):
        return "download"
    if path.endswith("/table"):
        return "table"
    if path.endswith("/job"):
        return "job"
    if path.startswith(("/static/", "/live", "/ready", "/health", "/metrics")):
        return "service"
    return "page"


def describe(counts: RequestCounts, office: Office, site: Site) -> str:
    """Everything an operator is told, as text."""
    lines = list(counts.lines())
    taken, waiting = (sum(load) for load in zip(MAKING_SEATS.load, WRITING_SEATS.load, strict=True))
    failing = [*office.failures(), *site.failures]
    gauges: dict[str, tuple[str, list[_Sample]]] = {
        "info": ("The version.", [({"version": __version__}, 1)]),
        "seats_taken": ("Tables that are being made or written in this process.", [({}, taken)]),
        "seats_waiting": ("Questions that wait for a table.", [({}, waiting)]),
        "failing": (
            "Whether something keeps tables from being answered.",
            [({"what": w}, int(w in failing)) for w in _FAILURES],
        ),
        "dataset_closed": (
            "Whether the office has closed a data set.",
            [({"dataset": name}, int(d.closed)) for name, d in site.datasets.items()],
        ),
        "kept_tables": (
            "Tables of a data set that this process has in memory.",
            [({"dataset": name}, d.kept_tables) for name, d in site.datasets.items()],
        ),
    }
    try:
        jobs = {} if office.jobs is None else office.jobs.load()
    except DatabaseError:  # `failing` says so
        jobs = {}
    listed: list[_Sample] = [({"state": state}, n) for state, n in jobs.items()]
    gauges["jobs"] = ("Tables in the queue, of all processes.", listed)
    for name, (about, samples) in gauges.items():
        lines += metric(name, "gauge", about, samples)
    return "\n".join([*lines, ""])


def metric(name: str, kind: str, about: str, samples: Iterable[_Sample]) -> Iterable[str]:
    """One metric with its head; nothing where there are no samples."""
    listed = list(samples)
    if listed:
        yield f"# HELP discreet_{name} {about}"
        yield f"# TYPE discreet_{name} {kind}"
        for labels, value in listed:
            yield f"discreet_{name}{_labels(labels)} {value:g}"


def _labels(labels: Mapping[str, str]) -> str:
    """Labels in braces; every process counts for itself."""
    named = {**labels, "process": str(os.getpid())}
    return "{" + ",".join(f'{k}="{_escape(v)}"' for k, v in named.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
