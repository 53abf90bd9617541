"""Devices of consumables: what a job may open is what it holds, where the kernel keeps the rest from it."""

import os
import stat

import pytest
from executors.conftest import kept

from nqspy.executors import device_filter
from nqspy.model.actions import Start
from nqspy.model.consumables import Consumable
from nqspy.model.machine import Device, Found

FULL, ZERO = os.makedev(1, 7), os.makedev(1, 5)
"""Devices that every machine has, in the place of GPUs."""


@pytest.fixture
def nodes(tmp_path):
    """Device files of two GPUs."""
    made = []
    for n, number in enumerate((FULL, ZERO)):
        path = tmp_path / f"nvidia{n}"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, number)
            path.open("rb").close()
        except OSError:
            pytest.skip("no device file can be made here, or be used")
        made.append(path)
    return made


def give(bench, nodes, variable="CUDA_VISIBLE_DEVICES"):
    """The site gives these two out as GPUs."""
    numbers = ("1:7", "1:5")
    devices = tuple(Device("nvidia", str(n), (str(path),), (), (numbers[n],)) for n, path in enumerate(nodes))
    bench.site.found = Found(bench.site.found.cpus, 0, devices=devices)
    bench.site.settings.consumables["gpu"] = Consumable("gpu", ("auto",), env=variable)


def run(bench, script, *units):
    """What a job that holds these units says."""
    request = bench.request(f"({script}) > out 2>&1")
    held = (("gpu", units),) if units else ()
    bench.executor.do(Start(request.seq, 1, (0,), units=held), request, bench.site, 0)
    bench.ending(request)
    return (bench.work / "out").read_text()


def look(nodes):
    """A script that tries to open each."""
    return "echo $CUDA_VISIBLE_DEVICES;" + "".join(f"(: < {path}) && echo {path.name};" for path in nodes)


@pytest.mark.parametrize("kind", ["cgroup2", "cgroup1"])
def test_a_job_opens_the_devices_it_holds_and_no_other(make_bench, nodes, kind):
    if not kept("devices", kind):
        pytest.skip(f"no devices can be kept from a job by {kind} here")
    bench = make_bench(cage=kind)
    give(bench, nodes)
    assert "nvidia0\nnvidia1\n" not in run(bench, look(nodes))
    said = run(bench, look(nodes), "1").splitlines()
    assert said[0] == "0", "the only one that it can open is the first that its programs see"
    assert said[-1] == "nvidia1"
    assert "not permitted" in said[1]
    assert run(bench, look(nodes), "0", "1") == "0,1\nnvidia0\nnvidia1\n"


def test_without_a_cgroup_the_variable_tells_the_units_as_they_are_called(make_bench, nodes):
    bench = make_bench(cage="none")
    give(bench, nodes)
    assert run(bench, "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $NQSPY_UNITS", "1") == (
        "1 PCI_BUS_ID gpu=1\n"
    )
    assert run(bench, 'echo "[${CUDA_VISIBLE_DEVICES-unset}] ${NQSPY_UNITS-unset}"') == "[] unset\n"


def test_devices_that_are_not_this_machines_keep_their_names(make_bench, tmp_path):
    bench = make_bench()
    give(bench, [tmp_path / "nvidia0", tmp_path / "nvidia1"])
    assert run(bench, "echo $CUDA_VISIBLE_DEVICES", "1") == "1\n"


def test_what_is_no_cgroup_cannot_be_kept_from_devices(tmp_path):
    assert not device_filter.deny(str(tmp_path), [], keep=False)
    assert not device_filter.deny(str(tmp_path), ["1:7"])
    assert not device_filter.deny(str(tmp_path / "none"), ["1:7"])
    assert not device_filter.deny(str(tmp_path), ["x:y"])
