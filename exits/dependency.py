"""Dependency: the same owner's request of the same name waits until the earlier one has ended.

Both must be of one group, in the queues of the setting ``queues``, and named by their owner (-r, -N): a
default name such as STDIN says nothing. Indices of one array do not wait for each other.
"""

from itertools import takewhile

from nqspy.userexit import Answer, Request, View, refuse, setting, userexit

queues = setting("queues", "names", "night", "queues in which equal names depend on each other")


@userexit
def jobselect(request: Request, view: View) -> Answer | None:
    if not counts(request):
        return None
    same = {"owner": request.owner, "group": request.group, "name": request.name}
    for other in filter(counts, view.running(**same)):
        if not fellows(request, other):
            alike = ("owner", "group", "name") if other.array is None else None
            return refuse(behind(other), alike=alike)
    for other in takewhile(lambda other: other.seq != request.seq, view.waiting(**same)):
        if counts(other) and not fellows(request, other):
            return refuse(behind(other))
    return None


def behind(other: Request) -> str:
    return f"waits for the end of {other.id}, an earlier request named {other.name}"


def fellows(request: Request, other: Request) -> bool:
    return request.array is not None and request.array == other.array


def counts(request: Request) -> bool:
    return request.name_given and request.queue in queues.value
