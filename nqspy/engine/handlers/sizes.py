"""Checks of the sizes and times of moldable requests, and the specifications that follow."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec.structs import replace

from nqspy.core.asked import too_wide
from nqspy.model import errors
from nqspy.model.errors import Refusal
from nqspy.model.requests import Spec, finite
from nqspy.model.shapes import MOST_PARALLELISM, MOST_SIGMA, MOST_SIZES, Sizes
from nqspy.model.site import Site
from nqspy.model.specs import fixed, layout_on, resized, settled, timed
from nqspy.model.units import GREATEST

errors.declare_refusals(
    "bad_value",
    166,
    {
        "no_sizes": "several times, or a speedup, need several sizes; add pes=4-16 or pes=(4,8,16)",
        "bad_size": "a size must be a number of PEs from 1 upward, not {size}",
        "same_size": "size {size} is named twice; name each number of PEs once",
        "many_sizes": "{count} sizes are too many; name at most {most}, like pes=(4,8,16)",
        "unlike_times": "there {times} for {sizes}; write one for each size, in their order, or one for all",
        "no_time_on_size": "the time of a size must be finite and longer than 0",
        "speedup_alone": "speedup= needs one walltime=, the time on one PE, not a time for each size",
        "speedup_of_nothing": "speedup= needs walltime=, the time on one PE",
        "bad_parallelism": "speedup=A:SIGMA: the average parallelism A must be from 1 to"
        " {most:,.0f}, not {value:g}",
        "bad_sigma": "speedup=A:SIGMA: the variance SIGMA must be from 0 to {most:,.0f}, not {value:g}",
        "sizes_laid_out": "select= and nodes= need one number of PEs, not several sizes",
    },
)


def shaped(site: Site, spec: Spec) -> Spec:
    """Return a moldable submission with the wall limit of each size computed; another one unchanged. Raises
    Refusal for sizes or times that are wrong, and if even the smallest size is too wide."""
    return spec if spec.mold is None else _settled(site, resized(spec, spec, spec.ask.wall))


def reshaped(site: Site, former: Spec, spec: Spec, values: Mapping[str, Any]) -> Spec:
    """Return ``spec``, a request ``former`` after changes of ``values`` (by path), with what follows from
    these: a layout for its PEs, unless ``values`` have one, and the times of a moldable request.

    ``ask/pes`` makes a moldable request fixed; its wall limit is that in ``values``, else that of its size.
    Without ``ask/pes`` a new wall limit is for all sizes (with a speedup: for one PE). Raises Refusal.
    """
    sizes = values.get("mold") is not None
    if values.get("layout") is None and (sizes or spec.ask.pes != former.ask.pes):
        spec = replace(spec, layout=layout_on(former, None if sizes else spec.ask.pes))
    if spec.mold is None:
        return spec
    wall = spec.ask.wall if "ask/wall" in values else None
    if sizes:
        return _settled(site, resized(former, spec, wall))
    if "ask/pes" in values:
        made = fixed(spec, spec.ask.pes)
        return made if "ask/wall" not in values else replace(made, ask=replace(made.ask, wall=wall))
    return _settled(site, timed(spec, wall)) if "ask/wall" in values else spec


def _settled(site: Site, spec: Spec) -> Spec:
    assert spec.mold is not None
    _check(spec.mold)
    if spec.layout is not None and spec.layout.text:
        raise Refusal("sizes_laid_out")
    wide = too_wide(site, None, min(spec.mold.sizes))
    if wide is not None:
        raise Refusal("above_limit", reason=wide.text)
    return settled(spec)


def _check(mold: Sizes) -> None:
    sizes, count = mold.sizes, len(mold.sizes)
    if not sizes:
        raise Refusal("no_sizes")
    if count > MOST_SIZES:
        raise Refusal("many_sizes", count=count, most=MOST_SIZES)
    for size in sizes:
        if not 1 <= size <= GREATEST:
            raise Refusal("bad_size", size=size)
        if sizes.count(size) > 1:
            raise Refusal("same_size", size=size)
    if mold.walls and len(mold.walls) != count:
        times = "is 1 time" if len(mold.walls) == 1 else f"are {len(mold.walls)} times"
        raise Refusal("unlike_times", times=times, sizes=f"{count} size{'s' * (count > 1)}")
    if not all(0 < wall <= GREATEST for wall in mold.walls):
        raise Refusal("no_time_on_size")
    if mold.speedup is None:
        return
    a, sigma = mold.speedup.parallelism, mold.speedup.sigma
    if not (isfinite(a) and 1 <= a <= MOST_PARALLELISM):
        raise Refusal("bad_parallelism", value=a, most=MOST_PARALLELISM)
    if not (isfinite(sigma) and 0 <= sigma <= MOST_SIGMA):
        raise Refusal("bad_sigma", value=sigma, most=MOST_SIGMA)
    if mold.walls:
        raise Refusal("speedup_alone")
    if not 0 < (finite(mold.base) or 0) <= GREATEST:
        raise Refusal("speedup_of_nothing")
