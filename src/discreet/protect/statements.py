"""Public statements: method, parameters, version, and plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet import __version__
from discreet.design.release import PrivacyStatement, Statement, Step


def statement_of(
    name: str,
    parameters: Mapping[str, Any],
    sentences: Iterable[str],
    privacy: PrivacyStatement | None = None,
) -> Statement:
    """The statement of a method; parameters that were left out are not named."""
    used = {key: value for key, value in parameters.items() if value is not None}
    return Statement((Step(f"protect:{name}", used),), " ".join(sentences), privacy, __version__)
