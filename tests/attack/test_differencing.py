"""Two releases that overlap: other areas of the same people, and other people of the same areas."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.attacks import Knowledge
from discreet.attacks.differencing import Differencing
from discreet.errors import ParameterError
from discreet.facade import read_release
from tests.attack.weak_and_sound import blocks_of_people, by_key, plain, two_tables, with_noise
from tests.commands import run

SURE = 0.999


def someone(area):
    """All codes but sex of one of the youngest in some area."""
    return {"area": area, "age": "age0", "work": "work0"}


def claimed(release, earlier, people, **options):
    """What is claimed of each person."""
    known = Knowledge(earlier=(earlier,), people=tuple(people))
    said = Differencing(**options)(release, known, rng=np.random.default_rng(0))
    return dict(zip(said.targets, said.values, strict=True)), said


def found(setting):
    made = dc.attack(setting.table, setting.release, [setting.attack], **setting.options)
    return made["differencing"]


def test_a_zone_less_the_district_inside_it_is_one_block():
    """Block 2 is the only one that district 0 and zone 0 do not share, whoever lives there."""
    districts, zones = blocks_of_people("district"), blocks_of_people("zone")
    counts = districts.y.reshape(60, 6, 5, 2)[:, 0, 0]
    alone = [k for k in range(2, 60, 4) if (counts[k] > 0).sum() == 1]
    assert len(alone) > 2
    said, _ = claimed(plain(districts), plain(zones), [someone(f"block{k}") for k in alone])
    assert said == {j: f"sex{counts[k].argmax()}" for j, k in enumerate(alone)}
    inside, _ = claimed(plain(districts), plain(zones), [someone("block0"), someone("block4")])
    assert inside == {}, "no difference holds a block that both sets of areas treat alike"


def test_a_hidden_figure_leaves_no_difference():
    districts, zones = (plain(blocks_of_people(level)) for level in ("district", "zone"))
    status = np.full(len(zones.z), dc.tables.CellStatus.suppressed, dtype=np.int8)
    said, _ = claimed(districts, replace(zones, status=status), [someone("block2")])
    assert said == {}


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (3, 2, 1, 0)])
def test_the_other_release_may_have_its_variables_in_another_order(order):
    districts, zones = plain(blocks_of_people("district")), blocks_of_people("zone")
    axes = [zones.design.axes[k] for k in order]
    design = dc.Design.product(axes, "area[zone]*age*work*sex")
    turned = zones.y.reshape([len(a) for a in zones.design.axes]).transpose(order).ravel()
    other = dc.Table.from_inner(design, turned)
    people = [someone(f"block{k}") for k in range(60)]
    one, two = (claimed(districts, plain(t), people, variable="sex")[0] for t in (zones, other))
    assert one == two
    assert len(one) > 5


def test_whoever_is_missing_in_the_other_population_is_told():
    """Everybody less those in private households; areas are the same."""
    others = blocks_of_people("district", has_all=False)
    weak = found(two_tables(plain, others, outside=True))
    assert weak.success > 0.95, str(weak)
    assert weak.lift_interval(SURE)[0] > 0, str(weak)
    same = two_tables(plain, others)
    with pytest.raises(ParameterError, match="a part of groups"):
        found(same)


def test_noise_by_one_key_cancels_and_private_noise_does_not():
    """Categories without anybody of the difference have the very same noise on both sides."""
    others = blocks_of_people("district", has_all=False)
    keyed = found(two_tables(by_key, others, outside=True))
    assert keyed.success > 0.6 > keyed.guess, str(keyed)
    low, high = found(two_tables(with_noise, others, outside=True)).lift_interval(SURE)
    assert low <= 0 <= high


def test_what_there_is_nothing_to_attack_in():
    districts = plain(blocks_of_people("district"))
    attack = Differencing()
    assert "no other release" in attack.refusal(districts, Knowledge())
    same = Knowledge(earlier=(districts,))
    assert "a part of groups" in attack.refusal(districts, same)
    assert (
        attack.refusal(districts, replace(same, earlier=(plain(blocks_of_people("zone")),))) == ""
    )
    assert not Differencing(outside=True).refusal(districts, same)
    country = dc.Table.from_inner(dc.Design.product({"a": 3, "b": 2}, "a*b"), np.ones(6, int))
    assert "other variables" in attack.refusal(districts, Knowledge(earlier=(plain(country),)))


def test_the_truth_of_the_other_release_is_needed():
    setting = two_tables(plain, blocks_of_people("zone"))
    del setting.options["before"]
    with pytest.raises(ParameterError, match="true table of each other release"):
        found(setting)


def test_the_command_takes_the_other_release(tmp_path, capsys):
    setting = two_tables(by_key, blocks_of_people("zone"))
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("one", "other", "true", "before")}
    setting.release.save(files["one"])
    setting.options["knowledge"].earlier[0].save(files["other"])
    setting.table.save(files["true"])
    setting.options["before"][0].save(files["before"])
    assert read_release(files["one"]).design.axes[0].name == "area"
    code = run(
        "attack", files["one"], "--truth", files["true"], "-a", "differencing:variable=sex",
        "--earlier", files["other"], "--before", files["before"],
    )  # fmt: skip
    assert not code
    assert "differencing: " in capsys.readouterr().out
