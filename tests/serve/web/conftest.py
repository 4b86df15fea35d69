import pytest

from discreet.serve import AccountsConfig, Office, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import small_site


@pytest.fixture(scope="session")
def client():
    """Requests to the small site, as many as there are links to follow."""
    return Client(make_app(small_site(), Office(SiteConfig(accounts=AccountsConfig(rate=0.0)))))
