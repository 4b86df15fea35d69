"""What a site of files cannot keep, found before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from discreet.errors import ParameterError
from discreet.serve.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.serve.site.config import DatasetConfig, SiteConfig

_HIDING = (
    *("min_population", "min_mean_cell", "k_anonymity", "l_diversity", "t_closeness"),
    *("min_difference", "max_sparsity", "forbidden"),
)
"""Rules that refuse tables by their figures, or crossings: files would show what they refuse."""
_TOLD = ("max_variables", "max_cells", "threshold")
"""Limits that the browser has to know."""
_OFF = {f.name: f.default for f in fields(Policy)}


def require_static(config: SiteConfig, chosen: Sequence[DatasetConfig]) -> None:
    """Refuse a site that files cannot be.

    Raises:
      ParameterError: Something in the site's file needs a server; everything that does is listed.
    """
    found = [*_of_site(config), *(why for dataset in chosen for why in _of_dataset(dataset))]
    if found:
        listed = "".join(f"\n  - {why}" for why in found)
        raise ParameterError(
            f"this site cannot be files alone, since nobody stands between them and visitors:"
            f"{listed}\nChange the site's file, name the data sets that can be files with --only, "
            "or answer with a server: discreet serve."
        )


def _of_site(config: SiteConfig) -> Iterator[str]:
    accounts = config.accounts
    if accounts.who != "open":
        yield f"[accounts] who = {accounts.who!r}: whoever has the files has every table of them."
    if accounts.analysts_only:
        listed = ", ".join(accounts.analysts_only)
        yield f"[accounts] analysts_only = {listed}: files do not know who reads them."


def _of_dataset(dataset: DatasetConfig) -> Iterator[str]:
    name, policy = dataset.name, dataset.policy
    if dataset.mode != "release-once":
        yield (
            f"data set {name!r} makes its tables on the fly; files hold what was released once, "
            "mode = 'release-once'."
        )
    if dataset.measures:
        listed = ", ".join(dataset.measures)
        yield (
            f"data set {name!r} has measures ({listed}), which are protected table by table; files "
            "hold sums of one protected table of counts."
        )
    for rule in _HIDING:
        if getattr(policy, rule) != _OFF[rule]:
            given = getattr(policy, rule)
            yield (
                f"data set {name!r}: the policy's {rule} = {given!r} refuses tables that the files "
                "would hold. Protect so that every table may be seen, and leave the rule out."
            )
    for limit in _TOLD:
        if not policy.tells(limit) and getattr(policy, limit) != 0:
            yield (
                f"data set {name!r}: public_parameters keeps {limit} back, and the browser has to "
                "know it. Name it there."
            )
