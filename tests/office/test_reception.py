"""Who asks, how often, and what is written down: requests to a small site with an office."""

import threading
import time
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from discreet.errors import ParameterError, UnknownNameError
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
from discreet.serve.office.config import AuditConfig, Proxies, subscriber_network
from discreet.serve.office.credentials import (
    Pseudonyms,
    Signer,
    _shared_secret,
    all_tokens,
    find_token,
    signing_key,
)
from discreet.serve.office.database import TOKENS
from discreet.serve.office.office import RateLimiter, ask_for_reload, set_closed
from discreet.serve.site.sections import section
from tests.serve.client import Client
from tests.serve.sites import small_site

TABLE = "/d/once/table?rows=region&columns=sex"


@pytest.fixture
def served(file_store):
    """An application with an office on a database of its own, by what `[accounts]` says."""
    made = []

    def app(holder=None, **accounts):
        office = Office(None, file_store)
        made.append(office)
        config = section(AccountsConfig, accounts, "[accounts]")
        return make_app(holder or small_site(accounts=config), office)

    yield app
    for office in made:
        office.close()


@pytest.fixture
def client_of(served):
    return lambda **accounts: Client(served(**accounts))


def log(store):
    with store.reading() as connection:
        return connection.execute(select(AUDIT).order_by(AUDIT.c.id)).all()


# What is written down


def test_a_table_is_written_down_before_it_is_answered(client_of, file_store):
    assert client_of().get(TABLE).status_code == 200
    (entry,) = log(file_store)
    assert (entry.dataset, entry.edition, entry.kind) == ("once", "2026", "table")
    assert (entry.outcome, entry.address) == ("ok", "rows=region&columns=sex")
    assert entry.cells == 12 * 3
    assert entry.milliseconds > 0
    assert entry.visitor.startswith("visitor-")


@pytest.mark.parametrize(
    ("address", "outcome"),
    [
        ("/d/once/table?rows=nothing", "unknown_name"),
        ("/d/once/table?wrong=parameter", "unknown_parameter"),
        ("/d/nowhere/table?rows=region", "unknown_dataset"),
        ("/d/once/table", "no_variables"),
    ],
)
def test_a_refusal_is_written_down_with_its_reason(client_of, file_store, address, outcome):
    status = client_of().get(address).status_code
    assert (status >= 400) == (outcome != "no_variables")  # an empty builder is a page
    (entry,) = log(file_store)
    assert (entry.outcome, entry.cells) == (outcome, 0)
    assert entry.dataset in address


def test_pages_without_a_question_are_not_written_down(client_of, file_store):
    client = client_of()
    for path in ("/", "/health", "/static/style.css", "/nowhere"):
        client.get(path)
    assert log(file_store) == []


def test_what_cannot_be_written_down_is_not_answered(client_of, file_store):
    client = client_of()
    with file_store.writing() as connection:
        connection.execute(text("DROP TABLE audit"))
    for address in (TABLE, "/d/once/table?rows=nothing"):
        response = client.get(address)
        assert response.status_code == 503
        assert response.headers["retry-after"] == "5"
        assert "Traceback" not in response.text
    assert client.get("/").status_code == 200


def test_a_database_that_does_not_answer_asks_visitors_to_come_back(client_of, file_store):
    token = add_token(file_store, "ann", Role.custodian)
    client = client_of()
    with file_store.writing() as connection:
        connection.execute(text("DROP TABLE audit"))
    found = client.get("/admin", headers={"Authorization": f"Bearer {token}"})
    assert found.status_code == 503
    assert "audit" not in found.text.partition("<main")[2].partition("</main>")[0]


def test_the_head_of_an_answer_can_be_asked_for_alone(client_of, file_store):
    client = client_of()
    whole, head = client.get(TABLE), client.request("HEAD", TABLE)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert head.headers["etag"] == whole.headers["etag"]
    assert len(log(file_store)) == 2


def test_a_visitor_without_an_account_has_a_name_for_the_day_and_no_address(client_of, file_store):
    client = client_of()
    client.get(TABLE)
    client.get(TABLE)
    first, second = (entry.visitor for entry in log(file_store))
    assert first == second
    assert "127.0.0.1" not in first


