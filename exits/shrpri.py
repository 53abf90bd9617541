"""Shrpri: all users of a resource group have the same share term, min(E/U, 2) of their group."""

from nqspy.userexit import View, userexit


@userexit
def shrpri(group: str, view: View) -> float:
    entitled, used = view.share(group=group), view.usage(group=group)
    return min(entitled / used, 2.0) if used > entitled / 2 else 2.0
