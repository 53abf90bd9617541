"""Consumables under a real daemon: device files and /sys in a folder; the variable, offline units, kills.

The last test is for machines with GPUs, and skipped on others."""

import re
from pathlib import Path

import pytest
from daemon.live import Live, until

from nqspy.daemon import devices

SITE = """\
set machine pes=4
create batch_queue batch workdir=submit
enable queue batch
start queue batch
set default queue = batch
create consumable gpu units=auto env=CUDA_VISIBLE_DEVICES
create consumable matlab count=2
"""
GO = "while [ ! -e go ]; do sleep 0.05; done"


def make_devices(root: Path, nvidia: int = 0, amd: int = 0) -> None:
    """Make device files, and what the kernel shows of them."""
    for n in range(nvidia):
        _write(root / f"dev/nvidia{n}")
        place = f"0000:{n:02x}:00.0"
        _write(root / f"proc/driver/nvidia/gpus/{place}/information", f"Model: \t X\nDevice Minor: \t {n}\n")
        _write(root / f"sys/bus/pci/devices/{place}/numa_node", f"{n % 2}\n")
    for extra in ("nvidiactl", "nvidia-uvm") if nvidia else ():
        _write(root / "dev" / extra)
    for n in range(amd):
        _write(root / f"dev/dri/renderD{128 + n}")
        _write(root / f"sys/class/drm/renderD{128 + n}/device/vendor", "0x1002\n")
        _write(root / f"sys/class/drm/renderD{128 + n}/device/local_cpulist", "0-1\n")
    _write(root / "sys/devices/system/node/node0/cpulist", "0-1\n")
    _write(root / "sys/devices/system/node/node1/cpulist", "2-3\n")


def _write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def lab(make_live, tmp_path) -> Live:
    """Return a server with four NVIDIA GPUs, not yet started."""
    live = make_live().site(SITE)
    make_devices(tmp_path / "root", nvidia=4)
    live.environment[devices.ROOT] = str(tmp_path / "root")
    return live


def shown(live: Live) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in live.shown("show consumables")}


# ---------------------------------------------------------------- what is found
def test_devices_are_found_by_their_files_and_what_the_kernel_tells_oddly_is_nothing(tmp_path):
    make_devices(tmp_path, nvidia=2, amd=1)
    found = devices.found({devices.ROOT: str(tmp_path)})
    assert [(each.vendor, each.unit, each.files, each.cpus) for each in found] == [
        ("nvidia", "0", ("/dev/nvidia0",), (0, 1)),
        ("nvidia", "1", ("/dev/nvidia1",), (2, 3)),
        ("amd", "0", ("/dev/dri/renderD128",), (0, 1)),
    ]
    for odd in ("", "0-", "x", "-1", "0-99999999999"):
        (tmp_path / "sys/devices/system/node/node0/cpulist").write_text(odd)
        assert devices.found({devices.ROOT: str(tmp_path)})[0].cpus == ()


def test_render_nodes_of_others_are_none_and_an_empty_machine_has_none(tmp_path):
    assert devices.found({devices.ROOT: str(tmp_path)}) == ()
    make_devices(tmp_path, amd=2)
    (tmp_path / "sys/class/drm/renderD128/device/vendor").write_text("0x8086\n")
    assert [each.files for each in devices.found({devices.ROOT: str(tmp_path)})] == [("/dev/dri/renderD129",)]
    (tmp_path / "sys/class/drm/renderD128/device/vendor").unlink()
    assert len(devices.found({devices.ROOT: str(tmp_path)})) == 1
    _write(tmp_path / "dev/kfd")
    assert len(devices.found({devices.ROOT: str(tmp_path)})) == 2


def test_where_the_driver_is_silent_the_order_of_addresses_tells_which_is_near_to_what(tmp_path):
    make_devices(tmp_path, nvidia=2)
    for n in range(2):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{n:02x}:00.0/information").unlink()
    assert [each.cpus for each in devices.found({devices.ROOT: str(tmp_path)})] == [(), ()]
    for n in range(2):
        _write(tmp_path / f"sys/bus/pci/devices/0000:{n:02x}:00.0/vendor", "0x10de\n")
        _write(tmp_path / f"sys/bus/pci/devices/0000:{n:02x}:00.0/class", "0x030200\n")
    _write(tmp_path / "sys/bus/pci/devices/0000:00:00.1/vendor", "0x10de\n")
    _write(tmp_path / "sys/bus/pci/devices/0000:00:00.1/class", "0x040300\n")
    assert [each.cpus for each in devices.found({devices.ROOT: str(tmp_path)})] == [(0, 1), (2, 3)]


