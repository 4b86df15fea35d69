"""A site's file: read with clear errors, built, started, reloaded without dropping a request."""

import itertools
import json
import os
import shutil
import signal
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import discreet as dc
from discreet import Secret
from discreet.cli import main
from discreet.errors import DataError, DiscreetError, ParameterError, UnknownNameError
from discreet.publication import Publication
from discreet.serve import (
    Query,
    Refusal,
    load_site,
    make_app,
    read_site,
    serving,
    site_of,
    start_site,
)
from discreet.serve.build import build, datasets_to_build, open_records_of, origin_of, plan_build
from discreet.serve.data.inner import current_build
from discreet.serve.data.live import GuardedFiles
from discreet.serve.site.start import SiteWatcher
from discreet.tables import DataSet
from tests.commands import run
from tests.serve.client import Client

CODES = """
[sex]
codes = ["f", "m"]
[age]
codes = ["child", "adult", "old"]
[place]
codes = ["a", "b", "c", "d"]
"""


def described(**changes):
    """A site of two data sets over the same records, as plain data."""
    records = {"source": "people.csv", "id": "pid", "codes": "codes.toml", "secret": "keys.secret"}
    once = {
        "title": "People",
        "records": {**records, "edition": "2026"},
        "recipe": {
            "tabulate": {"margins": "place*age*sex"},
            "protect": {"method": "safe", "parameters": {}},
        },
    }
    live = {
        "title": "People on the fly",
        "mode": "on-the-fly",
        "records": records,
        "recipe": {
            "tabulate": {"margins": "place*age*sex"},
            "protect": {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}},
        },
    }
    return {"title": "Ours", "datasets": {"people": once, "live": live}, **changes}


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path)


