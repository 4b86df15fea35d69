import pytest

from tests.publication.office import found_office


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found_office(tmp_path)
    return tmp_path
