"""Where the randomness of synthetic records comes from, and what the ledger knows of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.design.data_set import UNNAMED
from discreet.digests import digest
from discreet.errors import ParameterError
from discreet.randomness import stream, system_generator
from discreet.synthesize.records import Records


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


def release_digest(records: Records, *request: Any) -> bytes:
    """What tells synthetic records from others: data set, edition, request and contents.

    Args:
      records: The records.
      *request: Method, parameters, model, and the rows in canonical order. Columns that the model
        does not use are no part of it, so that leaving one out draws nothing anew.
    """
    identity = (records.data_set.name, records.data_set.edition, "synthesize")
    return digest(identity, *request)


def registered(records: Records, shown: bytes, step: dict[str, Any], *, again: bool) -> int | None:
    """Enter the release in the ledger, before anybody gets it; returns its number.

    Without a secret no two draws are the same, so each is a release of its own.
    """
    book = records.ledger
    if book is None:
        return None
    if records.data_set.name == UNNAMED:
        raise ParameterError(
            "a ledger counts by the name of the data set, and these records have none. Name them "
            "with name='survey-2026'."
        )
    mark = None if records.secret is None else records.secret.mark
    book.register_edition(records.data_set, None, mark)
    if records.secret is None:
        shown = digest(shown, system_generator().bytes(32))
    return book.register_release(records.data_set, shown.hex(), step, again=again)


def publication(records: Records, shown: bytes) -> np.random.Generator:
    """The generator of a release: from the secret, or from the operating system."""
    return system_generator() if records.secret is None else records.secret.generator(shown)


def experiment(seed: int, method: str) -> np.random.Generator:
    """The generator of a trial."""
    return stream(seed, f"synthesize:{method}")