def written(tmp_path):
    """A folder with records, code lists, a secret and a site's file."""
    rng = np.random.default_rng(1)
    columns = [rng.choice(list(codes), 500) for codes in ("abcd", ["child", "adult", "old"], "fm")]
    lines = [f"{k},{','.join(row)}" for k, row in enumerate(zip(*columns, strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(["pid,place,age,sex", *lines]))
    (tmp_path / "codes.toml").write_text(CODES)
    Secret.from_file(tmp_path / "keys.secret", create=True)
    write(tmp_path)
    return tmp_path


def write(folder, **changes):
    path = folder / "site.toml"
    path.write_text(tomli_w.dumps(described(**changes)))
    return path


def build_all(folder):
    config = read_site(folder / "site.toml")
    for dataset in datasets_to_build(config, stale=True):
        build(config, dataset, open_records_of(config, dataset), again=False)
    return config


def test_a_site_is_built_and_started(folder):
    site = start_site(build_all(folder))
    assert list(site.datasets) == ["people", "live"]
    assert site.dataset("people").edition == "2026"
    tables = [d.answer(Query.parse("rows=place&columns=sex")) for d in site.datasets.values()]
    assert [t.cube.values.shape for t in tables] == [(5, 3), (5, 3)]
    assert [d.source.mode for d in site.datasets.values()] == ["release-once", "on-the-fly"]


def test_a_bit_that_flips_in_place_closes_a_data_set_when_the_site_is_read_again(folder, caplog):
    config = build_all(folder)
    holder = load_site(folder / "site.toml")
    client = Client(make_app(holder))
    table = "/d/people/table?rows=place&columns=sex"
    before = client.get(table)
    values = current_build(config.cache_folder / "people") / "values.npy"
    content = values.read_bytes()
    with values.open("r+b") as file:  # the same file, which the process has mapped into memory
        file.write(content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    holder.reload()
    assert client.get(table).status_code == 503
    assert client.get("/d/live/table?rows=place").status_code == 200
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["failing"]) == (503, ["build"])
    assert "values.npy" in caplog.text
    values.write_bytes(content)
    holder.reload()
    assert client.get(table).content == before.content
    assert client.get("/ready").status_code == 200


@pytest.mark.parametrize("name", ["people.csv", "keys.secret"])
def test_readiness_names_records_that_are_other_ones(folder, name):
    build_all(folder)
    client = Client(make_app(load_site(folder / "site.toml")))
    assert client.get("/ready").json()["failing"] == []
    (folder / name).rename(folder / "elsewhere")
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["failing"]) == (503, ["records"])


def test_what_is_released_once_is_what_the_recipe_gives(folder):
    config = build_all(folder)
    people = start_site(config).dataset("people")
    recipe = config.datasets[0].recipe
    release = recipe.run(open_records_of(config, config.datasets[0]))
    cube = people.answer(Query.parse("rows=age&columns=sex")).cube
    assert cube.values[0, 0] == release.z[release.design.position({})]
    assert cube.values[2, 1] == release.z[release.design.position({"age": "adult", "sex": "f"})]


def test_a_site_that_was_not_built_says_how(folder):
    with pytest.raises(DataError, match="'people'.*has not been built.*discreet build"):
        start_site(read_site(folder / "site.toml"))


@pytest.mark.parametrize("what", ["recipe", "edition", "codes"])
def test_a_stale_build_says_so(folder, what):
    build_all(folder)
    changed = described()
    if what == "recipe":
        changed["datasets"]["people"]["recipe"]["protect"]["parameters"]["min_count"] = 4
    elif what == "edition":
        changed["datasets"]["people"]["records"]["edition"] = "2027"
    else:
        (folder / "codes.toml").write_text(CODES + '[height]\ncodes = ["1"]\n')
    (folder / "site.toml").write_text(tomli_w.dumps(changed))
    with pytest.raises(DataError, match="another recipe, edition or code list"):
        start_site(read_site(folder / "site.toml"))


SAID = {
    "source": "others.csv",
    "name": "others",
    "id": "number",
    "key": "key",
    "keys": "keys.parquet",
    "table": "people",
    "convention": "fractions",
    "editions": "redrawn",
    "random_keys": "drawn.parquet",
    "encoding": "cp1252",
    "decimal": ",",
}


@pytest.mark.parametrize("entry", SAID)
def test_whatever_is_said_of_the_records_makes_another_table(folder, entry):
    before = changed("datasets.people.records.name", "people")
    after = changed("datasets.people.records.name", "people")
    after["datasets"]["people"]["records"][entry] = SAID[entry]
    first, second = (site_of(given, folder).datasets[0] for given in (before, after))
    assert origin_of(first, folder) != origin_of(second, folder)


def test_a_larger_budget_draws_no_table_again(folder):
    given = changed("datasets.people.records.epsilon", 2.0)
    before, after = (site_of(g, folder).datasets[0] for g in (described(), given))
    assert origin_of(before, folder) == origin_of(after, folder)


def test_a_changed_hierarchy_of_a_code_list_makes_the_build_stale(folder):
    places = CODES.replace('[place]\ncodes = ["a", "b", "c", "d"]', '[place]\nhierarchy = "p.csv"')
    (folder / "codes.toml").write_text(places)
    tree = "part,place\nn,a\nn,b\ns,c\ns,d\n"
    (folder / "p.csv").write_text(tree)
    config = build_all(folder)
    assert datasets_to_build(config, stale=True) == []
    (folder / "p.csv").write_text(tree.replace("n,b", "s,b"))
    assert [d.name for d in datasets_to_build(config, stale=True)] == ["people"]
    with pytest.raises(DataError, match="another recipe, edition or code list"):
        start_site(config)


def test_another_secret_makes_the_build_stale(folder):
    config = build_all(folder)
    (folder / "keys.secret").unlink()
    assert datasets_to_build(config, stale=True) == []  # a machine that only serves has no secret
    Secret.from_file(folder / "keys.secret", create=True)
    with pytest.raises(DataError, match="other keys"):
        start_site(config)


def test_a_secret_that_is_gone_is_never_made_anew(folder, capsys):
    config = read_site(folder / "site.toml")
    (folder / "keys.secret").unlink()
    with pytest.raises(DataError, match=r"keys\.secret.*discreet secret make"):
        open_records_of(config, config.datasets[0])
    assert run("check", "site", str(folder / "site.toml")) != 0
    assert "discreet secret make" in capsys.readouterr().err
    assert not (folder / "keys.secret").exists()


def test_the_check_of_a_site_says_what_it_read(folder, capsys):
    def check():
        with pytest.raises(SystemExit) as ended:
            main(["check", "site", str(folder / "site.toml"), "--json"])
        return ended.value.code, json.loads(capsys.readouterr().out)["builds"]

    assert check() == (0, {"people": "not built"})
    config = build_all(folder)
    assert check() == (0, {"people": "whole"})
    place = current_build(config.cache_folder / "people")
    (place / "values.npy").chmod(0o600)
    with (place / "values.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x07")
    code, found = check()
    assert code != 0
    assert found == {"people": "damaged (values.npy)"}
    shutil.rmtree(place)
    code, found = check()
    assert (code != 0, found) == (True, {"people": "missing"})


@pytest.mark.parametrize("gone", [["keys.secret"], ["people.csv"], ["people.csv", "keys.secret"]])
def test_a_machine_that_only_serves_is_told_what_was_not_checked(folder, capsys, gone):
    write(folder, datasets={"people": described()["datasets"]["people"]})
    build_all(folder)
    for name in gone:
        (folder / name).unlink()
    with pytest.raises(SystemExit) as ended:
        main(["check", "site", str(folder / "site.toml")])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "were checked; its build is whole" in said
    assert all(f"no {name}" in said for name in gone)


def test_tables_on_the_fly_need_what_is_gone(folder, capsys):
    """The control: without its secret such a data set cannot answer."""
    write(folder, datasets={"live": described()["datasets"]["live"]})
    (folder / "keys.secret").unlink()
    assert run("check", "site", str(folder / "site.toml")) != 0


def test_a_code_list_that_is_gone_is_a_clear_error(folder):
    config = read_site(folder / "site.toml")
    (folder / "codes.toml").unlink()
    with pytest.raises(DataError, match="there is no code list"):
        origin_of(config.datasets[0], folder)


def test_a_build_that_is_there_is_left_out(folder):
    config = build_all(folder)
    assert datasets_to_build(config, stale=True) == []
    assert [d.name for d in datasets_to_build(config)] == ["people"]
    with pytest.raises(UnknownNameError, match="'live'"):
        datasets_to_build(config, ["live"])


def test_memory_is_stated_beforehand(folder):
    config = read_site(folder / "site.toml")
    plan = plan_build(config.datasets[0], open_records_of(config, config.datasets[0]))
    assert plan.inner == 4 * 3 * 2
    assert "24 inner cells" in plan.text


def test_found_codes_are_refused_before_the_work(folder):
    (folder / "codes.toml").write_text('[sex]\ncodes = ["f", "m"]\n')
    config = read_site(folder / "site.toml")
    with pytest.raises(ParameterError, match="found in the records"):
        plan_build(config.datasets[0], open_records_of(config, config.datasets[0]))
    with pytest.raises(ParameterError, match="'live': .*found in the records"):
        start_site(replace(config, datasets=config.datasets[1:]))


def changed(path, value):
    """The plain site with one entry changed, or taken away."""
    found = described()
    place = found
    *parts, last = path.split(".")
    for part in parts:
        place = place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


BROKEN = [
    ("titel", "Ours", "titel.*Did you mean 'title'"),
    ("title", 3, "title of the site must be a text, got 3"),
    ("title", " ", "must not be empty"),
    ("languages", ["xx"], "no texts in language 'xx'"),
    ("accent", "blue", "a colour such as"),
    ("server.port", 99999, "port must lie in 0..65535"),
    ("server.prot", 80, "Did you mean 'port'"),
    ("datasets", {}, "no data sets"),
    ("datasets.People", {}, "small letters"),
    ("datasets.people.titel", "x", "Did you mean 'title'"),
    ("datasets.people.mode", "once", "release-once, on-the-fly, got 'once'"),
    ("datasets.people.records", None, "needs records"),
    ("datasets.people.recipe", None, "needs a recipe"),
    ("datasets.people.records.sorce", "x", "Did you mean 'source'"),
    ("datasets.people.footnotes", "one", "footnotes .* must be a list"),
    ("datasets.people.policy", {"max_cels": 3}, "Did you mean 'max_cells'"),
    ("datasets.people.policy", {"max_cells": "3"}, "must be a whole number, got '3'"),
    ("policy", {"groups": "some"}, "own, fixed, none"),
    ("policy", [1], r"\[policy\] must be a section"),
    ("policy", {"min_population": float("nan")}, "must be a number, got nan"),
    ("datasets.people.policy", "x", r"\[datasets.people.policy\] must be a section"),
    ("datasets.people.measures", [], "must be a section"),
    ("datasets.people.connections", 0, "connections of 'people' must be at least 1, got 0"),
    ("datasets.people.declared_records", -1, "declared_records of 'people' must be at least 1"),
    ("accounts", {"analysts_only": ["poeple"]}, "analysts_only.*Did you mean 'people'"),
    ("address", "tables.example", "must begin with https://"),
    ("server.root_path", "tables", "must begin with a slash"),
]


@pytest.mark.parametrize(("path", "value", "said"), BROKEN)
def test_mistakes_in_the_file_are_told_clearly(path, value, said):
    with pytest.raises(DiscreetError, match=said):
        site_of(changed(path, value), Path())


def test_a_policy_for_all_data_sets_can_be_changed_for_one():
    given = described(policy={"max_variables": 2, "max_cells": 50})
    given["datasets"]["live"]["policy"] = {"max_cells": 70}
    people, live = site_of(given, Path()).datasets
    assert (people.policy.max_variables, people.policy.max_cells) == (2, 50)
    assert (live.policy.max_variables, live.policy.max_cells) == (2, 70)


def test_a_recipe_may_lie_in_a_file_of_its_own(folder):
    recipe = read_site(folder / "site.toml").datasets[0].recipe
    recipe.write(folder / "recipe.toml")
    given = changed("datasets.people.recipe", "recipe.toml")
    assert site_of(given, folder).datasets[0].recipe == recipe


def test_a_file_that_is_not_there_or_not_toml_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_site(tmp_path / "site.toml")
    (tmp_path / "site.toml").write_text("title = ")
    with pytest.raises(DataError, match="not valid TOML"):
        read_site(tmp_path / "site.toml")


def test_a_reload_exchanges_the_site_and_leaves_requests_their_own(folder):
    build_all(folder)
    holder = load_site(folder / "site.toml")
    before = holder.current
    write(folder, title="Theirs")
    holder.reload()
    assert (before.title, holder.current.title) == ("Ours", "Theirs")
    assert holder.current.dataset("live") is before.dataset("live")
    assert before.dataset("people").answer(Query.parse("rows=sex"))


def test_no_request_is_dropped_while_the_site_is_exchanged(folder):
    build_all(folder)
    holder, done = load_site(folder / "site.toml"), threading.Event()
    titles, exchanged = itertools.cycle(["Ours", "Theirs"]), 0

    def exchange():
        nonlocal exchanged
        while not done.is_set():
            write(folder, title=next(titles))
            holder.reload()
            exchanged += 1

    thread = threading.Thread(target=exchange)
    with serving(make_app(holder)) as address:
        thread.start()
        for k in range(40):
            code = "abcd"[k % 4]
            url = f"{address}d/people/table?rows=age&columns=sex&where.place={code}"
            with urllib.request.urlopen(url, timeout=20) as response:
                assert response.status == 200
        done.set()
        thread.join()
    assert exchanged > 1


def test_a_reload_keeps_closed_what_is_closed(folder):
    build_all(folder)
    holder = load_site(folder / "site.toml")
    holder.current.dataset("people").switch.is_closed = True
    given = changed("datasets.people.title", "People, again")
    (folder / "site.toml").write_text(tomli_w.dumps(given))
    holder.reload()
    assert holder.current.dataset("people").title == "People, again"
    assert holder.current.dataset("people").closed


def test_a_reload_opens_records_again_only_where_they_changed(folder):
    build_all(folder)
    holder = load_site(folder / "site.toml")
    live = holder.current.dataset("live")
    given = changed("datasets.live.policy", {"max_cells": 20})
    (folder / "site.toml").write_text(tomli_w.dumps(given))
    now = holder.reload().dataset("live")
    assert now.policy.max_cells == 20
    assert now.source is live.source
    given["datasets"]["live"]["records"]["edition"] = "2"
    (folder / "site.toml").write_text(tomli_w.dumps(given))
    assert holder.reload().dataset("live").source is not live.source


def live_site(folder, **entries):
    given = described()["datasets"]["live"]
    records = {"name": "people", "edition": "1", "ledger": "ledger.db"}
    given |= {"records": given["records"] | records, **entries}
    (folder / "site.toml").write_text(tomli_w.dumps({"datasets": {"live": given}}))
    return load_site(folder / "site.toml")


def exchange_records(folder):
    """Other records under the old name: one person less."""
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "others.csv").write_text("\n".join(lines[:-1]))
    os.replace(folder / "others.csv", folder / "people.csv")


