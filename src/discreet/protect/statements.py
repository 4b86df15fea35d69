"""Public statements: method, parameters, version, and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet import __version__
from discreet.tables.statement import PrivacyStatement, Sentence, Statement, step_of


def statement_of(
    name: str,
    parameters: Mapping[str, Any],
    sentences: Iterable[Sentence],
    privacy: PrivacyStatement | None = None,
) -> Statement:
    """The statement of a method; parameters that were left out are not named."""
    return Statement((step_of(f"protect:{name}", parameters, sentences),), privacy, __version__)
