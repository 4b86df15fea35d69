"""The custodian's page: who sees it, what it shows, and that only its own forms change anything."""

import re
import time
from dataclasses import replace
from html import unescape

import pytest
from sqlalchemy import select

from discreet.errors import ParameterError
from discreet.serve import (
    AUDIT,
    AccountsConfig,
    Office,
    Role,
    SiteHolder,
    add_token,
    make_app,
    revoke_token,
)
from tests.serve.client import Client
from tests.serve.sites import small_site

TABLE = "/d/once/table?rows=region&columns=sex"


class Browser:
    """A client that keeps its cookie and sends forms as a browser does."""

    def __init__(self, app, **options):
        self.client, self.cookies = Client(app, **options), {}

    def get(self, path):
        return self.client.get(path, headers=self._headers())

    def post(self, path, fields, **headers):
        headers = {"Sec-Fetch-Site": "same-origin", **self._headers(), **headers}
        found = self.client.request("POST", path, data=fields, headers=headers)
        for cookie in found.headers.get_list("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        return found

    def mark(self, path):
        return unescape(re.search(r'name="form" value="([^"]+)"', self.get(path).text)[1])

    def sign_in(self, token):
        return self.post("/sign-in", {"form": self.mark("/sign-in"), "token": token})

    def _headers(self):
        return {"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}


@pytest.fixture
def office(file_store):
    office = Office(None, file_store)
    yield office
    office.close()


@pytest.fixture
def holder():
    return SiteHolder(
        small_site(), lambda old: replace(old, config=replace(old.config, title="New"))
    )


@pytest.fixture
def app(office, holder):
    return make_app(holder, office)


@pytest.fixture
def custodian(app, file_store):
    browser = Browser(app)
    assert browser.sign_in(add_token(file_store, "ann", Role.custodian)).status_code == 303
    return browser


def outcomes(store):
    with store.reading() as connection:
        return [(r.kind, r.outcome) for r in connection.execute(select(AUDIT).order_by(AUDIT.c.id))]


# Signing in


def test_a_custodian_signs_in_and_out(app, custodian, file_store):
    assert custodian.get("/admin").status_code == 200
    assert custodian.post("/sign-out", {"form": custodian.mark("/admin")}).status_code == 303
    assert custodian.get("/admin").status_code == 401


def test_the_session_is_out_of_reach_of_scripts_and_other_sites(app, file_store):
    browser = Browser(app)
    found = browser.sign_in(add_token(file_store, "ann", Role.custodian))
    (cookie,) = found.headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert "Secure" not in cookie
    assert found.headers["location"] == "/admin"


def test_behind_a_proxy_with_encryption_the_cookie_is_secure(file_store):
    office = Office(None, file_store)
    site = small_site(accounts=AccountsConfig(trusted_proxies=("127.0.0.1",)))
    browser = Browser(make_app(site, office), root_path="/tables")
    fields = {"form": browser.mark("/sign-in"), "token": add_token(file_store, "a", Role.viewer)}
    found = browser.post("/sign-in", fields, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in found.headers["set-cookie"]
    assert "Path=/tables" in found.headers["set-cookie"]
    assert found.headers["location"] == "/tables/"
    office.close()


def test_a_wrong_token_starts_no_session(app):
    found = Browser(app).sign_in("discreet_1_2")
    assert found.status_code == 401
    assert "set-cookie" not in found.headers
    assert "This token is not valid." in found.text


def test_a_revoked_token_ends_its_sessions(app, custodian, file_store, office):
    revoke_token(file_store, "ann")
    office.refresh()
    assert custodian.get("/admin").status_code == 401


def test_signing_in_needs_a_form_of_this_site(app, file_store):
    token = add_token(file_store, "eve", Role.viewer)
    found = Browser(app).post("/sign-in", {"form": "forged", "token": token})
    assert found.status_code == 403
    assert "set-cookie" not in found.headers


def test_a_signed_in_visitor_can_sign_out_without_the_admin_page(app, file_store):
    browser = Browser(app)
    browser.sign_in(add_token(file_store, "eve", Role.viewer))
    assert "You are signed in as eve." in browser.get("/sign-in").text
    assert browser.post("/sign-out", {"form": browser.mark("/sign-in")}).status_code == 303
    assert "You are signed in" not in browser.get("/sign-in").text


# Who sees the page


@pytest.mark.parametrize("role", [Role.viewer, Role.analyst])
def test_others_do_not_see_it(app, file_store, office, role):
    token = add_token(file_store, str(role), role)
    office.refresh()
    for path in ("/admin", "/admin/log.csv"):
        assert Client(app).get(path).status_code == 401
        right = {"Authorization": f"Bearer {token}"}
        assert Client(app).get(path, headers=right).status_code == 403


def test_a_site_without_an_office_has_no_such_pages():
    client = Client(make_app(small_site()))
    for path in ("/admin", "/admin/log.csv", "/sign-in"):
        assert client.get(path).status_code == 404


# What it shows


def test_it_shows_usage_and_refusals(app, custodian):
    client = Client(app)
    client.get(TABLE)
    client.get("/d/live/table?rows=nothing")
    text = custodian.get("/admin").text
    assert "rows=region&amp;columns=sex" in text
    assert "unknown_name" in text
    assert "Small country on the fly" in text


def test_it_speaks_the_other_language(custodian):
    assert "Steng" in custodian.get("/admin?lang=nb").text


def test_the_log_can_be_taken_home(app, custodian):
    Client(app).get(TABLE)
    found = custodian.get("/admin/log.csv")
    assert found.headers["content-type"].startswith("text/csv")
    header, signed_in, line = found.text.splitlines()
    assert ",signed_in," in signed_in
    assert header.startswith("time,visitor,dataset")
    assert ",once,2026," in line


def test_the_page_is_never_kept(custodian):
    found = custodian.get("/admin")
    assert found.headers["cache-control"] == "no-store"


# What it changes


def test_a_data_set_is_closed_and_opened(app, custodian, file_store):
    client = Client(app)
    for closed, status in (("1", 403), ("0", 200)):
        fields = {"form": custodian.mark("/admin"), "dataset": "once", "closed": closed}
        found = custodian.post("/admin/switch", fields)
        assert found.status_code == 303
        assert client.get(TABLE).status_code == status
        said = custodian.get(found.headers["location"]).text
        assert f"Small country is {'closed' if closed == '1' else 'open'}." in said
    assert ("admin", "closed_now") in outcomes(file_store)
    assert ("admin", "opened_now") in outcomes(file_store)


def test_a_closed_data_set_stays_closed_over_a_restart(custodian, file_store, office):
    fields = {"form": custodian.mark("/admin"), "dataset": "once", "closed": "1"}
    custodian.post("/admin/switch", fields)
    again = Office(office.config, file_store)
    assert Client(make_app(small_site(), again)).get(TABLE).status_code == 403
    again.close()


def test_the_site_is_read_again(custodian, holder, file_store):
    found = custodian.post("/admin/reload", {"form": custodian.mark("/admin")})
    assert found.status_code == 303
    assert holder.current.title == "New"
    assert ("admin", "reloaded") in outcomes(file_store)


def test_a_file_with_a_mistake_is_told_and_changes_nothing(office, file_store):
    def broken(old):
        raise mistake

    mistake = ParameterError("the title of a site must not be empty.")
    holder = SiteHolder(small_site(), broken)
    browser = Browser(make_app(holder, office))
    browser.sign_in(add_token(file_store, "ann", Role.custodian))
    for is_public in (False, True):
        mistake.is_public = is_public
        found = browser.post("/admin/reload", {"form": browser.mark("/admin")})
        assert found.status_code == 422
        assert (str(mistake) in found.text) is is_public
        assert holder.current.title == "Small site"


def test_an_error_that_nobody_foresaw_is_told_and_changes_nothing(office, file_store):
    def broken(old):
        raise OSError("a path of this machine")

    holder = SiteHolder(small_site(), broken)
    browser = Browser(make_app(holder, office))
    browser.sign_in(add_token(file_store, "ann", Role.custodian))
    found = browser.post("/admin/reload", {"form": browser.mark("/admin")})
    assert found.status_code == 422
    assert "Something went wrong on our side" in found.text
    assert "a path of this machine" not in found.text
    assert ("admin", "not_reloaded") in outcomes(file_store)


def test_forms_of_other_sites_and_other_visitors_change_nothing(app, custodian, file_store):
    other = Browser(app)
    other.sign_in(add_token(file_store, "eve", Role.custodian))
    fields = {"dataset": "once", "closed": "1"}
    own, stolen = custodian.mark("/admin"), other.mark("/admin")
    attempts = [
        custodian.post("/admin/switch", fields),
        custodian.post("/admin/switch", {**fields, "form": ""}),
        custodian.post("/admin/switch", {**fields, "form": stolen}),
        custodian.post(
            "/admin/switch", {**fields, "form": own}, **{"Sec-Fetch-Site": "cross-site"}
        ),
        Browser(app).post("/admin/switch", {**fields, "form": own}),
    ]
    assert {found.status_code for found in attempts} <= {401, 403}
    assert Client(app).get(TABLE).status_code == 200


def test_an_old_form_is_refused(custodian, monkeypatch):
    mark = custodian.mark("/admin")
    later = time.time() + 9 * 3600
    monkeypatch.setattr("discreet.serve.office.credentials.time.time", lambda: later)
    fields = {"form": mark, "dataset": "once", "closed": "1"}
    assert custodian.post("/admin/switch", fields).status_code in (401, 403)


def test_a_huge_form_is_refused(custodian):
    fields = {"form": custodian.mark("/admin"), "dataset": "x" * 100_000}
    assert custodian.post("/admin/switch", fields).status_code == 413


def test_a_form_of_another_type_is_refused(custodian):
    found = custodian.client.request(
        "POST", "/admin/reload", json={"form": "x"}, headers=custodian._headers()
    )
    assert found.status_code == 415


@pytest.mark.parametrize("path", ["/admin/switch", "/admin/reload", "/sign-out"])
def test_nothing_changes_by_a_link(custodian, path):
    assert custodian.get(f"{path}?dataset=once&closed=1").status_code == 405
