"""The client library: ``from nqspy import Client``.

    with Client() as nqs:
        request = nqs.submit("#!/bin/sh\nhostname\n", queue="normal", cpu="10:00", memory="32mw")
        print(request.id, request.wait()["ok"])

Times are seconds or texts such as ``10:00``, sizes bytes or texts such as ``32mw``; errors are those of
`nqspy.errors`. Directives in a script are the business of the ``qsub`` command: here options are arguments.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from nqspy.model.errors import BadValue, NqspyError, Refusal, Unreachable
from nqspy.rpc.home import STOPPED, DaemonSocket, nobody_there, resolve_home, socket_path, standing
from nqspy.rpc.submission import Options, given, need, submission
from nqspy.rpc.wire import VERSION

RETRY_TIME = 30.0
"""Seconds over which a message is repeated while the daemon is away."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Connection(DaemonSocket):
    """Connection that repeats commands for 30 s while the daemon is busy or restarts; ``patient``: also while
    it is stopped."""

    def __init__(self, home: str, timeout: float | None, *, patient: bool = False) -> None:
        if timeout is not None:
            need("timeout", timeout, (int, float), "seconds, or None")
        super().__init__(home, timeout)
        self._patient = patient
        self._number = 0

    def call(self, message: dict[str, Any], *, repeat: bool) -> Any:
        """Send a command; return its ``result``, or its text if the message asks for ``text``. Repeat it for
        30 s while the daemon is busy, with ``repeat`` also over a restart. Raises Refusal, Unreachable."""
        waited, pause = 0.0, _FIRST_PAUSE
        while True:
            try:
                return self._once(message)
            except Refusal as refusal:
                if refusal.code != "busy" or waited >= RETRY_TIME:
                    raise
            except Unreachable as error:
                silent = isinstance(error.__cause__, TimeoutError)
                missed = isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError))
                stopped = missed and not self._patient and standing(self.home) == STOPPED
                if not repeat or silent or waited >= RETRY_TIME or stopped:
                    raise
            time.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(self, message: dict[str, Any]) -> Any:
        self._number += 1
        try:
            line = json.dumps({"v": VERSION, "id": self._number, **message}).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise BadValue(f"the fields of {message['cmd']!r} must be JSON: {error}") from None
        try:
            answer = json.loads(self.exchange(line))
            while answer["id"] not in (self._number, None):
                answer = json.loads(self.read_line())
        except (OSError, ValueError) as error:
            self.close()
            text = f"the nqsd in {self.home} gave no answer ({error or type(error).__name__})"
            if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
                text = nobody_there(self.home)
            elif isinstance(error, PermissionError):
                text = f"no access to {socket_path(self.home)}"
            raise Unreachable(text) from error
        if answer["ok"]:
            return answer.get("result", answer.get("out"))
        if answer["id"] is None:
            self.close()  # an error of the connection, which the daemon closes after it
        if "error" in answer:
            raise Refusal.received(answer["error"])
        text, status = answer["err"].rstrip("\n"), answer["exit"]  # the text form
        text = text or f"it ended with status {status}"
        raise Refusal.received({"text": text, "code": "refused", "status": status})


class ClientRequest:
    """A request by its identifier; ``data`` is the daemon's last report (keys of ``qstat --json``)."""

    def __init__(self, client: "Client", id: str, data: Mapping[str, Any] | None = None) -> None:
        self.id = id
        self.data: Mapping[str, Any] = data or {}
        self._client = client

    def __repr__(self) -> str:
        return f"Request({self.id!r})"

    @property
    def state(self) -> str:
        """Ask the daemon for the request's state; return it as a word, as in ``qstat --json``."""
        state: str = self.refresh()["state"]
        return state

    def refresh(self) -> Mapping[str, Any]:
        """Ask the daemon for the request's ``data``; store and return it. Raises Refusal if unknown."""
        self.data = self._client.requests(self.id)[0].data
        return self.data

    def wait(self, timeout: float | None = None) -> Mapping[str, Any]:
        """Wait until the request has ended; store and return its ``data``. See `Client.wait`."""
        self.data = self._client.wait(self.id, timeout)
        return self.data

    def delete(self) -> None:
        """Delete the request, running or not."""
        self._client.delete(self.id)


def _names(ids: "Sequence[str | ClientRequest]") -> list[str]:
    """Return the identifiers of texts and requests. Raises BadValue."""
    names = [id.id if isinstance(id, ClientRequest) else id for id in ids]
    for name in names:
        need("an identifier", name, (str,), 'a text like "17", or a request')
    return names


