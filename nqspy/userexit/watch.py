"""Who is told whose code runs: where exits run in a process of their own, its parent can see who hangs."""

from nqspy.userexit.call_stats import Subject


class CallWatch:
    """Told before and after each piece of site code. This one looks away."""

    def enter(self, exit: str, hook: str, subject: Subject, owner: str = "") -> None:
        """Code of this exit is about to run: a hook about its subject (`call_stats.Subject`), which is of
        this owner; or ``load``, which is nobody's."""

    def leave(self) -> None:
        """It has come back."""


UNWATCHED = CallWatch()
