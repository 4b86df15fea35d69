"""Random requests after the OpenAPI document: no failure of ours, every answer as described."""

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

from discreet.serve import AccountsConfig, Office, SiteConfig, make_app
from tests.serve.sites import small_site

UNLIMITED = SiteConfig(accounts=AccountsConfig(rate=0))
# Names are checked against the data set, so a request of the right form may still be refused.
LEFT_OUT = [schemathesis.checks.positive_data_acceptance]
BOUNDED = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
DETAILS = ["region", "region[county]", "region[part]", "age", "sex"]
TABLES = st.fixed_dictionaries(
    {"rows": st.lists(st.sampled_from(DETAILS), min_size=1, max_size=2, unique=True)},
    optional={
        "columns": st.lists(st.sampled_from(DETAILS), max_size=1),
        "show": st.sampled_from(["count", "row", "column", "total"]),
        "totals": st.sampled_from(["0", "1"]),
        "where.age": st.sampled_from(["0-14", "65+", "Total"]),
        "format": st.sampled_from(["json", "csv", "px", "xlsx", "json-stat", "html"]),
        "page_size": st.integers(1, 50),
        "lang": st.sampled_from(["en", "nb"]),
        "valueCodes[region]": st.sampled_from(["*", "top(2)", "N1-?", "range(N1,S)", "ABROAD"]),
        "codelist[region]": st.sampled_from(["agg_once_region_county", "agg_once_region_part"]),
        "outputFormat": st.sampled_from(["json-stat2", "csv", "px", "xlsx", "parquet"]),
    },
)


@pytest.fixture(scope="module")
def schema():
    app = make_app(small_site(), Office(UNLIMITED))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


@pytest.fixture(scope="module")
def operations(schema):
    return [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_random_requests_get_what_the_document_says(operations, mode, subtests):
    assert len(operations) > 20
    for operation in operations:
        # some operations have nothing that can be wrong
        with subtests.test(msg=operation.label), suppress(Unsatisfiable):
            _check(operation.as_strategy(generation_mode=mode), examples=4)


def test_requests_with_real_names_get_what_the_document_says(operations, subtests):
    answered = []
    for operation in operations:
        if operation.method != "get" or "dataset" not in operation.path:
            continue
        with subtests.test(msg=operation.label):
            real = st.builds(_with_names, operation.as_strategy(), _of(operation))
            _check(real, answered)
    assert answered.count(200) > 20


def _of(operation):
    known = ["rows", "columns", "show", "totals", "where.age"] if "/v1/" in operation.path else []
    own = {p.name for p in operation.query} | {"valueCodes[region]", "codelist[region]"}
    of_tables = "rows" in own

    def kept(query):
        names = own | (set(known) if of_tables else set())
        return {name: value for name, value in query.items() if name in names}

    return TABLES.map(kept)


def _with_names(case, query):
    case.path_parameters["dataset"] = "once"
    if "detail" in case.path_parameters:
        case.path_parameters["detail"] = "region"
    case.query = query
    return case


def _check(strategy, answered=None, examples=8):
    @settings(BOUNDED, max_examples=examples)
    @given(case=strategy)
    def run(case):
        response = case.call_and_validate(excluded_checks=LEFT_OUT)
        if answered is not None:
            answered.append(response.status_code)

    run()


def test_an_answer_that_is_not_as_described_is_found(operations, monkeypatch):
    """The control: the same check on an answer with a wrong entry."""
    monkeypatch.setattr("discreet.serve.api.v1.limits_json", lambda *_: {"title": 3})
    (limits,) = [o for o in operations if o.path.endswith("/limits")]
    with pytest.raises(FailureGroup):
        _check(limits.as_strategy())
