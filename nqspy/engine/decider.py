"""The decider that runs a pass at once, in the same process."""

from collections.abc import Callable, Mapping

from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import LookAhead, Outlook, never
from nqspy.engine.virtual.passes import Passes
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site


class AtOnce(Passes):
    """`ports.Decider`: asks are answered with a plan immediately."""

    def foresee(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Outlook]:
        """Tells when a request that may be submitted would start, and what that rests on."""
        ahead = LookAhead(site, now, Between(samples=tuple(samples.items())), request=request)
        return lambda seconds: ahead.outlooks((request.seq,), self._exits, never)[request.seq]
