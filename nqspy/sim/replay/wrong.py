"""What keeps a replay from being made."""

from nqspy.model.errors import NqspyError


class NotReplayed(NqspyError):
    """There is nothing to replay, or what was asked for cannot be: its text says why, in one line."""
