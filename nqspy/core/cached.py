"""What is made when it is first asked for, and kept: `functools.cached_property`, which up to Python 3.11
takes a lock for that. A pass makes a dozen such things, and has them to itself."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - it stands for that
        """As `functools.cached_property`, without a lock."""

        def __init__(self, make):
            self._make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            make = self._make  # called as if it were a method it would be looked for each time
            value = instance.__dict__[self._name] = make(instance)
            return value
