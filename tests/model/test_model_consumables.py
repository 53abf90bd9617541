"""Consumables in words: their units and holders, and names that `qsub -l` reads as something else."""

import pytest

from nqspy.model import consumables
from nqspy.model.consumables import Consumable, device_of, offline_of, units_of, vendor_of, wrong
from nqspy.model.health import ResourceState
from nqspy.model.ids import Instant
from nqspy.model.machine import Device, Found
from nqspy.model.options import RESOURCE_NAMES, resource_named

CARDS = Found(devices=(Device("nvidia", "0"), Device("nvidia", "2"), Device("amd", "0")))


@pytest.mark.parametrize(
    ("consumable", "units"),
    [
        (Consumable("x", ("a", "b")), ("a", "b")),
        (Consumable("x", count=3), ("0", "1", "2")),
        (Consumable("x", ("auto",), env="CUDA_VISIBLE_DEVICES"), ("0", "2")),
        (Consumable("x", ("auto",), env="HIP_VISIBLE_DEVICES"), ("0",)),
        (Consumable("x", ("auto",)), ()),
    ],
)
def test_units_are_named_counted_or_found(consumable, units):
    assert units_of(consumable, CARDS) == units


def test_one_makers_devices_need_no_variable_to_be_meant():
    assert vendor_of(Consumable("x", ("auto",)), Found(devices=(Device("amd", "0"),))) == "amd"
    named = Consumable("x", ("0", "1", "2"), env="CUDA_VISIBLE_DEVICES")
    assert device_of(named, "2", CARDS) == Device("nvidia", "2")
    assert device_of(named, "1", CARDS) is None


def test_offline_are_those_set_and_those_broken():
    gpu = Consumable("gpu", count=4, offline=("3", "9"))
    states = {"gpu[1]": ResourceState("broken", Instant(1)), "gpu[2]": ResourceState("ok", Instant(1))}
    assert offline_of(gpu, CARDS, states) == ["1", "3"]
    assert offline_of(gpu, CARDS, {}) == ["3"]


def test_what_another_took_meanwhile_is_not_given_back():
    held = {}
    consumables.hold(held, 1, (("gpu", ("0", "1")),))
    consumables.hold(held, 2, (("gpu", ("1",)),))
    consumables.release(held, 1, (("gpu", ("0", "1")),))
    assert held == {"gpu": {"1": 2}}
    consumables.release(held, 2, (("gpu", ("1",)),))
    assert held == {}


@pytest.mark.parametrize(
    ("holders", "held", "away"),
    [
        ([(1, (("gpu", ("0",)),), (("gpu", 2),))], {"gpu": {"0": 1}}, {}),
        ([(1, (("gpu", ("0", "0")),), (("gpu", 2),))], {"gpu": {"0": 1}}, {}),
        ([(1, (("gpu", ("0",)),), (("gpu", 1),)), (2, (("gpu", ("0",)),), (("gpu", 1),))],
         {"gpu": {"0": 2}}, {}),
        ([], {"gpu": {"0": 1}}, {}),
        ([(1, (("gpu", ("0",)),), (("gpu", 1),))], {"gpu": {"0": 1}}, {"gpu": {"0": 0}}),
        ([(1, (("gpu", ("0",)),), (("gpu", 1),))], {"gpu": {"0": 1}}, {"gpu": {"0": 3}}),
    ],
)  # fmt: skip
def test_impossible_holders_are_reported(holders, held, away):
    assert list(wrong(holders, held, away))


def test_a_holder_of_before_may_keep_what_went_offline():
    held = {"gpu": {"0": 1}}
    assert not list(wrong([(1, (("gpu", ("0",)),), (("gpu", 1),))], held, {"gpu": {"0": 1, "1": 0}}))


SLIPS = ["waltime", "walltmie", "wallltime", "walktime", "ncpu", "nodse"]
FREE = ["gpu", "gpus", "ngpus", "matlab", "fpga", "barrier", "men", "fil", "licence"]


@pytest.mark.parametrize("name", [*RESOURCE_NAMES, *SLIPS, *FREE])
def test_known_names_and_their_slips_are_taken_and_others_are_free(name):
    assert bool(resource_named(name)) == (name not in FREE)
