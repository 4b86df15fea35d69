"""Languages of a site's own folder: texts of pages, and labels of variables and categories."""

import json
import re
from dataclasses import replace

import pytest

from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.serve import SiteConfig, make_app
from discreet.serve.web.texts import read_texts
from tests.serve.client import Client
from tests.serve.sites import small_site

OWN = """
[pages.catalogue]
build = "Bygg din egen tabell"

[datasets.once]
title = "Et lite land"

[variables]
sex = "kjønn"
region = "landsdel"

[codes.sex]
T = "Alle"
F = "Kvinner"
M = "Menn"
"""
QUERY = "rows=region[part]&columns=sex"


def site_in(folder, text=OWN, code="nb"):
    (folder / "texts").mkdir(exist_ok=True)
    (folder / "texts" / f"{code}.toml").write_text(text, encoding="utf-8")
    return small_site(folder=folder, languages=tuple(dict.fromkeys(("en", "nb", code))))


@pytest.fixture
def client(tmp_path):
    return Client(make_app(site_in(tmp_path)))


def test_pages_and_labels_are_those_of_the_folder(client):
    page = client.get(f"/d/once/table?{QUERY}", headers={"Accept-Language": "nb"}).text
    assert "Kvinner" in page
    assert "Landsdel" in page
    assert "Et lite land" in page
    assert "Bygg din egen tabell" in client.get("/?lang=nb").text
    english = client.get(f"/d/once/table?{QUERY}").text
    assert "Women" in english
    assert "Kvinner" not in english


def test_figures_are_the_same_in_every_language(client):
    files = [client.get(f"/d/once/table.csv?{QUERY}&lang={lang}").text for lang in ("en", "nb")]
    assert files[0] == files[1]
    told = [
        client.get(f"/d/once/table.csv?{QUERY}&labels=labels&lang={x}").text for x in ("en", "nb")
    ]
    assert '"Women"' in told[0]
    assert '"Kvinner"' in told[1]
    values = [re.findall(r"\d+$", text, re.MULTILINE) for text in told]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    "path",
    [
        "/api/pxweb/v2/tables/once/metadata?lang=nb",
        "/api/v1/nb/tables/once",
        "/api/v1/datasets/once/variables/sex?lang=nb",
        f"/api/v1/datasets/once/table?{QUERY}&lang=nb",
    ],
)
def test_programs_get_the_labels_of_their_language(client, path):
    assert "Kvinner" in json.dumps(client.get(path).json(), ensure_ascii=False)
    other = path.replace("lang=nb", "lang=en").replace("/nb/", "/en/")
    assert "Kvinner" not in client.get(other).text


def test_what_is_kept_in_memory_is_shared(tmp_path):
    site = site_in(tmp_path)
    spoken = site.in_language("nb")
    assert spoken.dataset("live").switch is site.dataset("live").switch
    assert not spoken.dataset("live").is_at_hand(("sex",), "count")
    site.dataset("live").cube(("sex",), "count")
    assert spoken.dataset("live").is_at_hand(("sex",), "count")
    assert site.in_language("en") is site


def test_a_new_language_is_a_whole_file(tmp_path):
    with pytest.raises(ParameterError, match="no texts in language 'sv'"):
        SiteConfig(languages=("en", "sv"), folder=tmp_path)
    site = site_in(tmp_path, "[pages.catalogue]\nbuild = 'Bygg en tabell'\n", "sv")
    with pytest.raises(DataError, match="lacks .* texts of pages"):
        _ = site.language("sv").texts
    import tomli_w

    whole = {"pages": {k: v for k, v in read_texts("en").items() if k != "said"}}
    whole["pages"]["catalogue"]["build"] = "Bygg en tabell"
    whole["pages"]["name"] = "Svenska"
    client = Client(make_app(site_in(tmp_path, tomli_w.dumps(whole), "sv")))
    page = client.get("/?lang=sv").text
    assert "Bygg en tabell" in page
    assert "Svenska" in page


def test_names_that_mean_nothing_are_refused(tmp_path):
    site = site_in(tmp_path, "[pages.catalogue]\nbuildd = 'x'\n")
    with pytest.raises(UnknownNameError, match="buildd"):
        _ = site.language("nb").texts
    wrong = site_in(tmp_path, "[datasets.once]\ntitel = 'x'\n")
    with pytest.raises(UnknownNameError, match="titel"):
        replace(wrong).in_language("nb")
