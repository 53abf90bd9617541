"""nqspy: the batch queue whose policy is Python.

``from nqspy import Client`` gives the client library. Nothing is imported before it is asked for: the user
commands start through this module.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nqspy.rpc.client import Client
    from nqspy.rpc.client import ClientRequest as Request

__all__ = ["Client", "Request"]

_CLASSES = {"Client": "Client", "Request": "ClientRequest"}


def __getattr__(name: str) -> object:
    if name not in _CLASSES:
        raise AttributeError(f"module 'nqspy' has no attribute {name!r}")
    from nqspy.rpc import client

    return getattr(client, _CLASSES[name])
