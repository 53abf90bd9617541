"""Large memory: large requests start in their own order and share hmax; all together take at most 2 hmax.

Large is more than hmax/nproc. A large request that does not fit keeps the later large ones of its queue back,
never the small ones; so the largest gets its turn, large ones do not swap each other out, and small ones fill
the processors meanwhile. At most nproc+2 requests run.
"""

from nqspy.userexit import Answer, Request, View, refuse, setting, userexit

hmax = setting("hmax", "memory", "115mw", "memory that large requests may use together")
nproc = setting("nproc", "count", "4", "number of processors")


@userexit
def jobselect(request: Request, view: View) -> Answer | None:
    why = does_not_fit(request, view)
    if why is None and is_large(request, view):
        for other, answer in view.ahead(request):
            if answer and answer.who == view.exit and answer.verdict == "refuse" and in_line(other, view):
                return refuse(f"large: waits behind {other.id}, which is large too and does not fit yet")
    return why


def does_not_fit(request: Request, view: View) -> Answer | None:
    running = view.running()
    if len(running) >= nproc.value + 2:
        return refuse(f"{len(running)} requests are running, the most for {nproc.text} processors")
    if memory(request, view) + sum(memory(other, view) for other in running) > 2 * hmax.value:
        return refuse(f"the running requests leave too little of twice {hmax.text} of memory")
    large = [other for other in running if is_large(other, view)]
    together = sum(memory(other, view) for other in large) + memory(request, view)
    if is_large(request, view) and together > hmax.value:
        return refuse(f"large: the large requests running leave too little of {hmax.text} of memory")
    return None


def memory(request: Request, view: View) -> float:
    """What it asks for; unlimited counts as its queue's limit, else as hmax."""
    if request.memory is not None:
        return request.memory
    limit = view.queue(request.queue).per_request.memory_limit
    return hmax.value if limit is None or limit < 0 else limit


def is_large(request: Request, view: View) -> bool:
    return memory(request, view) * nproc.value > hmax.value


def in_line(request: Request, view: View) -> bool:
    """Large, and not so large that it never fits: that one keeps nobody back."""
    return hmax.value / max(nproc.value, 1) < memory(request, view) <= hmax.value
