"""Orders to the daemon itself by operators and managers, and dates that depend on the site's clock."""

from msgspec.structs import replace

from nqspy.answers.serving import Serving
from nqspy.engine.handlers.people import need
from nqspy.model import commands as cm
from nqspy.model.errors import Refusal
from nqspy.model.people import Caller
from nqspy.qmgr.dates import settled


def shut_down(serving: Serving, caller: Caller, mode: str) -> None:
    """Has the daemon stop. Raises Refusal."""
    need(serving.engine.site.settings, caller, "operator", "shutdown")
    if mode not in ("leave", "drain", "requeue"):
        raise Refusal("bad_mode", mode=mode)
    serving.stop(mode)


def reload_queues(serving: Serving, caller: Caller) -> str:
    """Applies the files of ``queues.d`` that changed. Raises NqspyError."""
    need(serving.engine.site.settings, caller, "manager", "reload queues")
    return serving.reload_queues()


def dated(serving: Serving, command: cm.Command) -> cm.Command:
    """The command with the date it names by the site's clock and zone. Raises BadValue."""
    if not isinstance(command, cm.ModifyRequest):
        return command
    now, zone = serving.clock.now(), serving.engine.site.timezone
    return replace(command, values=settled(command.values, now, zone))
