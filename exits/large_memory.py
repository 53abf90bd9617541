"""Large memory: large requests start in their own order and share hmax; all together take at most 2 hmax.

Large is more than hmax/nproc. A large request that does not fit blocks the later large ones of its queue, but
not the small ones: so the largest gets its turn, large ones do not swap each other out, and small ones fill
the processors meanwhile. At most nproc+2 requests run. A request above hmax can never start in ``queues``.
"""

from nqspy.userexit import Answer, Request, View, never, refuse, setting, userexit

hmax = setting("hmax", "memory", "115mw", "memory that large requests may use together")
nproc = setting("nproc", "count", "4", "number of processors")
rule = setting("rule", "flag", "on", "whether running requests are held to the rule now")
queues = setting("queues", "names", "night", "queues in which nothing starts but under the rule")


@userexit
def submit(request: Request, view: View) -> Answer | None:
    return never_fits(request.queue, memory(request, view))


@userexit
def jobselect(request: Request, view: View) -> Answer | None:
    size = memory(request, view)
    why = never_fits(request.queue, size) or (does_not_fit(request, size, view) if rule.value else None)
    if rule.value and why is None and is_large(size):
        for other, answer in view.ahead(request):
            if answer and answer.who == view.exit and answer.verdict == "refuse" and in_line(other, view):
                text = f"large: waits behind {other.id}, which is large too and does not fit yet"
                return refuse(text, within={"memory": (int(hmax.value // nproc.value) + 1, hmax.value)})
    return why


def never_fits(queue: str, size: float) -> Answer | None:
    if queue not in queues.value or size <= hmax.value:
        return None
    return never(f"needs more memory than the {hmax.text} that large requests may use together")


def does_not_fit(request: Request, size: float, view: View) -> Answer | None:
    running, used, by_large = view.once(sizes)
    if running >= nproc.value + 2:
        return refuse(f"{running} requests are running, the most for {nproc.text} processors", alike=())
    if size + used > 2 * hmax.value:
        text = f"running requests leave too little memory: all may use 2 x {hmax.text}"
    elif is_large(size) and size + by_large > hmax.value:
        text = f"large: running large requests leave too little memory: all may use {hmax.text}"
    else:
        return None
    return refuse(text, within={"memory": (request.memory, hmax.value)})


def sizes(view: View) -> tuple[int, float, float]:
    found = [memory(other, view) for other in view.running() if other.state != "exiting"]
    return len(found), sum(found), sum(filter(is_large, found))


def memory(request: Request, view: View) -> float:
    """Return the memory (bytes) that a request asks for; unlimited: its queue's limit, else hmax."""
    if (size := request.memory) is not None:
        return size
    limit = view.queue(request.queue).per_request.memory_limit
    return hmax.value if limit is None or limit < 0 else limit


def is_large(size: float) -> bool:
    return size * nproc.value > hmax.value


def in_line(request: Request, view: View) -> bool:
    """True if a request is large and may fit some time; one that never fits blocks no other."""
    return is_large(size := memory(request, view)) and size <= hmax.value
