"""What can go wrong, as typed exceptions: each carries one clear line for a person."""


class NqspyError(Exception):
    """Base of all errors of ours; its text is one line that says what is wrong and what would be right."""


class Refusal(NqspyError):
    """A command that is well formed but may not be done (no such queue, no right, above a limit).

    ``code`` is a stable word for programs; ``status`` the exit status of the command line.
    """

    def __init__(self, text: str, code: str = "refused", status: int = 1) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class BadValue(NqspyError):
    """A value that cannot be read (size, time, count, name); the text names the value and what is
    expected."""


class Unreachable(NqspyError):
    """No daemon answers in that home, or the connection broke before the answer came."""


class BrokenSite(NqspyError):
    """An invariant of the site does not hold: a bug of ours, never a user's fault."""
