"""The job's end of an interactive session (``qsub -I``): gives the command a terminal, and ends as its shell
ends. Its text is the script of the request: standard library only."""

import fcntl
import os
import pwd
import signal
import socket
import sys
import termios


def main(place: str, words: "list[str]") -> None:
    """Run the job; ``place``: the command's socket, ``words``: what to run instead of the owner's shell."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(place)
    except OSError as error:
        sys.exit(f"the qsub of this session does not answer ({error.strerror})")
    master, slave = os.openpty()
    socket.send_fds(link, [b"t"], [master])
    os.close(master)
    if not link.recv(1):
        sys.exit("the qsub of this session has ended")
    pid = os.fork()
    if pid == 0:
        _become_shell(slave, words)
    os.close(slave)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGHUP))  # shells do not heed TERM
    status = os.waitpid(pid, 0)[1]
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not number:
        os._exit(os.WEXITSTATUS(status))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _become_shell(slave: int, words: "list[str]") -> None:
    """Become the session's first process, on its terminal."""
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(slave, number)
        os.environ |= {"PBS_ENVIRONMENT": "PBS_INTERACTIVE", "ENVIRONMENT": "INTERACTIVE"}
        if words:
            os.execvp(words[0], words)  # noqa: S606 - no shell is meant
        shell = os.environ.get("SHELL") or pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
        os.execv(shell, ["-" + os.path.basename(shell)])  # noqa: S606 - it is the shell
    except OSError as error:
        os.write(2, f"qsub: cannot run {error.filename or 'the shell'}: {error.strerror}\r\n".encode())
    finally:
        os._exit(127)
