from __future__ import annotations

import pytest

from discreet import demo
from discreet.frames import Frame, concat

PERSONS = 100_000
SEED = 1


@pytest.fixture(scope="session")
def census() -> Frame:
    return concat(demo.generate(PERSONS, SEED))


@pytest.fixture(scope="session")
def survey() -> Frame:
    return concat(demo.survey(PERSONS, SEED))
