"""What is asked of `discreet.synthesis`, checked before any record is read."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from discreet import registry
from discreet.digests import digest
from discreet.errors import ParameterError, check_known
from discreet.protect.publish import built
from discreet.randomness import stream, system_generator
from discreet.rules.counts import PrimaryRule, public_name_and_reason
from discreet.synthesis.formula import CONSTANT, GROUPS, PIECES, PLAIN, ModelFormula, parse
from discreet.synthesis.model import Missing
from discreet.synthesis.result import SourceRecords
from discreet.tables.sketches import table_of_columns
from discreet.tables.truth import UNNAMED

HYBRID, CORRECTION, CORRELATION = "hybrid", "from-residuals", "residual-correlation"
MIXED = "mixed"
# Methods that can treat outlying records apart: others promise correlations over all records.
APART = ("ipso", "romm", HYBRID)
Merge = Literal["pool"]
Outlying = Literal["synthetic", "public"]
_FROM_RECORDS = {"Y", "X", "X_local", "X_shared", "clusters", "groups", "pieces", "other", "rng"}


@dataclass(frozen=True, eq=False)
class SynthesisRequest:
    """A model, a method with its parameters, and what happens to difficult records.

    The options are those of `discreet.synthesis`.
    """

    source: ClassVar[str] = "table"  # randomness is drawn for all records together
    formula: ModelFormula
    method: str
    # Parameters of the method as plain public data; of mixed records `counts`, the method that
    # protects the counts of codes, and `within`.
    parameters: Mapping[str, Any]
    clusters: Any = None
    gain: float | None = None
    outliers: float | None = None
    outlying: Outlying = "synthetic"
    groups: Any = None
    pieces: Any = None
    other: Any = field(default=None, repr=False)
    missing: Missing = "refuse"
    merge: Merge | None = None
    large: str = "refuse"
    rules: tuple[PrimaryRule, ...] = ()
    keep: Sequence[str] | None = None

    @property
    def size(self) -> int | None:
        """The size of clusters of similar records, if that is what is asked for."""
        is_size = isinstance(self.clusters, (int, np.integer))
        return int(self.clusters) if is_size else None

    @property
    def keeps_squares(self) -> bool:
        """Whether squares and products are preserved, and not only fits."""
        return self.parameters.get("residuals") != "zero"

    @property
    def public(self) -> dict[str, Any]:
        """The request as a statement and a ledger show it; labels are said to be given, no more."""
        chosen: dict[str, Any] = {"missing": self.missing, "merge": self.merge, "large": self.large}
        chosen["rules"] = [public_name_and_reason(rule)[0] for rule in self.rules]
        if self.method == MIXED:
            counts = self.parameters["counts"].name
            return {"model": self.formula.text, **self.parameters, "counts": counts, **chosen}
        given = {role: getattr(self, role) for role in ("clusters", "groups", "pieces")}
        shown = {r: v if v is None or isinstance(v, str) else "given" for r, v in given.items()}
        if self.size is not None:
            shown["clusters"] = f"at least {self.size} similar records each"
        own = {"clusters": shown["clusters"], "gain": self.gain, "outliers": self.outliers}
        if self.outliers is not None:
            own["outlying"] = self.outlying
        return {"model": self.formula.text, **self.parameters, **own, **shown, **chosen}


def request_of(
    formula: str, method: str, parameters: Mapping[str, Any], **options: Any
) -> SynthesisRequest:
    """A request that can be carried out, as far as can be told without the records."""
    own = _mixed_parameters(parameters) if method == MIXED else _own_parameters(method, parameters)
    request = SynthesisRequest(parse(formula), method, own, **options)
    if request.missing not in get_args(Missing):
        raise ParameterError(f"missing must be 'refuse' or 'category', got {request.missing!r}.")
    if request.merge not in (None, "pool"):
        raise ParameterError(f"merge must be 'pool' or None, got {request.merge!r}.")
    if request.large not in ("refuse", "top-code"):
        raise ParameterError(f"large must be 'refuse' or 'top-code', got {request.large!r}.")
    if method == HYBRID:
        _check_hybrid(request)
    else:
        _refuse_hybrid(request)
    _check_outliers(request)
    if request.formula.cells is not None and method in (HYBRID, MIXED):
        raise ParameterError(f"cells(…) does not go with method={method!r}.")
    if request.other is not None and method != CORRECTION:
        raise ParameterError(f"other= goes with method={CORRECTION!r}.")
    if method == MIXED and (request.formula.weights or request.keep is not None):
        raise ParameterError(f"weights(…) and keep= do not go with method={MIXED!r}.")
    return request


def _check_outliers(request: SynthesisRequest) -> None:
    if request.outlying not in get_args(Outlying):
        raise ParameterError(f"outlying must be 'synthetic' or 'public', got {request.outlying!r}.")
    if request.outlying == "public" and request.outliers is None:
        raise ParameterError("outlying= goes with outliers=, e.g. outliers=0.999.")
    if request.outliers is not None and request.method not in APART:
        raise ParameterError(f"outliers= goes with {', '.join(APART)}, not {request.method!r}.")


def _own_parameters(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(registry.load("synthesizer", method)).parameters
    own = {name: p for name, p in known.items() if name not in _FROM_RECORDS}
    # As plain data, since statement and ledger show them and the draw depends on them.
    found = {
        f"{name}_" if keyword.iskeyword(name) else name: (
            value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        )
        for name, value in given.items()
    }
    _refuse_unknown(method, found, own)
    needed = [name for name, p in own.items() if p.default is p.empty and name not in found]
    if needed:
        raise ParameterError(f"synthesizer {method!r} needs a value of {' and '.join(needed)}.")
    return found


def _mixed_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown(MIXED, given, ("counts", "within"))
    if "counts" not in given:
        raise ParameterError(
            "mixed records need a method that protects their counts, e.g. counts=dc.Safe()."
        )
    within = given.get("within", "model")
    if within not in ("model", "cells"):
        raise ParameterError(f"within must be 'model' or 'cells', got {within!r}.")
    return {"counts": built(given["counts"], {}), "within": within}


def _refuse_unknown(method: str, given: Mapping[str, Any], known: Any) -> None:
    check_known(f"parameter of synthesizer {method!r}", given, known)


def _refuse_hybrid(request: SynthesisRequest) -> None:
    for name in ("clusters", "groups", "pieces", "gain"):
        if getattr(request, name) is not None:
            raise ParameterError(f"{name}= goes with method={HYBRID!r}.")
    if request.formula.is_hybrid:
        raise ParameterError(
            f"terms in local(…), shared(…), groups(…) and pieces(…) go with method={HYBRID!r}; "
            "write the terms as they are."
        )


def _check_hybrid(request: SynthesisRequest) -> None:
    if request.clusters is None:
        raise ParameterError(
            "hybrid records need clusters: the name of a column, clusters='region'; a size, "
            "clusters=5; or a label for each record."
        )
    if request.formula.parts.get(PLAIN, CONSTANT) != CONSTANT:
        raise ParameterError(
            "say for each term of a hybrid model where it is preserved: local(age) within each "
            "cluster, shared(age) over all records."
        )
    for word, is_needed in ((GROUPS, True), (PIECES, False)):
        given, marked = getattr(request, word) is not None, word in request.formula.parts
        if marked > given or (given > marked and is_needed):
            raise ParameterError(f"terms in {word}(…) go with {word}=, and the other way round.")
    if request.gain is not None and request.size is None:
        raise ParameterError("gain= goes with clusters of a size: clusters=5.")


SHARES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
LISTED: dict[str, tuple[float, ...]] = {
    "correlations": SHARES,
    "share": SHARES,
    "alpha": SHARES,
    "lambda_": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "gain": (0.0, 0.2, 0.5, 1.0, 1.5, 2.0),
    "outliers": (0.9, 0.95, 0.99, 0.999, 0.9999),
}
"""Values that continuous parameters of a release may have. Every value is a draw of its own, since
one draw under two values is solved for the original; so there must be few."""


def check_listed(request: SynthesisRequest) -> None:
    """Refuse values of continuous parameters that are not on the public list."""
    given = {**request.parameters, "gain": request.gain, "outliers": request.outliers}
    for name, allowed in LISTED.items():
        values = given.get(name)
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if value is None or isinstance(value, str) or value in allowed:
                continue
            shown = ", ".join(f"{each:g}" for each in allowed)
            raise ParameterError(
                f"{name.rstrip('_')} of a release is one of {shown}; got {value!r}. Each value is "
                "a draw of its own, and many draws can be averaged. Experiments take any value: "
                "simulate=True."
            )
    if "rotation" in given and not isinstance(given["rotation"], (str, type(None))):
        raise ParameterError(
            "the rotation of a release is 'varimax' or none: matrices that hardly differ would "
            "have draws of their own, which can be averaged. Experiments take any: simulate=True."
        )


def check_seed(simulate: bool, seed: int | None) -> None:
    """A seed makes experiments and nothing else."""
    if seed is not None and not simulate:
        raise ParameterError(
            "seed= goes with simulate=True, whose result cannot be published: whoever knows the "
            "seed draws the noise again and solves for the original. Leave out seed= and give the "
            "records a secret."
        )
    if simulate and seed is None:
        raise ParameterError("simulate=True needs a seed, e.g. seed=1.")


@dataclass(frozen=True, eq=False)
class SynthesisDraw:
    """One draw of synthetic records: a release, or with a seed an experiment.

    Tables have `SecretDraws` and `SeededDraws` in `protect`. Records differ from them in that a
    plain frame may have no secret, and that what tells releases apart are rows, not cells.
    """

    records: SourceRecords
    request: SynthesisRequest
    # The rows in canonical order. Columns that the model does not use are no part of them, so that
    # leaving one out draws nothing anew.
    contents: Any
    again: bool  # allow a second, different release of this edition
    seed: int | None  # seed of a trial

    def generator(self) -> np.random.Generator:
        """From a trial's seed, a release's secret, or the operating system."""
        if self.seed is not None:
            return stream(self.seed, f"synthesize:{self.request.method}")
        secret = self.records.secret
        return system_generator() if secret is None else secret.generator(self._identity())

    def register(self) -> int | None:
        """Enter a release in the ledger, before anybody gets it; returns its number."""
        records, book = self.records, self.records.ledger
        if book is None or self.seed is not None:
            return None
        if records.data_set.name == UNNAMED:
            raise ParameterError(
                "a ledger counts by the name of the data set, and these records have none. Name "
                "them with name='survey-2026'."
            )
        shown, secret = self._identity(), records.secret
        hidden = {*records.withheld, *self.request.formula.confidential}
        shown_columns = [name for name in records.columns if name not in hidden]
        table = table_of_columns(records.table, shown_columns)
        mark = None if secret is None else secret.mark
        book.register_edition(records.data_set, [table], mark)
        if secret is None:  # no two draws are the same, so each is a release of its own
            shown = digest(shown, system_generator().bytes(32))
        method, model = f"synthesize {self.request.method}", self.request.formula.text
        step = {"method": method, "model": model}
        return book.register_release(records.data_set, shown.hex(), step, again=self.again)

    def _identity(self) -> bytes:
        request, named = self.request, self.records.data_set
        counts = [request.parameters["counts"]] if "counts" in request.parameters else []
        identity = (named.name, named.edition, "synthesize")
        model = request.formula.text, {**request.parameters, "counts": None}
        return digest(identity, request.method, *model, *counts, self.contents)