def test_visitors_are_told_of_corrections_and_withdrawals(folder):
    holder = live_site(folder)
    before = holder.current.dataset("live").about.footnotes
    ledger = dc.Ledger(folder / "ledger.db")
    ledger.correct(DataSet("people", "1"), "1-r1", "A reason of the office.")
    told = holder.reload().dataset("live")
    notice = "Edition 1-r1 has taken the place of this edition."
    assert told.about.footnotes == (notice, *before)


def test_nothing_new_is_made_of_other_records_in_the_same_edition(folder):
    holder = live_site(folder)
    live = holder.current.dataset("live")
    before = live.answer(Query.parse("rows=place&columns=sex")).cube.values
    exchange_records(folder)
    with pytest.raises(Refusal) as caught:
        live.answer(Query.parse("rows=age&columns=sex"))
    assert (caught.value.code, caught.value.status) == ("records_changed", 503)
    again = live.answer(Query.parse("rows=place&columns=sex")).cube.values
    np.testing.assert_array_equal(again, before)
    with pytest.raises(DiscreetError, match="edition"):  # the ledger knows the old records
        holder.reload()


def test_records_that_are_exchanged_while_they_are_counted_are_not_released(folder, monkeypatch):
    live = live_site(folder).current.dataset("live")
    tabulate = Publication.tabulate

    def interrupted(recipe, data, **options):
        exchange_records(folder)
        return tabulate(recipe, data, **options)

    monkeypatch.setattr(Publication, "tabulate", interrupted)
    with pytest.raises(Refusal) as caught:
        live.answer(Query.parse("rows=age&columns=sex"))
    assert caught.value.code == "records_changed"


