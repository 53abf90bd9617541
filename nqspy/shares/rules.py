"""The share rules of ``set global share_rule``: a new one is a file of this folder and a line here."""

from collections.abc import Mapping
from importlib import import_module

from nqspy.model.queues import Global
from nqspy.model.tree import set_words
from nqspy.shares.rule import ShareRule

FILES = (
    "deficit",
    "decayed",
)
"""Files of this folder that declare a ``RULE``."""

_LISTED: tuple[type[ShareRule], ...] = tuple(import_module(f"nqspy.shares.{name}").RULE for name in FILES)
RULES: Mapping[str, type[ShareRule]] = {rule.word: rule for rule in _LISTED}
set_words(Global, "share_rule", {rule.word: rule.means for rule in _LISTED})
