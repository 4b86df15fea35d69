"""Engines that every test of counting runs on; further ones join by an entry here."""

import warnings
from dataclasses import dataclass
from typing import Any

import ibis
import pytest

import discreet as dc
from discreet.records import QueryEngine
from discreet.testing import NumpyEngine


@dataclass(frozen=True)
class Place:
    """An engine and a back end that holds records."""

    backend: Any
    engine: Any

    def people(self, frame, **roles):
        """The frame's records, in a table of this back end."""
        name = ibis.util.gen_name("people")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dc.open(self.backend.create_table(name, frame), **roles)

    def tabulate(self, frame, margins, *, roles=None, **options):
        return self.people(frame, **(roles or {})).tabulate(margins, engine=self.engine, **options)


PLACES = {
    "duckdb": lambda: Place(ibis.duckdb.connect(), QueryEngine()),
    "numpy": lambda: Place(ibis.duckdb.connect(), NumpyEngine()),
}


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]()