def test_another_secret_gives_no_second_noise_in_the_same_process(folder):
    live = live_site(folder, connections=2).current.dataset("live")
    (folder / "keys.secret").unlink()
    Secret.from_file(folder / "keys.secret", create=True)
    with pytest.raises(Refusal, match="exchanged"):
        live.answer(Query.parse("rows=age&columns=sex"))


def test_a_new_edition_is_opened_by_a_reload_in_the_old_place(folder):
    holder = live_site(folder)
    before = holder.current.dataset("live")
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join(lines[:400]))
    text = (folder / "site.toml").read_text().replace('edition = "1"', 'edition = "2"')
    (folder / "site.toml").write_text(text)
    now = holder.reload().dataset("live")
    assert now is not before
    assert now.answer(Query.parse("rows=age&columns=sex")).cube.values[0, 0] < 420


def test_kept_cubes_of_other_records_are_not_found(folder):
    kept = {"keep_cubes": True}
    given = described()["datasets"]["live"] | kept
    (folder / "site.toml").write_text(tomli_w.dumps({"datasets": {"live": given}}))
    holder, asked = load_site(folder / "site.toml"), Query.parse("rows=age&columns=sex")
    before = holder.current.dataset("live").answer(asked).cube.values[0, 0]
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join(lines[:300]))
    assert holder.reload().dataset("live").answer(asked).cube.values[0, 0] < before - 100