@pytest.mark.slow
def test_pseudonyms_are_shared_by_processes_and_end_with_the_day(store):
    one, other = Pseudonyms(store), Pseudonyms(store)
    assert one.of("10.0.0.1") == other.of("10.0.0.1") != one.of("10.0.0.2")
    today = _shared_secret(store, "pseudonyms", one._day)
    assert _shared_secret(store, "pseudonyms", one._day) == today
    tomorrow = one._day.replace(year=one._day.year + 1)
    assert _shared_secret(store, "pseudonyms", tomorrow) != today
    assert signing_key(store) == signing_key(store)


# Accounts


def test_open_sites_answer_everybody(client_of):
    assert client_of(who="open").get(TABLE).status_code == 200


def test_sites_with_tokens_answer_their_holders_alone(client_of, file_store):
    token = add_token(file_store, "ann", Role.analyst)
    client = client_of(who="tokens")
    for path in (TABLE, "/", "/admin"):
        found = client.get(path)
        assert (found.status_code, found.headers["location"]) == (303, "/sign-in")
    assert client.get("/api/v1/datasets").status_code == 401
    assert client.get("/health").status_code == 200
    right = {"Authorization": f"Bearer {token}"}
    assert client.get(TABLE, headers=right).status_code == 200
    assert log(file_store)[-1].visitor == "ann"
    for wrong in (token[:-1] + "x", "discreet_1_2", "", "x" * 5_000, token.upper()):
        found = client.get(TABLE, headers={"Authorization": f"Bearer {wrong}"})
        assert found.status_code == 401


def test_a_wrong_token_is_refused_on_open_sites_too(client_of):
    found = client_of().get("/api/nowhere", headers={"Authorization": "Bearer wrong"})
    assert found.status_code == 401
    assert found.json()["error"]["code"] == "wrong_token"


def test_tokens_are_kept_as_hashes_and_their_ids(store):
    token = add_token(store, "ann", Role.custodian)
    with store.reading() as connection:
        (row,) = connection.execute(select(TOKENS)).all()
    assert token.encode() not in repr(tuple(row)).encode()
    assert token.rsplit("_", 1)[1] not in repr(tuple(row))
    assert find_token(token, all_tokens(store)).visitor.role == Role.custodian


def test_a_revoked_token_is_worthless_and_its_name_is_free(store):
    token = add_token(store, "ann", Role.viewer)
    with pytest.raises(ParameterError, match="there is a token named 'ann'"):
        add_token(store, "ann", Role.viewer)
    revoke_token(store, "ann")
    assert find_token(token, all_tokens(store)) is None
    with pytest.raises(UnknownNameError):
        revoke_token(store, "ann")
    again = add_token(store, "ann", Role.viewer)
    assert find_token(again, all_tokens(store)) is not None


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\nb"])
def test_names_of_tokens_are_plain(file_store, name):
    with pytest.raises(ParameterError, match="printable characters"):
        add_token(file_store, name, Role.viewer)


def test_a_proxy_names_its_users(client_of, file_store):
    client = client_of(who="proxy", trusted_proxies=["127.0.0.0/8"], custodians=["ann"])
    assert client.get(TABLE).status_code == 401
    assert client.get(TABLE, headers={"X-Remote-User": "ben"}).status_code == 200
    assert log(file_store)[-1].visitor == "ben"
    twice = [("X-Remote-User", "ben"), ("X-Remote-User", "ann")]
    assert client.get(TABLE, headers=twice).status_code == 401


def test_the_header_of_anybody_else_is_not_believed(client_of):
    client = client_of(who="proxy", trusted_proxies=["10.0.0.1"])
    assert client.get(TABLE, headers={"X-Remote-User": "ann"}).status_code == 401


def test_the_client_behind_proxies_is_the_last_that_none_of_them_is():
    proxies = Proxies(["127.0.0.1", "10.0.0.0/8", "::1"])
    chain = {"x-forwarded-for": "6.6.6.6, 1.2.3.4, 10.0.0.7"}
    assert proxies.client("127.0.0.1", chain) == "1.2.3.4"
    assert proxies.client("9.9.9.9", chain) == "9.9.9.9"
    assert proxies.client("127.0.0.1", {"x-forwarded-for": "evil\x00"}) == "unknown"
    assert proxies.client("127.0.0.1", {}) == "127.0.0.1"
    assert (
        subscriber_network("2001:db8::1") == subscriber_network("2001:db8::ffff") == "2001:db8::/64"
    )
    assert subscriber_network("1.2.3.4") == "1.2.3.4"


