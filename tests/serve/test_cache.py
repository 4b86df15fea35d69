"""What is at hand is given at once; what is under way is made once."""

import asyncio
import threading
import time

import httpx
import pytest

from discreet.serve import Query, Refusal, Site, SiteConfig, make_app
from discreet.serve.data import cache
from discreet.serve.data.cache import MemoryCache, Seats, SeatsBySize
from discreet.serve.data.live import ConnectionPool
from discreet.serve.refusals import note_request
from tests.serve.sites import live


def in_threads(n, work):
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    return threads


def test_the_same_question_is_asked_once():
    kept, asked, found = MemoryCache(10), [], []

    def make():
        asked.append(1)
        time.sleep(0.05)
        return object()

    for thread in in_threads(8, lambda: found.append(kept.get("a", make))):
        thread.join()
    assert len(asked) == 1
    assert len(set(map(id, found))) == 1


def test_what_is_kept_never_waits_behind_something_slow():
    kept, release = MemoryCache(10), threading.Event()
    kept.get("quick", lambda: "at hand")
    (slow,) = in_threads(1, lambda: kept.get("slow", release.wait))
    start = time.perf_counter()
    assert kept.get("quick", lambda: pytest.fail("made again")) == "at hand"
    assert time.perf_counter() - start < 1
    release.set()
    slow.join()


def test_a_failure_is_told_to_all_and_not_kept():
    kept = MemoryCache(10)
    with pytest.raises(KeyError):
        kept.get("a", lambda: {}["no"])
    assert kept.get("a", lambda: 1) == 1


def test_the_oldest_goes_when_there_is_no_room():
    kept = MemoryCache(10, weigh=len)
    for key in ("aaaa", "bbbb"):
        kept.get(key, lambda key=key: key)
    kept.get("aaaa", lambda: pytest.fail("made again"))
    kept.get("cccc", lambda: "cccc")
    assert ("aaaa" in kept, "bbbb" in kept, "cccc" in kept) == (True, False, True)


def test_no_more_than_so_many_connections_are_opened():
    opened, most, now, lock = [], [0], [0], threading.Lock()
    pool = ConnectionPool(lambda: opened.append(1) or len(opened), 2)

    def work():
        with pool.connection():
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.01)
            with lock:
                now[0] -= 1

    for thread in in_threads(10, work):
        thread.join()
    assert len(opened) == 2
    assert most[0] == 2


def crowded(seats, taken, waiting):
    """Wait until so many seats are taken and so many wait."""
    while seats.load != (taken, waiting):
        time.sleep(0.001)


def test_whoever_finds_no_seat_waits_and_is_told_so_when_the_line_is_full():
    seats, release = Seats(2, line=2, of_one=9), threading.Event()
    kept = MemoryCache(10, seats=lambda key: seats)
    kept.get("quick", lambda: "at hand")
    threads = [in_threads(1, lambda k=k: kept.get(k, release.wait))[0] for k in "abcd"]
    crowded(seats, 2, 2)
    with pytest.raises(Refusal) as caught:
        kept.get("other", lambda: "made")
    assert (caught.value.code, caught.value.status) == ("busy", 503)
    assert kept.get("quick", lambda: pytest.fail("made again")) == "at hand"
    release.set()
    for thread in threads:
        thread.join()
    assert [kept.get(k, lambda: pytest.fail("lost")) for k in "abcd"] == [True] * 4
    assert kept.get("other", lambda: "made") == "made"


def test_patience_has_an_end():
    seats, release = Seats(1, patience=0.02), threading.Event()
    kept = MemoryCache(10, seats=lambda key: seats)
    (slow,) = in_threads(1, lambda: kept.get("slow", release.wait))
    crowded(seats, 1, 0)
    with pytest.raises(Refusal, match="Many new tables"):
        kept.get("other", lambda: "made")
    assert seats.load == (1, 0)
    release.set()
    slow.join()


def test_a_crowd_before_one_slow_table_leaves_room_to_make_others():
    """Threads are few, so the crowd has an end as well."""
    seats, release = Seats(2, of_one=3), threading.Event()
    kept = MemoryCache(10, seats=lambda key: seats)
    threads = in_threads(4, lambda: kept.get("slow", release.wait))
    crowded(seats, 1, 3)
    with pytest.raises(Refusal, match="Many new tables"):
        kept.get("slow", lambda: pytest.fail("made twice"))
    with note_request("viewer", "another"):
        assert kept.get("other", lambda: "made") == "made"
    release.set()
    for thread in threads:
        thread.join()


