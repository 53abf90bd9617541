"""Requests for several numbers of PEs: ``-l pes=4-16``, ``walltime=(4h,2h,1h)``. Loaded only when used."""

from nqspy.model.amounts import Wrong, parse_count, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SPAN = 100_000
"""Most numbers of PEs in a range; the daemon also limits what it is sent."""


def read_sizes(name: str, text: str) -> list[int]:
    """Return the numbers of PEs of ``4-16`` or ``(4,8,16)``. Raises Wrong."""
    how = f"write it like {name}=8, {name}=4-16 or {name}=(4,8,16)"
    if text[:1] == "(":
        return _each(name, text, how, parse_count)
    low, _, high = text.partition("-")
    try:
        first, last = parse_count(low.strip()), parse_count(high.strip())
    except Wrong:
        raise Wrong(f"{text!r} is not a range of PEs; {how}") from None
    if not 1 <= first <= last:
        raise Wrong(f"{text!r} is not a range of PEs from 1 upward; {how}")
    if last - first >= _SPAN:
        raise Wrong(f"{text!r} names too many sizes; name some of them, like {name}=(4,8,16)")
    return list(range(first, last + 1))


def read_times(name: str, text: str) -> list[int]:
    """Return the milliseconds of ``(4h,2h,1h)``. Raises Wrong."""
    return _each(name, text, f"write it like {name}=(4:00:00,2:00:00,1:00:00)", parse_time)


def _each(name: str, text: str, how: str, read: "Callable[[str], int]") -> list[int]:
    words = [word.strip() for word in text.removeprefix("(").removesuffix(")").split(",")]
    if text[-1:] != ")" or not all(words):
        raise Wrong(f"{name}={text} is not a list; {how}")
    return [read(word) for word in words]


def read_speedup(_name: str, text: str) -> dict[str, float]:
    """Return Downey's A (``parallelism``) and ``sigma`` of ``A:SIGMA`` or ``A``. Raises Wrong."""
    try:
        numbers = [float(word) for word in text.split(":")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or any(number - number != 0 for number in numbers):  # nan and inf are none
        how = "write Downey's average parallelism and its variance, like speedup=12:0.5"
        raise Wrong(f"speedup={text} is not a speedup; {how}")
    return dict(zip(("parallelism", "sigma"), numbers, strict=False))
