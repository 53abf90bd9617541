"""What a request asks for on other PEs than it was handed in for; a moldable one (`shapes`) on one of its
sizes, and while it waits for one."""

from msgspec import structs
from msgspec.structs import replace

from nqspy.model.layout import Layout
from nqspy.model.requests import Request, Spec
from nqspy.model.shapes import Mold, reckoned, wall_by_speedup


def on_size(spec: Spec, pes: int) -> Spec:
    """The same asking for that size, and its time; one that is not moldable as it is."""
    mold = spec.mold
    if mold is None or pes not in mold.sizes:
        return spec
    return replace(spec, ask=replace(spec.ask, pes=pes, wall=mold.wall_on(pes)))


def while_waiting(spec: Spec) -> Spec:
    """The same asking for the least of its sizes and the shortest of its times; one that is not moldable as
    it is."""
    mold = spec.mold
    if mold is None:
        return spec
    return replace(spec, ask=replace(spec.ask, pes=mold.sizes[0], wall=mold.least_wall))


def sized(request: Request, pes: int) -> Request:
    """A request as it would be on one of its sizes; itself where it has none."""
    if request.spec.mold is None or not pes:
        return request
    return structs.replace(request, spec=on_size(request.spec, pes))


def settled(spec: Spec) -> Spec:
    """A moldable request as it waits, its times reckoned; one of a single size as one that is fixed."""
    if spec.mold is None:
        return spec
    made = replace(spec, mold=reckoned(spec.mold))
    if len(spec.mold.sizes) == 1:
        return replace(on_size(made, spec.mold.sizes[0]), mold=None)
    return while_waiting(made)


def fixed(spec: Spec, pes: int) -> Spec:
    """It asks for that many PEs alone, for as long as it asked for on them if that is one of its sizes, or
    its speedup says how long that is."""
    made, mold = on_size(spec, pes), spec.mold
    wall = made.ask.wall if mold is None or pes in mold.sizes else wall_by_speedup(mold, pes) or made.ask.wall
    return replace(made, mold=None, ask=replace(made.ask, pes=pes, wall=wall))


def timed(spec: Spec, wall: int | None) -> Spec:
    """A moldable request asks for another wall limit: by its speedup the time on one PE, else that on each of
    its sizes."""
    assert spec.mold is not None
    return replace(spec, mold=replace(spec.mold, base=wall, walls=()))


def remolded(former: Spec, spec: Spec, wall: int | None) -> Spec:
    """``spec`` with what its new mold leaves out taken from the former one: its sizes, and its wall limit
    where it gives no times (``wall``: the one that was asked for with it, if any)."""
    mold, before = spec.mold, former.mold or Mold()
    assert mold is not None
    sizes = mold.sizes or before.sizes
    if wall is None and not mold.walls:
        wall = before.base if former.mold is not None else former.ask.wall
        wall = max(before.walls) if wall is None and before.walls and mold.speedup is None else wall
    return replace(spec, mold=replace(mold, sizes=sizes, base=wall))


def layout_on(former: Spec, pes: int | None) -> Layout | None:
    """Return the layout of a request that asks for other PEs than before; None for ``pes``: several sizes.
    Every change of PEs goes this way. Several sizes have no layout made for one number of PEs."""
    layout = former.layout
    if layout is None or former.mold is not None:
        return layout
    if pes is None:
        return layout if layout.cpus is None else None
    return layout.following(former.ask.pes, pes)