def test_addresses_of_ipv4_are_what_they_are_on_a_socket_of_ipv6():
    """All visitors of `host = "::"` shared one bucket, and no proxy was known."""
    assert subscriber_network("::ffff:1.2.3.4") == "1.2.3.4"
    proxies = Proxies(["127.0.0.1"])
    told = {"x-forwarded-for": "::ffff:6.6.6.6"}
    assert proxies.client("::ffff:127.0.0.1", told) == "6.6.6.6"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"who": "everybody"}, "must be one of open, tokens, proxy"),
        ({"who": "proxy"}, "needs trusted_proxies"),
        ({"trusted_proxies": ["nowhere"]}, "addresses or networks"),
        ({"trusted_proxies": ["127.0.0.1", "0.0.0.0/0"]}, "everybody could write"),
        ({"trusted_proxies": ["::/0"]}, "everybody could write"),
        ({"rate": -1}, "rate >= 0"),
        ({"rate": float("nan")}, "must be a number, got nan"),
        ({"session_hours": 1e9}, "at most 8,760"),
        ({"burst": 1.5}, "burst of .accounts. must be a whole number"),
        ({"whom": "open"}, "unknown entry of .accounts. 'whom'"),
    ],
)
def test_a_wrong_section_is_a_clear_error(given, said):
    with pytest.raises(ParameterError if "whom" not in given else UnknownNameError, match=said):
        section(AccountsConfig, given, "[accounts]")


@pytest.mark.parametrize("given", [{"store": " "}, {"keep_days": -1}, {"keep": 3}])
def test_a_wrong_section_on_the_audit_log_is_a_clear_error(given):
    with pytest.raises((ParameterError, UnknownNameError)):
        section(AuditConfig, given, "[audit]")


# Sessions


def test_signed_texts_end_and_cannot_be_changed_or_used_elsewhere():
    signer = Signer(b"k" * 32, "session")
    signed = signer.sign("ann.a", 60)
    assert signer.read(signed) == "ann.a"
    assert Signer(b"k" * 32, "form").read(signed) is None
    assert Signer(b"l" * 32, "session").read(signed) is None
    assert signer.read(signer.sign("ann", -1)) is None
    for k in range(len(signed)):
        changed = signed[:k] + ("A" if signed[k] != "A" else "B") + signed[k + 1 :]
        assert signer.read(changed) is None
    for odd in ("", ".", "a.b", "é.ü", "=" * 9):
        assert signer.read(odd) is None


# Limits


