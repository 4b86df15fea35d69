"""SDMX-CSV: values, observation status and confidentiality in columns of their own."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.design.release import CellStatus, Release
from discreet.design.statement import Statement
from discreet.errors import ConfidentialError, ParameterError


@pytest.fixture
def release():
    frame = pd.DataFrame({"sex": ["f", "m"], "age": ["1", "1"], "n": [3, 10]})
    table = dc.Table.from_counts(frame, "n", [("sex",), ()])
    status = np.array([CellStatus.suppressed, CellStatus.structural_zero, CellStatus.published])
    return Release(table.design, table.z, Statement(()), "count", status=status.astype(np.int8))


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_hidden_values_are_empty_and_say_so(release, tmp_path):
    path = tmp_path / "t.csv"
    text = release.to_sdmx_csv("EX:PEOPLE(1.0)", path)
    assert path.read_text() == text
    first, second, total = rows(text)
    flow = {"DATAFLOW": "EX:PEOPLE(1.0)"}
    assert first == flow | {"sex": "f", "OBS_VALUE": "", "OBS_STATUS": "Q", "CONF_STATUS": "C"}
    assert second == flow | {"sex": "m", "OBS_VALUE": "", "OBS_STATUS": "M", "CONF_STATUS": "F"}
    assert total["OBS_VALUE"] == "13"
    assert (total["OBS_STATUS"], total["CONF_STATUS"]) == ("A", "F")


def test_a_release_without_gaps_is_free(release):
    whole = release.with_parts()
    assert {r["CONF_STATUS"] for r in rows(whole.to_sdmx_csv("EX:PEOPLE(1.0)"))} == {"F"}


def test_data_flows_have_agency_id_and_version(release):
    with pytest.raises(ParameterError, match="agency, id and version"):
        release.to_sdmx_csv("people")


def test_trials_are_not_exported(release):
    from discreet.design.release import Trial
    from discreet.release.sdmx_csv import write_sdmx_csv

    with pytest.raises(ConfidentialError):
        write_sdmx_csv(Trial.holding(release), "EX:PEOPLE(1.0)", None)


def test_printed_tables_say_that_a_figure_is_confidential(release):
    lines = repr(release).splitlines()
    assert lines[2].split() == ["f", ":c"]
    assert lines[4].split() == ["Total", "13"]
    assert ":c" in release._repr_html_()
