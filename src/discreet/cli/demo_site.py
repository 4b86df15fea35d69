"""The site of `discreet demo` as plain data: what its template says, for so many people."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from discreet.demo import structural_zeros
from discreet.design.formula import margins

_ENOUGH = 50_000  # people, for the sparsity of areas to say something


def demo_site(census: str, survey: str, persons: int, sampled: int) -> dict[str, Any]:
    """What the demo's `site.toml` says.

    Args:
      census: The file of the census, beside the site's.
      survey: The file of the survey.
      persons: Number of people in the census.
      sampled: About how many of them answered the survey.
    """
    text = files("discreet.cli").joinpath("demo_site.toml").read_text(encoding="utf-8")
    site = tomllib.loads(text)
    people, sample = site["datasets"]["census"], site["datasets"]["survey"]
    people["description"] = people["description"].format(persons=persons)
    people["recipe"]["protect"]["parameters"]["proposals"] = min(2e7, 200.0 * persons)
    people["policy"]["max_sparsity"] = 0.5 if persons >= _ENOUGH else 1.0
    sample["recipe"]["protect"]["parameters"]["grid"] = max(1, round(persons / max(sampled, 1)))
    _complete(people, census, order=3)
    _complete(sample, survey, order=1)
    return site


def _complete(dataset: dict[str, Any], file: str, order: int) -> None:
    """Name the records, the crossings of so many variables, and what cannot occur among them."""
    names = dataset["recipe"]["tabulate"]["margins"]
    used = {name.partition("[")[0] for name in names}
    dataset["records"]["source"] = file
    dataset["records"]["structural_zeros"] = [
        {variable: sorted(codes) for variable, codes in rule.items()}
        for rule in structural_zeros()
        if used >= rule.keys()
    ]
    dataset["recipe"]["tabulate"]["margins"] = [list(term) for term in margins(names, order=order)]
