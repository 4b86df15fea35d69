import pytest

from discreet.serve.app import make_app
from discreet.serve.office.config import AccountsConfig
from discreet.serve.office.office import Office
from discreet.serve.site.config import SiteConfig
from tests.serve.client import Client
from tests.serve.sites import small_site


@pytest.fixture(scope="session")
def client():
    """Requests to the small site, as many as there are links to follow."""
    return Client(make_app(small_site(), Office(SiteConfig(accounts=AccountsConfig(rate=0.0)))))
