"""Where the randomness of synthetic records comes from, and what the ledger knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.digests import digest
from discreet.errors import ParameterError
from discreet.randomness import stream, system_generator
from discreet.synthesize.publish.request import Request
from discreet.synthesize.records import Records
from discreet.tables.data_set import UNNAMED


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
class Chance:
    """One draw of synthetic records: a release, or with a seed an experiment.

    Attributes:
      records: The records.
      request: What is asked for.
      contents: The rows in canonical order. Columns that the model does not use are no part of
        them, so that leaving one out draws nothing anew.
      again: Allow a second, different release of this edition.
      seed: Seed of a trial.
    """

    records: Records
    request: Request
    contents: Any
    again: bool
    seed: int | None

    def generator(self) -> np.random.Generator:
        """From a trial's seed, a release's secret, or the operating system."""
        if self.seed is not None:
            return stream(self.seed, f"synthesize:{self.request.method}")
        secret = self.records.secret
        return system_generator() if secret is None else secret.generator(self._digest())

    def register(self) -> int | None:
        """Enter a release in the ledger, before anybody gets it; returns its number.

        Without a secret no two draws are the same, so each is a release of its own.
        """
        records, book = self.records, self.records.ledger
        if book is None or self.seed is not None:
            return None
        if records.data_set.name == UNNAMED:
            raise ParameterError(
                "a ledger counts by the name of the data set, and these records have none. Name "
                "them with name='survey-2026'."
            )
        shown, secret = self._digest(), records.secret
        book.register_edition(records.data_set, None, None if secret is None else secret.mark)
        if secret is None:
            shown = digest(shown, system_generator().bytes(32))
        method, model = f"synthesize {self.request.method}", self.request.formula.text
        step = {"method": method, "model": model}
        return book.register_release(records.data_set, shown.hex(), step, again=self.again)

    def _digest(self) -> bytes:
        """What tells this release from others: data set, edition, request and contents."""
        request, named = self.request, self.records.data_set
        counts = [request.parameters["counts"]] if "counts" in request.parameters else []
        identity = (named.name, named.edition, "synthesize")
        return digest(identity, request.method, request.public, *counts, self.contents)
