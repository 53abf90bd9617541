"""The orders of the setting ``order``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.order.order import CandidateOrder
from nqspy.model.queues import Queue
from nqspy.model.tree import set_words

FILES = (
    "priority",
    "fcfs",
    "sjf",
    "by_class",
)
"""Files of this folder that declare an ``ORDER``."""

_LISTED: tuple[type[CandidateOrder], ...] = tuple(
    import_module(f"nqspy.core.order.{name}").ORDER for name in FILES
)
ORDERS: Mapping[str, type[CandidateOrder]] = {order.word: order for order in _LISTED}
set_words(Queue, "order", {word: order.means for word, order in ORDERS.items()})
