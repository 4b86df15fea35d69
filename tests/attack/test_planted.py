"""Every registered attack succeeds on a planted weak release, and finds nothing in a sound one."""

import pytest

import discreet as dc
from discreet import registry
from discreet.attacks.scoring import Tally
from tests.attack.weak_and_sound import SETTINGS

SURE = 0.999
"""A sound release would look weak in at most one of a thousand draws of each setting."""
FOUND = 0.95
"""A weak release is told where its lift is above zero at this level, and above the bound itself."""
FEW = 5
"""Claims below which the weak setting is judged by the lift itself, not by its interval."""


def found(name, setting):
    chosen = setting.attack or name
    return dc.attack(setting.table, setting.release, [chosen], **setting.options)[name]


def test_every_registered_attack_has_both_settings():
    assert set(SETTINGS) == set(registry.ATTACKS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_weak_release_is_told(name, record_property):
    weak, _, least = SETTINGS[name]
    finding = found(name, weak())
    record_property("weak", str(finding))
    assert finding.lift > least, str(finding)
    if finding.judged.claims >= FEW:
        assert finding.is_above(FOUND), str(finding)
    assert finding.remedy
    assert not isinstance(finding.baseline, Tally) or finding.beside != "guessing"


@pytest.mark.parametrize("name", SETTINGS)
def test_a_sound_release_is_not(name, record_property):
    _, sound, _ = SETTINGS[name]
    finding = found(name, sound())
    record_property("sound", str(finding))
    low, high = finding.lift_interval(SURE)
    assert low <= 0 <= max(high, 0), str(finding)
    assert not finding.fixed
