"""The page about the table builder keeps up with what a site's file can say."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from discreet.serve import DatasetInfo, Policy, SiteConfig, site_of
from discreet.serve.site.config import DatasetConfig, RecordsConfig

PAGE = (Path(__file__).parents[2] / "docs" / "table_builder.md").read_text(encoding="utf-8")
NOT_WRITTEN = {"name", "about", "folder", "datasets", "server", "policy", "accounts", "audit"}


@pytest.mark.parametrize("section", [SiteConfig, DatasetConfig, RecordsConfig, Policy, DatasetInfo])
def test_every_entry_is_described(section):
    for entry in {f.name for f in fields(section)} - NOT_WRITTEN:
        assert f"`{entry}`" in PAGE, f"{entry} is described nowhere"


def test_the_example_is_a_site():
    example, sums = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    config = site_of(tomllib.loads(example), Path())
    of_firms = example.replace(".census", ".firms") + sums
    (turnover,) = site_of(tomllib.loads(of_firms), Path()).datasets[0].measures.values()
    assert turnover.recipe.magnitude["value"] == "turnover"
    assert [d.mode for d in config.datasets] == ["release-once", "on-the-fly"]
    assert config.datasets[0].policy.max_variables == 4


def test_defaults_of_the_policy_are_those_of_the_page():
    rows = re.findall(r"^\| `(max_variables|max_cells)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    for name, value in rows:
        assert getattr(Policy(), name) == int(value.replace(",", ""))
    assert len(rows) == 2
