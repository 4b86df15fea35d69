"""The site of `discreet demo` as plain data: a census released once, a survey on the fly."""

from __future__ import annotations

from typing import Any

from discreet.design.formula import margins
from discreet.microdata.demo import structural_zeros

CENSUS = ("region", "age", "sex", "marital", "education", "citizenship")
SURVEY = (
    "region[province]",
    "age",
    "sex",
    "education",
    "occupation[major_group]",
    "industry[section]",
)
_ENOUGH = 50_000  # people, for the sparsity of areas to say something
_SHARED = {"date": "1 January 2026", "licence": "CC0 1.0", "contact": "statistics@tarvenia.example"}


def demo_site(census: str, survey: str, persons: int, sampled: int) -> dict[str, Any]:
    """What the demo's `site.toml` says.

    Args:
      census: The file of the census, beside the site's.
      survey: The file of the survey.
      persons: Number of people in the census.
      sampled: About how many of them answered the survey.
    """
    return {
        "title": "Statistics Tarvenia",
        "description": "Tables about the people of an invented country.",
        "contact": _SHARED["contact"],
        "policy": {"max_variables": 4, "max_cells": 20_000},
        "datasets": {
            "census": _census(census, persons),
            "survey": _survey(survey, persons, sampled),
        },
    }


def _census(file: str, persons: int) -> dict[str, Any]:
    effort = min(2e7, 200.0 * persons)
    method = {"method": "safe", "parameters": {"proposals": effort}}
    return {
        "title": "Census of Tarvenia",
        "description": f"Everybody who lives in Tarvenia, {persons:,} people, by where they live, "
        "age, sex, marital status, education and citizenship.",
        "source": "Statistics Tarvenia, population census",
        **_SHARED,
        "footnotes": ["Tarvenia and everybody in it are invented."],
        "labels": {"marital": "marital status"},
        "records": {
            **_records(file, CENSUS),
            "recode": {"region": "district", "citizenship": "citizenship_group"},
        },
        "recipe": {"tabulate": {"margins": _listed(CENSUS, 3)}, "protect": method},
        "policy": {"area": "region", "max_sparsity": 0.5 if persons >= _ENOUGH else 1.0},
    }


def _survey(file: str, persons: int, sampled: int) -> dict[str, Any]:
    grid = max(1, round(persons / max(sampled, 1)))
    noise = {"D": 5, "V": 3, "js": 2, "grid": grid}
    return {
        "title": "Household survey of Tarvenia",
        "description": "People by education and work, estimated from a sample of households.",
        "source": "Statistics Tarvenia, household survey",
        **_SHARED,
        "footnotes": ["Figures are estimates from a sample; small ones are uncertain."],
        "mode": "on-the-fly",
        "records": {**_records(file, SURVEY), "weight": "weight"},
        "recipe": {
            "tabulate": {"margins": _listed(SURVEY, 1)},
            "protect": {"method": "cell-key", "unit": "weight", "parameters": noise},
        },
    }


def _records(file: str, names: tuple[str, ...]) -> dict[str, Any]:
    used = {name.partition("[")[0] for name in names}
    rules = [rule for rule in structural_zeros() if used >= rule.keys()]
    return {
        "structural_zeros": [{v: sorted(codes) for v, codes in rule.items()} for rule in rules],
        "source": file,
        "name": file.partition("-")[0] + "-of-tarvenia",
        "edition": "2026",
        "id": "person_id",
        "codes": "codes/codes.toml",
        "secret": "keys.secret",
    }


def _listed(names: tuple[str, ...], order: int) -> list[list[str]]:
    return [list(term) for term in margins(names, order=order)]
