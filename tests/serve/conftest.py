import pytest

from discreet.serve import AccountsConfig, Office, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import small_site


@pytest.fixture(scope="session")
def site():
    """A small site: data set `once` is released once, `live` is served on the fly."""
    return small_site()


@pytest.fixture(scope="session")
def client(site):
    """Requests to the small site, as many as there are."""
    return Client(make_app(site, Office(SiteConfig(accounts=AccountsConfig(rate=0)))))