class Client:
    """Client of the daemon of ``home`` (None: the home that commands use). ``timeout``: real seconds that an
    answer may take; None: no limit. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str] | None = None, *, timeout: float | None = 60.0) -> None:
        if home is not None:
            need("home", home, (str, os.PathLike), "a path")
        try:
            self.home = resolve_home(os.fspath(home) if home is not None else None)
        except OSError as error:
            raise NqspyError(str(error)) from None
        self._connection = Connection(self.home, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect from the daemon; a later call connects again."""
        self._connection.close()

    def call(self, cmd: str, *, repeat: bool = False, **fields: Any) -> Any:
        """Send any command of the protocol; return its ``result``, or the text form if a field ``text`` asks
        for it. ``repeat``: send it again if the daemon restarts meanwhile. Raises Refusal, Unreachable."""
        return self._connection.call({"cmd": cmd, **fields}, repeat=repeat)

    def submit(
        self, script: str | bytes | os.PathLike[str], *args: str, **options: Unpack[Options]
    ) -> ClientRequest:
        """Submit a request with these arguments and `Options`; once this returns, the request is saved.
        ``script``: a path object, a file's name in one line, or the text itself. Without a ``key`` one is
        made, so that a repetition cannot submit twice. Raises Refusal, BadValue, Unreachable, OSError."""
        key = options.get("key") or f"client-{os.getpid()}-{os.urandom(16).hex()}"
        items = [submission(script, args, options)]
        result = self.call("submit", repeat=True, items=items, key=key, dry_run=False)
        return ClientRequest(self, result["ids"][0])

    def requests(
        self, *ids: "str | ClientRequest", queue: str | None = None, user: str | None = None,
        state: str | None = None, ended: bool = False,
    ) -> list[ClientRequest]:  # fmt: skip
        """Return the requests not ended (``ended``: the ended ones) that have the values given. With ``ids``:
        these, ended or not."""
        fields = given({"queue": queue, "user": user, "state": state})
        rows = self.call("list_requests", repeat=True, ids=_names(ids), ended=ended, **fields)
        return [ClientRequest(self, row["id"], row) for row in rows]

    def wait(self, id: "str | ClientRequest", timeout: float | None = None) -> Mapping[str, Any]:
        """Wait until a request has ended, and return its data (``ok``: True for exit status 0). Raises
        TimeoutError if that takes longer than ``timeout`` real seconds (None: no limit)."""
        [name] = _names([id])
        patient = Connection(self.home, timeout, patient=True)
        try:
            rows = patient.call({"cmd": "wait", "ids": [name]}, repeat=True)
        except NqspyError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise TimeoutError(f"{name} has not ended within {timeout} s") from None
            raise
        finally:
            patient.close()
        row: Mapping[str, Any] = rows[0]
        return row

    def delete(self, *ids: "str | ClientRequest", kill: bool = False, signal: int | None = None) -> None:
        """Delete requests; end started ones (``kill``: without grace time), or only send them a ``signal``.
        Raises Refusal with the first failure; the others are done."""
        self._each("delete", ids=_names(ids), kill=kill, signal=signal, force=True)

    def hold(self, *ids: "str | ClientRequest") -> None:
        """Hold waiting requests. Raises Refusal with the first failure; the others are done."""
        self._each("hold", ids=_names(ids))

    def release(self, *ids: "str | ClientRequest") -> None:
        """Release held requests. Raises Refusal with the first failure; the others are done."""
        self._each("release", ids=_names(ids))

    def move(self, queue: str, *ids: "str | ClientRequest") -> None:
        """Move waiting requests into a queue. Raises Refusal with the first failure; the others are done."""
        self._each("move", ids=_names(ids), queue=queue)

    def _each(self, cmd: str, **fields: Any) -> None:
        failed = (self.call(cmd, **fields) or {}).get("failed")
        if failed:
            raise Refusal.received(failed[0])

    def qmgr(self, script: str, *, atomic: bool = True) -> str:
        """Run qmgr commands, one a line (``atomic``: all or none); return their output. Raises Refusal."""
        result = self.call(
            "qmgr", source="client", script=script, atomic=atomic, check=False, plan=False, json=False
        )
        text: str = result["out"]
        return text

    def events(self, after: int = 0, *, follow: bool = False) -> Iterator[Mapping[str, Any]]:
        """Yield the journal's events with numbers above ``after``, in order; ``follow``: wait for more."""
        waiting = Connection(self.home, None, patient=True)
        try:
            while True:
                fields = {"cmd": "events", "after": after, "wait": follow}
                result = waiting.call(fields, repeat=True)
                yield from result["events"]
                if result["last"] == after and not follow:
                    return
                if result["last"] == after:
                    time.sleep(0.1)  # an answer without events: the daemon is shutting down
                after = result["last"]
        finally:
            waiting.close()
