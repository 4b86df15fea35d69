"""Expensive tables wait in a queue that all processes share, and nobody waits because of them."""

import sys
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from discreet.serve import Office, Query, Question, Refusal, load_site, make_app
from discreet.serve.office import jobs
from discreet.serve.office.database import JOBS
from discreet.serve.office.jobs import JobQueue, JobRunner
from discreet.serve.refusals import Queued
from tests.office.test_admin import Browser
from tests.serve.client import Client
from tests.serve.test_site_files import folder, write  # noqa: F401 -- a fixture

ROWS = "rows=place&columns=sex"


def table(name):
    return Queued("live", "1", (name,), "count", Query(rows=(name,)), 5.0)


def waited(condition, seconds=40.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture
def queue(store):
    return JobQueue(store)


# The queue


def test_a_table_is_one_job_whoever_asks_for_it(queue):
    first = queue.submit(table("a"), "ann", 3)
    assert queue.submit(table("a"), "bob", 3) == first
    assert (first.state, first.visitor, first.details) == ("waiting", "ann", ("a",))
    assert queue.load() == {"waiting": 1, "running": 0}


def test_a_visitor_has_so_many_jobs_and_others_have_theirs(queue):
    for name in "abc":
        queue.submit(table(name), "ann", 3)
    with pytest.raises(Refusal) as caught:
        queue.submit(table("d"), "ann", 3)
    assert (caught.value.code, caught.value.status) == ("too_many_jobs", 429)
    assert queue.submit(table("d"), "bob", 3).state == "waiting"


def test_a_full_queue_says_so(queue, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_JOBS", 2)
    for visitor in "xy":
        queue.submit(table(visitor), visitor, 3)
    with pytest.raises(Refusal, match="queue of large tables is full"):
        queue.submit(table("z"), "z", 3)


def test_the_seat_goes_to_whoever_had_none_for_the_longest_time(queue):
    for name, visitor in (("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "bob")):
        queue.submit(table(name), visitor, 3)
        time.sleep(0.002)
    order = []
    for _ in range(4):
        job = queue.claim("w", ["live"])
        order.append(job.details[0])
        queue.end(job, "w", "done")
        time.sleep(0.002)
    assert order == ["a", "d", "b", "c"]


def test_two_workers_never_make_the_same_job(queue):
    for name in "ab":
        queue.submit(table(name), "ann", 3)
    found = [queue.claim(worker, ["live"]) for worker in ("one", "two", "three")]
    assert {job.details for job in found[:2]} == {("a",), ("b",)}
    assert found[2] is None
    assert not queue.beat(found[0], "two")
    queue.end(found[0], "two", "done")  # not its own: nothing happens
    assert queue.find(found[0].id).state == "running"


def test_a_data_set_that_is_closed_waits(queue):
    queue.submit(table("a"), "ann", 3)
    assert queue.claim("w", []) is None
    assert queue.claim("w", ["live"]) is not None


def test_a_job_whose_process_is_gone_is_begun_again_once(queue, store):
    queue.submit(table("a"), "ann", 3)
    for attempt in (1, 2):
        job = queue.claim("gone", ["live"])
        assert job.attempts == attempt
        assert queue.claim("next", ["live"]) is None
        with store.writing() as connection:
            connection.execute(JOBS.update().values(beat=JOBS.c.beat))
            old = job.started - timedelta(seconds=60)
            connection.execute(JOBS.update().values(beat=old))
    assert queue.claim("next", ["live"]) is None
    assert queue.find(job.id).state == "failed"
    with pytest.raises(Refusal, match="could not be made a short time ago"):
        queue.submit(table("a"), "ann", 3)


def test_only_its_own_visitor_cancels_a_job(queue):
    job = queue.submit(table("a"), "ann", 1)
    assert not queue.cancel(job.id, "bob")
    assert queue.cancel(job.id, "ann")
    assert not queue.cancel(job.id, "ann")
    assert queue.submit(table("b"), "ann", 1).state == "waiting"  # the place is free
    assert queue.submit(table("a"), "bob", 1).state == "waiting"  # and the table can be asked again


# The runner


@pytest.fixture
def run(file_store, monkeypatch):
    """Runners whose children run a line of Python; all are stopped in the end."""
    monkeypatch.setattr(jobs, "_BEAT", 0.1)
    queue, made = JobQueue(file_store), []

    def started(line):
        runner = JobRunner(queue, lambda job: [sys.executable, "-c", line], lambda: ["live"])
        made.append(runner.start())
        return queue, runner

    yield started
    for runner in made:
        runner.stop()


@pytest.mark.parametrize(("line", "state"), [("pass", "done"), ("1 / 0", "failed")])
def test_how_a_child_ends_is_written_down(run, line, state):
    queue, _ = run(line)
    job = queue.submit(table("a"), "ann", 3)
    waited(lambda: queue.find(job.id).state == state)


def test_a_cancelled_job_frees_its_seat(run):
    queue, _ = run("import time; time.sleep(600)")
    first, second = (queue.submit(table(name), "ann", 3) for name in "ab")
    waited(lambda: queue.find(first.id).state == "running")
    assert queue.find(second.id).state == "waiting"
    assert queue.cancel(first.id, "ann")
    waited(lambda: queue.find(second.id).state == "running")
    assert queue.find(first.id).state == "cancelled"


def test_a_job_survives_a_restart(run):
    queue, runner = run("import time; time.sleep(600)")
    job = queue.submit(table("a"), "ann", 3)
    waited(lambda: queue.find(job.id).state == "running")
    runner.stop()
    assert queue.find(job.id).state == "waiting"
    run("pass")
    waited(lambda: queue.find(job.id).state == "done")
    assert queue.find(job.id).attempts == 1


def test_the_queue_outlives_a_moment_without_memory(run, monkeypatch, caplog):
    """The thread that looks after the queue ended, and no table was ever made again."""
    begin, refused = jobs.subprocess.Popen, []

    def begin_later(*given, **options):
        if not refused:
            refused.append(True)
            raise OSError(12, "Cannot allocate memory")
        return begin(*given, **options)

    monkeypatch.setattr(jobs, "_IDLE", 0.01)
    monkeypatch.setattr(jobs, "_LOST", timedelta(0))
    monkeypatch.setattr(jobs.subprocess, "Popen", begin_later)
    queue, _ = run("pass")
    job = queue.submit(table("a"), "ann", 3)
    waited(lambda: queue.find(job.id).state == "done")
    assert "OSError in the queue; it is tried again." in caplog.text


def test_a_child_that_takes_too_long_is_ended(run, monkeypatch, caplog):
    monkeypatch.setattr(jobs, "_most_seconds", lambda job: 0.2)
    queue, _ = run("import time; time.sleep(600)")
    job = queue.submit(table("a"), "ann", 3)
    waited(lambda: queue.find(job.id).state == "failed")
    assert "took too long" in caplog.text


# A site with a queue


@pytest.fixture
def site(folder):  # noqa: F811 -- a fixture
    path = write(folder, policy={"queue_seconds": 0.0})
    text = path.read_text()
    path.write_text(text[: text.index("[datasets.people]")] + text[text.index("[datasets.live]") :])
    return path


@pytest.fixture
def open_office(site):
    holder = load_site(site)
    office = Office.open(holder.current.config)
    yield holder, office
    office.close()


def test_an_expensive_table_is_made_in_the_queue(site, open_office):
    """Asked by a page, made by another process, found at an address that stays."""
    holder, office = open_office
    browser = Browser(make_app(holder, office))
    asked = browser.get(f"/d/live/table?{ROWS}")
    assert (asked.status_code, asked.headers["location"]) == (303, f"/d/live/job?{ROWS}")
    page = browser.get(f"/d/live/job?{ROWS}")
    assert (page.status_code, page.headers["refresh"]) == (200, "2")
    assert "waits its turn" in page.text
    file = browser.get(f"/d/live/table.csv?{ROWS}")
    assert (file.status_code, int(file.headers["retry-after"]) > 0) == (503, True)
    said = browser.get(f"/api/v1/datasets/live/table?{ROWS}")
    assert (said.status_code, said.json()["error"]["code"]) == (503, "queued")
    office.run_jobs(site, holder)
    waited(lambda: browser.get(f"/d/live/job?{ROWS}").status_code == 303)
    assert browser.get(f"/d/live/job?{ROWS}").headers["location"] == f"/d/live/table?{ROWS}"
    table = browser.get(f"/d/live/table?{ROWS}")
    assert table.status_code == 200
    # Another process finds it, and it is what a quick site would have shown.
    other = load_site(site).current.dataset("live")
    assert other.is_quick(Question.checked(other.source, Query.parse(ROWS)))
    direct = replace(other, has_queue=False).answer(Query.parse(ROWS)).cube
    csv = browser.get(f"/d/live/table.csv?{ROWS}").text.splitlines()
    assert sorted(int(line.split(",")[2]) for line in csv[1:]) == sorted(direct.values.ravel())


def test_a_visitor_cancels_by_the_page_and_asks_again(open_office):
    holder, office = open_office
    browser = Browser(make_app(holder, office))
    browser.get(f"/d/live/table?{ROWS}")
    place = f"/d/live/job?{ROWS}"
    assert browser.post(place, {"form": "forged"}).status_code == 403
    answer = browser.post(place, {"form": browser.mark(place)})
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    page = browser.get(place)
    assert "was cancelled" in page.text
    assert "refresh" not in page.headers
    assert browser.get(f"/d/live/table?{ROWS}").status_code == 303
    assert "waits its turn" in browser.get(place).text


def test_many_expensive_links_of_one_visitor_take_three_places(open_office):
    holder, office = open_office
    client = Client(make_app(holder, office))
    names = ("place", "age", "sex")
    pairs = [f"rows={a}&columns={b}" for a in names for b in names if a != b]
    found = [client.get(f"/d/live/table?{query}").status_code for query in pairs]
    assert found == [303] * 6  # rows and columns exchanged are the same work
    singles = [client.get(f"/d/live/table?rows={name}").status_code for name in names]
    assert singles == [429] * 3
    assert office.jobs.load() == {"waiting": 3, "running": 0}


def test_a_table_in_the_queue_of_a_site_without_one(open_office):
    holder, _ = open_office
    client = Client(make_app(holder, Office()))
    assert client.get(f"/d/live/table?{ROWS}").status_code == 503
    assert client.get(f"/d/live/job?{ROWS}").status_code == 404
