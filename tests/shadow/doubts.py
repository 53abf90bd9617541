"""Why the shadow cannot say whether a pass did as the rules say, in words."""

BLIND = ("the journal does not say which exits were asked", "an exit had a say in what starts (jobselect)")
"""Doubts beside which there is nothing more to find."""
CLASSES = "job classes decided which request was loaded"
CLOSE = "two stood too close, or the shortest was tried first"
SHARES = ("shares decided which was first", "shares decided which was first (shrpri)")
SIZES = "one that may run on several numbers of PEs may have waited for another size"
BEFORE = "another may have stood before it"
