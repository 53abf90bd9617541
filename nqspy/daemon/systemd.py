"""Running under systemd: the unit file, readiness and watchdog (sd_notify(3)), levels of the journal."""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from nqspy.model.errors import BadValue

UNIT = """\
# nqsd as a service of systemd. Written by: nqsd unit{words}
[Unit]
Description=nqspy batch queues ({home})
Documentation=man:systemd.service(5)
After=network.target nss-user-lookup.target remote-fs.target time-sync.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={command} run --home {home}
ExecStop={command} stop --home {home}
Restart=on-failure
RestartSec=5
WatchdogSec=120
TimeoutStartSec=300
# Shepherds and their requests outlive the daemon: a restart adopts them, nothing is lost.
KillMode=process
Delegate=yes
OOMPolicy=continue
OOMScoreAdjust=-500
LimitNOFILE=65536
TasksMax=infinity
UMask=0077
{rights}
# Requests run in this service's namespaces: what would change what they may do or see is left alone.
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=no
ProtectControlGroups=no
RestrictNamespaces=no
LockPersonality=no
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap

[Install]
WantedBy={target}
"""
"""Text of the unit file. It does not harden what would also restrict the users' requests, its children."""

_ROOT = """\
# To start requests as their submitters, hold them to their limits and end them, and no more.
CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_KILL CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_PTRACE CAP_SYS_ADMIN
CapabilityBoundingSet=CAP_AUDIT_WRITE CAP_NET_BIND_SERVICE CAP_NET_RAW
"""
_USER = "NoNewPrivileges=yes\n"


def unit(home: str, *, user: bool = False, words: str = "") -> str:
    """Return the text of a unit file; ``user``: for a user's own systemd; ``words``: options of `nqsd unit`
    to show in it. Raises BadValue for a path that a unit file cannot hold."""
    command = str(Path(sys.executable).parent / "nqsd")
    for path in (home, command):
        if any(c in path for c in " \t\n\"'\\%$"):
            raise BadValue(
                f"{path!r} cannot stand in a unit file: blanks, quotes, %, $ and \\ mean something there"
            )
    return UNIT.format(
        home=home, command=command, words=words, rights=_USER if user else _ROOT,
        target="default.target" if user else "multi-user.target",
    )  # fmt: skip


def notify(text: str) -> None:
    """Send a datagram to systemd's ``$NOTIFY_SOCKET``; do nothing if there is none, or if that fails."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect("\0" + path[1:] if path.startswith("@") else path)
            sock.sendall(text.encode())


class Watchdog:
    """Reports to systemd every ``period`` seconds that the loop is alive (None: not watched)."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        value, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        watched = value.isdigit() and int(value) > 0 and pid in ("", str(os.getpid()))
        self.period = int(value) / 3e6 if watched else None
        self._next = 0.0

    def timeout(self) -> float | None:
        """Return the most seconds that the loop may wait for its inbox; None without a watchdog."""
        return None if self.period is None else max(0.0, self._next - time.monotonic())

    def beat(self) -> None:
        """Report to systemd that the loop is alive, if that is due."""
        if self.period is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.period
            notify("WATCHDOG=1")
