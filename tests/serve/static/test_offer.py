"""What files cannot keep is refused before anything is written, all of it at once."""

import json

import pytest

from discreet.errors import DataError, ParameterError
from discreet.serve import AccountsConfig, DatasetInfo, Policy, Site, SiteConfig, write_site
from discreet.serve.site.config import DatasetConfig
from discreet.serve.static import cells
from discreet.serve.static.offer import require_static
from tests.serve.sites import ONCE, once, small_site
from tests.serve.static.sites import static_site


def dataset(mode="release-once", measures=(), **policy):
    given = {"policy": Policy(**policy), "measures": dict.fromkeys(measures)}
    return DatasetConfig("census", DatasetInfo(), None, ONCE, mode, **given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (dataset("on-the-fly"), "on the fly"),
        (dataset(measures=["turnover"]), "measures .turnover."),
        (dataset(min_population=10.0), "min_population = 10.0"),
        (dataset(min_mean_cell=1.0), "min_mean_cell"),
        (dataset(k_anonymity=3.0), "k_anonymity"),
        (dataset(l_diversity=2.0, sensitive=("sex",)), "l_diversity"),
        (dataset(t_closeness=0.5, sensitive=("sex",)), "t_closeness"),
        (dataset(min_difference=3.0), "min_difference"),
        (dataset(max_sparsity=0.5, area="region"), "max_sparsity"),
        (dataset(forbidden=(("age", "sex"),)), "forbidden"),
        (dataset(public_parameters=("max_cells",)), "keeps max_variables back"),
    ],
)
def test_what_needs_a_server_is_refused_by_its_name(given, named):
    with pytest.raises(ParameterError, match=named):
        require_static(SiteConfig(), [given])


def test_everything_that_needs_a_server_is_listed_at_once():
    config = SiteConfig(accounts=AccountsConfig(who="tokens", analysts_only=("census",)))
    with pytest.raises(ParameterError) as refused:
        require_static(config, [dataset("on-the-fly", k_anonymity=3.0)])
    said = str(refused.value)
    assert said.count("\n  - ") == 4
    assert "who = 'tokens'" in said
    assert "analysts_only = census" in said


def test_rules_that_present_stay():
    presenting = dataset(max_variables=2, max_cells=50, groups="none", threshold=5.0)
    require_static(SiteConfig(), [presenting])


def test_a_data_set_on_the_fly_writes_nothing(tmp_path):
    with pytest.raises(DataError, match="'live' is not released once"):
        write_site(small_site(), tmp_path)
    assert not (tmp_path / "site.json").exists()


def test_a_folder_with_other_files_is_refused(tmp_path):
    """Whoever hands the site out would hand out what lies beside it, a secret for one."""
    site = Site(small_site().config, {"once": once()})
    (tmp_path / "keys.secret").write_text("x")
    with pytest.raises(DataError, match=r"other files \(keys.secret\).* Name an empty folder"):
        write_site(site, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["keys.secret"]
    (tmp_path / "keys.secret").unlink()
    (tmp_path / "files").mkdir()  # of a build that was stopped
    write_site(site, tmp_path)
    write_site(site, tmp_path)


def cell_names(site, folder):
    write_site(site, folder)
    told = json.loads((folder / json.loads((folder / "site.json").read_text())["site"]).read_text())
    return {
        name: json.loads((folder / entry["cells"]).read_text())["files"]
        for name, entry in told["datasets"].items()
    }


def test_no_file_crosses_more_than_the_limits_allow(tmp_path):
    names = cell_names(static_site(), tmp_path)
    assert "region*age*sex" in names["once"]
    assert max(name.count("*") for name in names["fixed"]) == 1
    assert "region*age*sex" not in names["small"]


def test_more_crossings_than_small_files_can_be_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "MOST_FILES", 5)
    site = Site(small_site().config, {"once": once()})
    with pytest.raises(DataError, match="15 crossings within its limits.* max_variables"):
        write_site(site, tmp_path)


def test_a_variable_that_is_not_on_offer_is_in_no_file(tmp_path):
    table = once().source.table
    hidden = once(source=type(once().source)(table, ["region[county]", "age"]))
    write_site(Site(small_site().config, {"once": hidden}), tmp_path, parquet=True)
    public = cells.public_table(hidden, table)
    assert [axis.name for axis in public.axes] == ["region", "age"]
    assert len(public.axes[0]) < len(table.axis("region"))
    assert public.values.sum() == table.values.sum()
    assert not [
        p
        for p in tmp_path.rglob("*")
        if p.is_file() and b"sex" in p.read_bytes() and p.suffix in (".parquet", ".bin")
    ]