def test_keys_that_are_drawn_at_the_first_opening_are_no_change(folder):
    records = {"source": "people.csv", "id": "pid", "codes": "codes.toml"}
    records |= {"secret": "keys.secret", "random_keys": "drawn.parquet"}
    live = live_site(folder, records=records).current.dataset("live")
    assert live.answer(Query.parse("rows=age&columns=sex"))
    os.utime(folder / "drawn.parquet", (0, 0))
    with pytest.raises(Refusal, match="exchanged"):
        live.answer(Query.parse("rows=place&columns=sex"))


def test_files_that_come_into_a_folder_are_a_change(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "1.parquet").write_bytes(b"1")
    for name in (str(tmp_path), f"{tmp_path}/*/*.parquet"):
        files = GuardedFiles([name])
        files.check()
        (tmp_path / "part" / f"{len(name)}.parquet").write_bytes(b"2")
        with pytest.raises(Refusal):
            files.check()


def test_a_broken_file_leaves_the_old_site(folder):
    build_all(folder)
    holder = load_site(folder / "site.toml")
    before = holder.current
    write(folder, languages=["xx"])
    with pytest.raises(ParameterError):
        holder.reload()
    assert holder.current is before


def soon(is_true):
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_file_and_the_builds_are_watched(folder, caplog):
    build_all(folder)
    holder = load_site(folder / "site.toml")
    watch = SiteWatcher(holder, folder / "site.toml", seconds=0.02).start()
    try:
        write(folder, title="Theirs")
        soon(lambda: holder.current.title == "Theirs")
        write(folder, title="")
        soon(lambda: "the site stays as it was" in caplog.text)
        write(folder, title="Ours again")
        soon(lambda: holder.current.title == "Ours again")
        before = holder.current.dataset("people")
        config = read_site(folder / "site.toml")
        build(config, config.datasets[0], open_records_of(config, config.datasets[0]), again=False)
        soon(lambda: holder.current.dataset("people") is not before)
        now = holder.current
        os.kill(os.getpid(), signal.SIGHUP)
        soon(lambda: holder.current is not now)
    finally:
        watch.stop()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_the_records_of_a_site_are_opened_as_its_file_says(tmp_path):
    dc.demo.write_parquet(tmp_path / "people.parquet", 300, 1)
    Secret.from_file(tmp_path / "keys.secret", create=True)
    given = described()["datasets"]["live"]
    given["records"] = {
        "source": "people.parquet",
        "id": "person_id",
        "secret": "keys.secret",
        "recode": {"marital": {"MAR": "NEV"}},
        "structural_zeros": [{"sex": ["F"], "marital": ["WID"]}],
    }
    config = site_of({"datasets": {"live": given}}, tmp_path)
    data = open_records_of(config, config.datasets[0])
    assert data.has_keys
    assert data.data_set.name == "people"
    assert origin_of(config.datasets[0], tmp_path) != ""


