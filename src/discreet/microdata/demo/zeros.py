"""Combinations of codes that cannot occur, whatever the seed and the size."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.microdata.demo.classifications import code_lists
from discreet.microdata.demo.codes import NOT_APPLICABLE
from discreet.microdata.demo.industries import DEFENCE

Impossible = Mapping[str, frozenset[str]]


def structural_zeros() -> tuple[Impossible, ...]:
    """Declared structural zeros.

    Each one maps two variables to sets of leaf codes: no person has a code of the first set
    together with a code of the second.
    """
    return (*_of_children(), *_of_education(), *_of_work())


def _leaves(variable: str, *under: str) -> frozenset[str]:
    return code_lists()[variable].leaves_under(*under)


def _but(variable: str, *codes: str) -> frozenset[str]:
    """All leaves of a variable but these."""
    return frozenset(code_lists()[variable].leaves) - set(codes)


def _of_children() -> tuple[Impossible, ...]:
    """People younger than 15 are unmarried sons and daughters without a degree or work."""
    children = _leaves("age", "Y_LT15")
    return (
        {"age": children, "marital": _but("marital", "NEV")},
        {"age": children, "relation": _but("relation", "CHI")},
        {"age": children, "education": _but("education", NOT_APPLICABLE)},
        {"age": children, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"age": children, "industry": _but("industry", NOT_APPLICABLE)},
    )


def _of_education() -> tuple[Impossible, ...]:
    """Degrees take time, and everybody of 15 or older has a level of education."""
    older = _leaves("age", "Y15-64", "Y_GE65")
    none = frozenset({NOT_APPLICABLE})
    return (
        {"age": older, "education": none},
        {"age": frozenset({"Y15-19"}), "education": _leaves("education", "HIGH")},
        {"age": frozenset({"Y20-24"}), "education": frozenset({"ED8"})},
        {"education": none, "marital": _but("marital", "NEV")},
        {"education": none, "relation": _but("relation", "CHI")},
        {"education": none, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"education": none, "industry": _but("industry", NOT_APPLICABLE)},
    )


def _of_work() -> tuple[Impossible, ...]:
    """Who works has an occupation and an industry; soldiers serve in defence until 65."""
    military = _leaves("occupation", "OC0")
    none = frozenset({NOT_APPLICABLE})
    return (
        {"occupation": none, "industry": _but("industry", NOT_APPLICABLE)},
        {"occupation": _but("occupation", NOT_APPLICABLE), "industry": none},
        {"occupation": military, "industry": _but("industry", DEFENCE)},
        {"occupation": military, "age": _leaves("age", "Y_GE65")},
    )