# ---------------------------------------------------------------- a life with them
def test_the_variable_names_the_units_and_a_kill_changes_nothing(lab):
    live = lab.start()
    message = live.qmgr("create consumable card units=auto env=ROCR_VISIBLE_DEVICES").ok().out
    assert message == "card: found no device\n"
    live.qmgr("set consumable gpu offline=(2)").ok()
    tell = "echo ${CUDA_VISIBLE_DEVICES-unset}"
    first = live.submit(f"{tell} > a; {GO}", consumables={"gpu": 1, "matlab": 1})
    second = live.qsub(f"{tell} > b; {GO}\n", "-l", "gpus=2")
    none = live.submit(f"{tell} > c", environment={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert (live.text("a"), live.text("b"), live.text("c")) == ("0\n", "1,3\n", "\n")
    live.running(first)
    live.running(second)
    assert live.job(first)["requested"]["consumables"] == {"gpu": 1, "matlab": 1}
    assert live.job(first)["units"] == {"gpu": ["0"], "matlab": ["0"]}
    assert live.job(second)["units"] == {"gpu": ["1", "3"]}
    assert live.job(none)["units"] == {}
    gpu = {"name": "gpu", "units": ["0", "1", "2", "3"], "offline": ["2"],
           "used": {"0": first, "1": second, "3": second}}  # fmt: skip
    assert shown(live)["gpu"] == gpu
    waits = live.qsub(f"{tell} > d\n", "--gpus", "1")
    live.waits(waits, f"0 of 4 are free; held by {first}, {second}; offline: 2")
    assert live.why(waits)["reason"]["code"] == "NO_UNITS"
    live.kill()
    live.start()
    assert shown(live)["gpu"] == gpu
    live.until(waits, lambda job: job["reason"], "wait")
    assert live.job(waits)["state"] == "queued"
    live.qmgr("set consumable gpu offline=()").ok()
    assert live.text("d") == "2\n"
    (live.work / "go").touch()
    assert [live.ended(each)["exit_status"] for each in (first, second, waits)] == [0, 0, 0]
    assert live.ended(second)["units"] == {"gpu": ["1", "3"]}
    assert shown(live)["gpu"]["used"] == {}


def test_a_probe_takes_a_broken_unit_out_and_gives_it_back(lab):
    live = lab.start()
    (live.work / "sick").write_text("1\n")
    command = f"! grep -qx $NQSPY_UNIT {live.work}/sick || {{ echo Xid 79; false; }}"
    live.qmgr(f'create probe check units=gpu command="{command}" every=0.1 fails=1 recovers=1').ok()
    until(lambda: shown(live)["gpu"]["offline"] == ["1"], "unit 1 is out")
    states = {row["name"]: (row["state"], row["text"]) for row in live.shown("show probes")}
    assert states["gpu[1]"] == ("broken", "Xid 79")
    assert re.search(r"gpu\[1\] \[broken\] since .*Xid 79", live.qmgr("show probes").ok().out)
    id = live.submit("echo $CUDA_VISIBLE_DEVICES > given", consumables={"gpu": 3})
    assert live.text("given") == "0,2,3\n"
    assert live.ended(id)["exit_status"] == 0
    (live.work / "sick").write_text("")
    until(lambda: shown(live)["gpu"]["offline"] == [], "unit 1 is well again")


@pytest.mark.skipif(not devices.found({}), reason="this machine has no GPU")
def test_real_devices(make_live):
    live = make_live().site(SITE.replace(" env=CUDA_VISIBLE_DEVICES", " env=" + _variable())).start()
    there = [each.unit for each in devices.found({}) if each.vendor == devices.found({})[0].vendor]
    assert shown(live)["gpu"]["units"] == there
    live.submit(f"echo ${_variable()} > given", consumables={"gpu": 1})
    assert live.text("given").strip() in there


def _variable() -> str:
    return "CUDA_VISIBLE_DEVICES" if devices.found({})[0].vendor == "nvidia" else "ROCR_VISIBLE_DEVICES"
