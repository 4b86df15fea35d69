"""Data sets and limits as plain data."""

from __future__ import annotations

from typing import Any

from discreet.release.formats.write import writers
from discreet.serve.api.listed import LARGEST
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.source import OfferedVariable
from discreet.serve.guard import LONGEST_QUERY
from discreet.serve.site.site import Site
from discreet.serve.web.links import Addresses
from discreet.tables.statement import plain_data

_TOLD = ("description", "date", "source", "licence", "contact")


def summary_json(dataset: Dataset, base: str) -> dict[str, Any]:
    """A data set as the catalogue shows it."""
    at = Addresses(base, dataset.name)
    return {
        **{name: getattr(dataset, name) for name in ("name", "title", "edition", "closed")},
        **{name: getattr(dataset.about, name) for name in _TOLD},
        "links": {
            "self": at.programs,
            "table": f"{at.programs}/table?{dataset.first.address}",
            "page": at.start,
        },
    }


def dataset_json(dataset: Dataset, base: str) -> dict[str, Any]:
    """All that a program needs to ask for tables."""
    address = Addresses(base, dataset.name).programs
    return {
        **summary_json(dataset, base),
        "mode": dataset.source.mode,
        "units": list(dataset.source.units),
        "variables": [_variable(variable, address) for variable in dataset.variables],
        "footnotes": list(dataset.about.footnotes),
        "limits": plain_data(dataset.policy.public()),
        "first_table": dataset.first.address,
        "statement": dataset.statement.to_json(),
    }


def limits_json(site: Site, rate: float, burst: int) -> dict[str, Any]:
    """Everything that limits a program, and whom to ask and cite."""
    config = site.config
    return {
        "title": site.title,
        "contact": config.contact,
        "citation": f"{site.title}: TITLE OF THE TABLE. DATA SET, edition EDITION. Protected "
        "figures, retrieved DATE from ADDRESS. Every table brings its own.",
        "languages": list(config.languages),
        "max_query_length": LONGEST_QUERY,
        "max_page_size": LARGEST,
        "rate": {"requests_per_second": rate, "burst": burst},
        "formats": [writer.name for writer in writers()],
        "datasets": [
            {"name": d.name, "closed": d.closed, "limits": plain_data(d.policy.public())}
            for d in site.datasets.values()
        ],
    }


def _variable(variable: OfferedVariable, address: str) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.label,
        "details": [{"name": d.name, "label": d.label, "cells": d.cells} for d in variable.details],
        "codes": f"{address}/variables/{variable.details[0].name}",
    }
