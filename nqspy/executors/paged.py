"""What the daemon says in its log of memory that requests have given back (`pageout`)."""

import logging

_log = logging.getLogger("nqspy.executor")


class PagedOut:
    """Tells how much left; once only, that the kernel does not allow it to us."""

    def __init__(self) -> None:
        self._told_refused = False

    def tell(self, seq: int, before: int, after: int, refused: int) -> int:
        """Bytes in memory ``before`` and ``after`` request ``seq`` gave way; how many of them left."""
        left = 0 if refused else max(0, before - after)
        if not refused:
            _log.info("request %d gives way: %d of %d MB left the memory", seq, left >> 20, before >> 20)
        elif not self._told_refused:
            self._told_refused = True
            _log.warning(
                "requests that give way are stopped and keep their memory: paging out needs CAP_SYS_NICE"
            )
        return left
