"""What a site has done, written as a log and read back: the same jobs, the same starts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nqspy.model import events as ev
from nqspy.report.swf import SwfFrame, swf_log
from nqspy.report.time_text import Zone
from nqspy.sim.batch import BatchRun
from nqspy.sim.policies import BATCH_POLICIES, SITE
from nqspy.sim.workloads.swf import open_swf

TRACES = Path(__file__).parents[1] / "data" / "traces"


class KeptRun(BatchRun):
    """A run whose events are kept."""

    def __init__(self, *given) -> None:
        self.events: list[ev.Recorded] = []
        super().__init__(*given)

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        self.events += events
        super()._follow(events)


def run(path: Path, policy: str):
    made = KeptRun(open_swf(path), [("site", SITE), (policy, BATCH_POLICIES[policy].commands)])
    found = sorted((each.job.submit, each.job.place, each.start, each.run, each.job.width) for each in made)
    return made, [each[2:] for each in found]


@pytest.mark.parametrize(
    ("trace", "policy"),
    [("example", "firstfit"), ("edge", "easy"), ("edge", "conservative"), ("ties", "easy")],
)
def test_a_log_of_a_simulated_site_gives_the_same_starts_again(trace, policy, tmp_path):
    made, starts = run(TRACES / f"{trace}.swf", policy)
    written = tmp_path / "out.swf"
    written.write_text(swf_log(made.events, SwfFrame("sim", "nqspy", Zone("UTC"), fractions=True)))
    again = open_swf(written)
    assert (again.pes, again.count) == (made.workload.pes, made.workload.count)
    first = made.begin - again.begin
    told = [each.split() for each in written.read_text().splitlines() if not each.startswith(";")]
    assert [round(1000 * (float(line[1]) + float(line[2]))) - first for line in told] == [
        start for start, _, _ in starts
    ]
    assert [(start - first, *rest) for start, *rest in run(written, policy)[1]] == [
        tuple(each) for each in starts
    ]
