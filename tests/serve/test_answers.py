"""Every figure of an answer is a sum of protected cells, in either mode."""

import pytest

from discreet.serve.query import Query


@pytest.mark.parametrize("name", ["once", "live"])
def test_a_table_comes_back(site, name):
    answer = site.dataset(name).answer(Query.parse("rows=region&columns=sex&where.age=0-14"))
    assert answer.cube.values.shape == (12, 3)


def test_over_http(client):
    r = client.get("/d/once/table?rows=region&columns=sex&show=row")
    assert r.status_code == 200, r.text
    assert client.get("/d/once/table?rows=regoin").status_code == 400
    assert client.get("/api/nothing").json()["error"]["code"] == "not_found"
