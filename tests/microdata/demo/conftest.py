from __future__ import annotations

import pyarrow as pa
import pytest

from discreet import demo

PERSONS = 100_000
SEED = 1


@pytest.fixture(scope="session")
def census() -> pa.Table:
    return pa.concat_tables(demo.generate(PERSONS, SEED))


@pytest.fixture(scope="session")
def survey() -> pa.Table:
    return pa.concat_tables(demo.survey(PERSONS, SEED))
