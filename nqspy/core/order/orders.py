"""The orders of the setting ``order``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.core.order.order import CandidateOrder
from nqspy.model.queues import Queue
from nqspy.model.tree import set_words

FILES = (
    "order",  # priority, fcfs, sjf, class
)
"""Files of this folder that declare ``ORDERS``."""

ORDERS: Mapping[str, type[CandidateOrder]] = {
    each.word: each for name in FILES for each in import_module(f"nqspy.core.order.{name}").ORDERS
}
set_words(Queue, "order", {word: each.means for word, each in ORDERS.items()})
