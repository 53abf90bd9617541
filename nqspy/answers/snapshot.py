"""A copy of the site for those who read long."""

from copy import copy
from dataclasses import replace

from nqspy.model.configure import copy_of
from nqspy.model.site import Site


def snapshot(site: Site) -> Site:
    """A copy of the site as it is now that the engine does not change: what reports read."""
    requests = {seq: copy(request) for seq, request in site.requests.items()}
    return Site(
        settings=copy_of(site.settings),
        found=site.found,
        host=site.host,
        zone=site.zone,
        requests=requests,
        started={seq: requests[seq] for seq in site.started},
        accounts={key: account.copy() for key, account in site.accounts.items()},
        past={domain: past.copy() for domain, past in site.past.items()},
        shift=replace(site.shift),
        reported=site.reported,
        next_seq=site.next_seq,
        n=site.n,
        at=site.at,
    )