def test_a_bucket_allows_a_burst_and_then_a_rate():
    clock = [0.0]
    buckets = RateLimiter(rate=2, burst=3, clock=lambda: clock[0])
    assert [buckets.wait("ann") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.wait("ben") == 0
    clock[0] = 0.5
    assert [buckets.wait("ann"), buckets.wait("ann")] == [0, 0.5]
    clock[0] = 1_000.0
    assert sum(buckets.wait("ann") == 0 for _ in range(10)) == 3


def test_buckets_need_bounded_memory(monkeypatch):
    monkeypatch.setattr("discreet.serve.office.office._MOST_VISITORS", 100)
    buckets = RateLimiter(rate=1, burst=1)
    for k in range(1_000):
        buckets.wait(str(k))
    assert len(buckets) == 100


def test_who_asks_too_often_is_told_when_to_come_back(client_of):
    client = client_of(rate=0.5, burst=3)
    codes = [client.get("/api/nowhere").status_code for _ in range(4)]
    assert codes == [404, 404, 404, 429]
    refused = client.get("/api/nowhere")
    assert refused.json()["error"]["code"] == "too_often"
    assert 1 <= int(refused.headers["retry-after"]) <= 2
    assert client.get("/health").status_code == 200
    assert client.get("/static/style.css").status_code == 200


def test_visitors_behind_a_trusted_proxy_have_buckets_of_their_own(client_of):
    client = client_of(rate=0.01, burst=1, trusted_proxies=["127.0.0.1"])
    for k in range(3):
        address = {"X-Forwarded-For": f"1.2.3.{k}"}
        assert client.get(TABLE, headers=address).status_code == 200
        assert client.get(TABLE, headers=address).status_code == 429


def test_forwarded_addresses_of_strangers_do_not_make_new_buckets(client_of):
    client = client_of(rate=0.01, burst=1)
    assert client.get(TABLE, headers={"X-Forwarded-For": "1.2.3.4"}).status_code == 200
    assert client.get(TABLE, headers={"X-Forwarded-For": "1.2.3.5"}).status_code == 429


# The office's decisions


def until(is_so, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_so()


def test_closing_a_data_set_takes_effect_in_every_process(client_of, file_store):
    one, other = client_of(), client_of()
    set_closed(file_store, "once", True, "ann")
    for client in (one, other):
        assert until(lambda client=client: client.get(TABLE).status_code == 403)
        assert client.get(TABLE.replace("once", "live")).status_code == 200
    assert log(file_store)[-2].outcome == "closed"
    set_closed(file_store, "once", False, "ann")
    assert until(lambda: one.get(TABLE).status_code == 200)


def test_a_data_set_for_analysts_gives_viewers_no_table(client_of, file_store):
    token = add_token(file_store, "ann", Role.analyst)
    client = client_of(analysts_only=["once"])
    assert client.get(TABLE).status_code == 403
    assert client.get(TABLE.replace("once", "live")).status_code == 200
    right = {"Authorization": f"Bearer {token}"}
    assert client.get(TABLE, headers=right).status_code == 200


def test_every_process_reads_the_site_again_when_asked(served, file_store):
    changed = {"title": "Second", "accounts": AccountsConfig(burst=7)}
    holder = SiteHolder(
        small_site(), lambda old: replace(old, config=replace(old.config, **changed))
    )
    office = served(holder).state.office
    ask_for_reload(file_store, "ann")
    assert until(lambda: holder.current.title == "Second")
    assert until(lambda: office.config.accounts.burst == 7)


@pytest.mark.parametrize("error", [ParameterError("the site's file is at fault."), OSError("disk")])
def test_a_site_that_cannot_be_read_again_stays_as_it_is(served, file_store, error):
    def broken(old):
        raise error

    holder = SiteHolder(small_site(), broken)
    client = Client(served(holder))
    ask_for_reload(file_store, "ann")
    set_closed(file_store, "live", True, "ann")
    assert until(lambda: client.get(TABLE.replace("once", "live")).status_code == 403)
    assert client.get(TABLE).status_code == 200


def test_a_site_that_takes_long_to_read_holds_no_decision_up(served, file_store):
    asked, go_on = threading.Event(), threading.Event()

    def slow(old):
        asked.set()
        go_on.wait(30)
        return old

    client = Client(served(SiteHolder(small_site(), slow)))
    ask_for_reload(file_store, "ann")
    assert asked.wait(10)
    set_closed(file_store, "live", True, "ann")
    assert until(lambda: client.get(TABLE.replace("once", "live")).status_code == 403)
    go_on.set()


# Caches between visitors and the site


API = "/api/v1/datasets/once/table?rows=region"


def test_what_analysts_get_is_not_for_caches_of_others(client_of, file_store):
    token = add_token(file_store, "ann", Role.analyst)
    client = client_of(analysts_only=["once"])
    for path in (API, "/d/once/table.csv?rows=region", API.replace("once", "live")):
        found = client.get(path, headers={"Authorization": f"Bearer {token}"})
        assert (found.status_code, found.headers["cache-control"]) == (200, "private, no-cache")
        assert {"Authorization", "Cookie"} <= {*found.headers["vary"].split(", ")}
        assert "access-control-allow-origin" not in found.headers


def test_what_anybody_gets_may_be_kept_for_those_without_an_account(client_of):
    found = client_of().get(API)
    assert found.headers["cache-control"].startswith("public")
    assert found.headers["access-control-allow-origin"] == "*"
    assert {"Authorization", "Cookie"} <= {*found.headers["vary"].split(", ")}