def private_site(folder):
    given = described()["datasets"]["live"]
    given["records"] |= {"name": "people", "ledger": "ledger.db", "epsilon": 1.0}
    given["recipe"] = {
        "tabulate": {"margins": [["place", "sex"], ["age"]]},
        "protect": {"method": "discrete-laplace", "parameters": {"epsilon": 0.5}},
    }
    (folder / "site.toml").write_text(tomli_w.dumps({"datasets": {"private": given}}))
    return load_site(folder / "site.toml")


def test_private_tables_of_a_site_are_drawn_once_and_their_budget_is_shown(folder):
    client = Client(make_app(private_site(folder)))
    first = client.get("/d/private/table.csv?rows=place&columns=sex").text
    assert (
        "Epsilon 0.5 of 1 was spent; 1 of 2 planned tables" in client.get("/d/private/about").text
    )
    again = Client(make_app(private_site(folder)))  # another process: the same table, no new cost
    assert again.get("/d/private/table.csv?rows=place&columns=sex").text == first
    page = again.get("/d/private/about?lang=nb").text
    assert "Epsilon 0,5 av 1 er brukt" in page
    refused = again.get("/d/private/table?rows=place&columns=age")
    assert refused.status_code == 400
    assert "privacy budget was planned for" in refused.text


def test_reading_about_private_tables_draws_none(folder):
    holder = private_site(folder)
    client, source = Client(make_app(holder)), holder.current.dataset("private").source
    page = client.get("/d/private/about").text
    assert client.get("/api/v1/datasets/private").status_code == 200
    assert (source.budget.spent, source.budget.drawn) == (0, 0)
    assert "Epsilon 0 of 1 was spent; 0 of 2 planned tables" in page


def test_private_tables_of_a_site_need_a_ledger(folder):
    with pytest.raises(ParameterError, match="'private': .*ledger"):
        _without_ledger(folder)


def _without_ledger(folder):
    private_site(folder)
    path = folder / "site.toml"
    path.write_text(
        path.read_text().replace('ledger = "ledger.db"', "").replace("epsilon = 1.0", "")
    )
    return load_site(path)


def test_notes_of_the_policy_stand_under_the_table(folder):
    build_all(folder)
    given = changed("datasets.people.policy", {"threshold": 60})
    (folder / "site.toml").write_text(tomli_w.dumps(given))
    client = Client(make_app(load_site(folder / "site.toml")))
    page = client.get("/d/people/table?rows=place&columns=age&layers=sex").text
    assert "Figures below 60 are not shown." in page
    file = client.get("/d/people/table.csv-metadata.json?rows=place&columns=age&layers=sex").text
    assert "Figures below 60 are not shown." in file


def test_a_survey_is_served_in_steps_of_a_public_weight(folder):
    text = (folder / "people.csv").read_text().splitlines()
    lines = [f"{line},{'w' if k == 0 else 10 + k % 5}" for k, line in enumerate(text)]
    (folder / "people.csv").write_text("\n".join(lines))
    given = described()["datasets"]["live"]
    given["records"] |= {"weight": "w", "mean_weight": 12}
    given["recipe"]["protect"] |= {"unit": "weight"}
    given["recipe"]["protect"]["parameters"]["grid"] = 15
    site = start_site(site_of({"datasets": {"live": given}}, folder))
    answer = site.dataset("live").answer(Query.parse("rows=place&columns=sex"))
    assert answer.cube.unit == "weight"
    assert not (answer.cube.values % 15).any()
    assert 5_000 < answer.cube.values[0, 0] < 7_000
