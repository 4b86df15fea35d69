"""Answers kept as bytes: who gets which, and that nobody waits for somebody else's question."""

import asyncio
import threading

import httpx
import pytest

from discreet.serve import Dataset, Policy, SiteHolder, make_app
from discreet.serve.app import ResponseCache
from tests.serve.client import Client
from tests.serve.sites import small_site

TABLE = "/d/once/table?rows=region&columns=sex"


@pytest.fixture
def asked(monkeypatch):
    """The queries that data sets really answer."""
    found, plain = [], Dataset.answer

    def answer(self, query):
        found.append(query.address)
        return plain(self, query)

    monkeypatch.setattr(Dataset, "answer", answer)
    return found


def test_the_same_question_is_answered_once(asked):
    client = Client(make_app(small_site()))
    first, second = client.get(TABLE), client.get(TABLE)
    assert len(asked) == 1
    assert first.text == second.text
    assert first.headers == second.headers


def test_who_has_the_answer_is_told_so():
    client = Client(make_app(small_site()))
    first = client.get(TABLE)
    for known in (first.headers["etag"], f'"x", W/{first.headers["etag"]}', "*"):
        again = client.get(TABLE, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["content-security-policy"]
    assert client.get(TABLE, headers={"If-None-Match": '"other"'}).status_code == 200


def test_answers_are_zipped_for_those_who_take_it():
    client = Client(make_app(small_site()))
    plain = client.get(TABLE, headers={"Accept-Encoding": "identity"})
    zipped = client.get(TABLE, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    refused = client.get(TABLE, headers={"Accept-Encoding": "gzip;q=0"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) < len(plain.content) / 2
    assert zipped.text == plain.text == refused.text
    assert "content-encoding" not in refused.headers
    assert "Accept-Encoding" in zipped.headers["vary"]


@pytest.mark.parametrize(
    "other",
    [
        {"Accept-Language": "nb"},
        {"Cookie": "lang=nb"},
        {"Host": "elsewhere"},
        {"Accept": "application/json"},
    ],
)
def test_answers_that_may_differ_are_kept_apart(asked, other):
    client = Client(make_app(small_site()))
    client.get(TABLE)
    client.get(TABLE, headers=other)
    assert len(asked) == 2


def test_refusals_and_closed_data_sets_are_not_answered_from_memory(asked):
    site = small_site()
    client = Client(make_app(site))
    assert client.get(TABLE).status_code == 200
    site.datasets["once"].switch.is_closed = True
    assert client.get(TABLE).status_code == 403
    site.datasets["once"].switch.is_closed = False
    assert client.get(TABLE).status_code == 200
    site.datasets["once"].switch.for_analysts = True
    assert client.get(TABLE).status_code == 403


def test_a_site_that_was_read_again_answers_anew(asked):
    holder = SiteHolder(small_site(), lambda old: small_site())
    client = Client(make_app(holder))
    client.get(TABLE)
    holder.reload()
    client.get(TABLE)
    assert len(asked) == 2


def test_an_answer_under_way_while_the_site_is_read_again_is_not_kept(monkeypatch):
    """The new site allows less: what the old one was asked must not be answered in its name."""
    old, new = small_site(), small_site(Policy(max_variables=1))
    asked, go_on, plain = threading.Event(), threading.Event(), Dataset.answer

    def answer(self, query):
        if self is old.datasets["once"]:
            asked.set()
            go_on.wait(30)
        return plain(self, query)

    monkeypatch.setattr(Dataset, "answer", answer)
    holder = SiteHolder(old, lambda _: new)
    transport = httpx.ASGITransport(make_app(holder))

    async def visit():
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            slow = asyncio.create_task(client.get(TABLE))
            while not asked.is_set():
                await asyncio.sleep(0.01)
            holder.reload()
            first = await client.get(TABLE)
            go_on.set()
            return [r.status_code for r in (first, await slow, await client.get(TABLE))]

    assert asyncio.run(visit()) == [400, 200, 400]


def test_headers_that_decide_nothing_make_no_further_answers(asked):
    client = Client(make_app(small_site()))
    for k in range(5):
        others = {"Cookie": f"theirs={k}; discreet_session={k}", "X-Forwarded-Host": f"h{k}"}
        client.get(TABLE, headers={**others, "Accept-Language": f"en;q=0.{k + 1}"})
    assert len(asked) == 1


def test_memory_is_bounded_by_all_that_is_kept():
    kept = ResponseCache(None, room=10_000)
    for k in range(100):
        kept.keep(bytes([k]), _answer(b"x" * 300), None)
    assert list(kept._kept) == [bytes([k]) for k in range(96, 100)]
    assert kept._load == 4 * (1_000 + 507 + 600 + 300)


def test_what_a_visitor_sends_is_kept_as_a_digest(monkeypatch):
    sizes, plain = [], ResponseCache.keep

    def keep(self, key, *given):
        sizes.append(len(key))
        plain(self, key, *given)

    monkeypatch.setattr(ResponseCache, "keep", keep)
    client = Client(make_app(small_site()))
    client.get(TABLE, headers={"Accept": "x" * 20_000, "Host": "y" * 5_000})
    assert sizes == [16]


def _answer(body):
    from discreet.serve.app import CachedResponse
    from discreet.serve.refusals import RequestNote

    headers = ((b"x-long", b"x" * 501),)
    return CachedResponse(headers, body, '"t"', RequestNote(address="a" * 600))


def test_kept_answers_do_not_wait_for_slow_ones(monkeypatch):
    """Sixty questions that hang fill every thread; a kept answer comes all the same."""
    release, plain = threading.Event(), Dataset.answer

    def answer(self, query):
        if self.name == "live":
            release.wait(30)
        return plain(self, query)

    monkeypatch.setattr(Dataset, "answer", answer)
    app = make_app(small_site())

    async def visit():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            await client.get(TABLE)
            slow = TABLE.replace("once", "live")
            waiting = [asyncio.create_task(client.get(slow)) for _ in range(60)]
            await asyncio.sleep(0.2)
            found = await asyncio.wait_for(client.get(TABLE), 5)
            assert not any(task.done() for task in waiting)
            release.set()
            codes = {r.status_code for r in await asyncio.gather(*waiting)}
            assert 200 in codes
            assert codes <= {200, 503}  # more than can wait are asked to come back
            return found

    assert asyncio.run(visit()).status_code == 200
