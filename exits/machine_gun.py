"""Machine gun: when a request is chosen, its owner's other waiting ones get the date now. For the day."""

from nqspy.userexit import Instant, Redate, Request, View, redate, userexit


@userexit
def elected(request: Request, view: View, now: Instant) -> list[Redate]:
    return [redate(view.waiting(owner=request.owner), now)]
