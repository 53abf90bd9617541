"""The entry point of ``nqsd``: it answers ``nqsd status`` quickly and leaves everything else to `command`."""

import _socket
import os
import sys
from _json import scanstring

from nqspy.rpc.home import resolve_home, socket_path, with_short_path

_QUESTION = b'{"v":1,"id":1,"cmd":"status"}\n'
_ANSWER = '{"id":1,"ok":true,"result":{"text":"'
_PATIENCE = (5).to_bytes(8, sys.byteorder) + bytes(8)  # struct timeval


def main() -> None:
    """Run ``nqsd``: answer ``status`` here, else run the whole command."""
    words = sys.argv[1:]
    named = len(words) == 3 and words[1] == "--home"
    if words[:1] == ["status"] and (named or len(words) == 1):
        text = _status(words[2] if named else None)
        if text is not None:
            data = (text + "\n").encode("utf-8", "backslashreplace")
            try:
                while data:
                    data = data[os.write(1, data) :]
                os._exit(0)
            except OSError:
                pass  # it cannot be written: the whole command says so
    from nqspy.daemon.command import main as command

    command()


def _status(home: str | None) -> str | None:
    """Return the daemon's answer to ``status``; None if the whole command must find out why there is none."""
    folder = -1
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, _PATIENCE)
        name, folder = with_short_path(socket_path(resolve_home(home)))
        connection.connect(name)
        connection.sendall(_QUESTION)
        answer = b""
        while answer[-1:] != b"\n":
            piece = connection.recv(1 << 16)
            if not piece:
                return None
            answer += piece
    except OSError:
        return None
    finally:
        connection.close()
        if folder >= 0:
            os.close(folder)
    line = answer.decode("utf-8", "replace")
    return scanstring(line, len(_ANSWER), True)[0] if line.startswith(_ANSWER) else None


if __name__ == "__main__":
    main()
