import pytest

from discreet.serve.app import make_app
from discreet.serve.source import RecipeSource
from tests.serve.client import Client
from tests.serve.records import RECIPE, small_country


@pytest.fixture(scope="module")
def records():
    return small_country(zeros=[{"region": ["ABROAD"], "age": ["65+"]}])


@pytest.fixture(scope="module")
def source(records):
    return RecipeSource(RECIPE, records)


@pytest.fixture(scope="module")
def client(source):
    return Client(make_app(source))