def test_small_tables_have_seats_of_their_own():
    seats = SeatsBySize(1, 1)
    with seats.of(5_000).take("ann"):
        assert seats.of(999) is not seats.of(1_000)
        with seats.of(999).take("bob"):
            assert seats.load == (2, 0)
    assert seats.load == (0, 0)


@pytest.mark.parametrize("is_fair", [True, False])
def test_many_questions_of_one_visitor_leave_the_next_seat_to_another(is_fair, monkeypatch):
    """With the control: first come, first served lets the other visitor wait for all of them."""
    seats, done = Seats(1), []
    if not is_fair:
        monkeypatch.setattr(cache, "min", lambda line, key: line[0], raising=False)
    started = threading.Event()

    def ask(visitor, wait=0.01):
        with seats.take(visitor):
            started.set()
            time.sleep(wait)
            done.append(visitor)

    threads = [threading.Thread(target=ask, args=("greedy", 0.1))]
    threads[0].start()
    started.wait()
    for k, visitor in enumerate([*["greedy"] * 15, "other"]):
        threads += [threading.Thread(target=ask, args=(visitor,))]
        threads[-1].start()
        crowded(seats, 1, k + 1)
    for thread in threads:
        thread.join()
    assert done.index("other") == (1 if is_fair else 16)


def test_a_seat_goes_to_whoever_holds_fewest_though_another_has_waited_longer():
    seats, leave, done = Seats(2), threading.Event(), []

    def ask(visitor, until=None):
        with seats.take(visitor):
            done.append(visitor)
            if until is not None:
                until.wait()

    stay = threading.Event()
    threads = [threading.Thread(target=ask, args=("holds one", stay))]
    threads[0].start()
    crowded(seats, 1, 0)
    ask("holds none")
    for waiting, (visitor, until) in enumerate(
        [("third", leave), ("holds one", None), ("holds none", None)]
    ):
        threads.append(threading.Thread(target=ask, args=(visitor, until)))
        threads[-1].start()
        crowded(seats, 2, waiting)
    leave.set()
    for thread in threads[1:]:
        thread.join()
    stay.set()
    threads[0].join()
    assert done[3:] == ["holds none", "holds one"]


def test_everybody_who_waits_gets_a_refusal_of_their_own():
    """Tables that would be answered are written on it, and they differ from visitor to visitor."""
    seats, release, found = Seats(1), threading.Event(), []
    kept = MemoryCache(10, seats=lambda key: seats)

    def make():
        release.wait()
        raise Refusal("too_small", "No.", "Others.", 403, wait=7)

    def ask():
        with pytest.raises(Refusal) as caught:
            kept.get("slow", make)
        found.append(caught.value)

    threads = in_threads(4, ask)
    crowded(seats, 1, 3)
    release.set()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 4
    assert {(r.code, str(r), r.allowed, r.status, r.wait) for r in found} == {
        ("too_small", "No.", "Others.", 403, 7)
    }


def test_a_connection_that_never_becomes_free_is_a_refusal():
    pool = ConnectionPool(object, 1, patience=0.01)
    with pool.connection(), pytest.raises(Refusal) as caught, pool.connection():
        pass
    assert caught.value.code == "busy"


def test_a_connection_that_failed_a_question_is_used_again():
    pool = ConnectionPool(object, 1)
    with pytest.raises(ValueError, match="no"), pool.connection() as first:
        raise ValueError("no")
    with pool.connection() as second:
        assert second is first


def test_a_kept_table_is_answered_while_many_wait_for_slow_ones():
    """Over HTTP: threads stay free for pages of tables that are at hand."""
    dataset, release = live(), threading.Event()
    dataset.answer(Query.parse("rows=sex"))
    make = dataset.source.cube

    def slow(details, unit):
        release.wait(20)
        return make(details, unit)

    dataset.source.cube = slow
    app = make_app(Site(SiteConfig(), {"live": dataset}))

    async def asked():
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")
        async with app.router.lifespan_context(app), client:
            crowd = [client.get("/d/live/table?rows=region&columns=age") for _ in range(60)]
            waiting = [asyncio.ensure_future(request) for request in crowd]
            await asyncio.sleep(0.5)
            start = time.perf_counter()
            quick = await client.get("/d/live/table.csv?rows=sex")
            seconds = time.perf_counter() - start
            release.set()
            return quick, seconds, [(await request).status_code for request in waiting]

    quick, seconds, others = asyncio.run(asked())
    assert quick.status_code == 200
    assert seconds < 5
    assert {200, 503} <= set(others) <= {200, 429, 503}
