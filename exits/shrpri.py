"""Shrpri: all users of a resource group have the same share term, what the stock rule gives their group."""

from nqspy.userexit import View, userexit


@userexit
def shrpri(group: str, view: View) -> float:
    return view.stock_shrpri(None, group)
