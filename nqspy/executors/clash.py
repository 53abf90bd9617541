"""Which outputs are second ones: of requests that wait or run while another writes the same path.

The first that starts has the path. Those that waited beside it, or start while it runs, are second, and
``set output_clash`` says what becomes of theirs. Of an array all indices are, where one path is
all of theirs: which of them run at the same time is chance.
"""

from typing import Any

from nqspy.model.ids import Seq, index_of
from nqspy.model.output_paths import files, fill, of_all_indices, plain, suffix
from nqspy.model.requests import Request
from nqspy.model.site import Site


class Clashes:
    """Remembers who waited beside whom."""

    def __init__(self) -> None:
        self._second: dict[Seq, set[str]] = {}

    def mark(self, request: Request, output: dict[str, Any], site: Site) -> None:
        """Has the streams of a request that starts know whether they are second ones: ``clash`` is a suffix
        for their names, or ``append``."""
        second = self._second.pop(request.seq, set())
        if index_of(request.seq) is not None:
            second |= of_all_indices(request.seq, request.spec, request.queue)
        for file in files(request.seq, request.spec, request.queue):
            others = site.writers.get(file, {}).keys() - {request.seq}
            if any(seq in site.started for seq in others):
                second.add(file)
            for seq in others - site.started.keys():
                self._second.setdefault(seq, set()).add(file)
        way = site.settings.server.output_clash
        if second and way != "overwrite":
            spec = request.spec
            for stream, path in (("stdout", spec.output.stdout), ("stderr", spec.output.stderr)):
                if path is not None and plain(fill(path, request.seq, spec, request.queue, "")) in second:
                    output[stream]["clash"] = "append" if way == "append" else f".{suffix(request.seq)}"
        if len(self._second) > len(site.requests):
            self._second = {seq: held for seq, held in self._second.items() if seq in site.requests}
