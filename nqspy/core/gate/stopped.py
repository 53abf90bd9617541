"""Stopped queues: nothing of them starts."""

from nqspy.model.reasons import ReasonCode, reason_kinds

(STOPPED,) = reason_kinds(ReasonCode.STOPPED, stopped="{who} is stopped: start {who}")
"""Said of a queue that nobody has started."""
