"""Names that the code of a site's user exits may import; it needs nothing else.

``userexit`` marks a function as an exit, ``setting`` declares a setting; ``force``, ``refuse``,
``never``, ``hold_line``, ``redate`` and ``changes`` make answers. The types are for annotations:
``Request`` and ``View``, ``SubmittedRequest`` where the exit is ``submit``.
"""

from nqspy.model.actions import Redate
from nqspy.model.ids import Instant
from nqspy.ports import Answer, Selection
from nqspy.ports import RequestView as Request
from nqspy.userexit.answers import Changes, changes, force, hold_line, never, redate, refuse
from nqspy.userexit.settings import Setting, setting
from nqspy.userexit.specs import userexit
from nqspy.userexit.view import SubmittedRequest, View

__all__ = [
    "Answer",
    "Changes",
    "Instant",
    "Redate",
    "Request",
    "Selection",
    "Setting",
    "SubmittedRequest",
    "View",
    "changes",
    "force",
    "hold_line",
    "never",
    "redate",
    "refuse",
    "setting",
    "userexit",
]
