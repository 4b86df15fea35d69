import pytest

from discreet.serve.app import make_app
from tests.serve.client import Client
from tests.serve.sites import small_site


@pytest.fixture(scope="session")
def site():
    """A small site: data set `once` is released once, `live` is served on the fly."""
    return small_site()


@pytest.fixture(scope="session")
def client(site):
    """Requests to the small site."""
    return Client(make_app(site))
