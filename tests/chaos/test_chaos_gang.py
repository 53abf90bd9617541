"""Applications by class for half a minute while daemon, spawner and shepherds are killed; `scripts/chaos
gang` does the same for half an hour."""

import pytest
from chaos.gang_run import storm


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kills_among_applications_lose_nothing_freeze_nothing_and_give_no_pe_twice(tmp_path):
    ledger = storm(3, 20, tmp_path, longest=4)
    print(ledger.report(3))
    assert not ledger.violations, ledger.report(3)
    assert ledger.counts["began"] > 20
    assert ledger.counts["preempted"] >= 1
    assert ledger.counts["fault kill -9"] >= 1
    assert ledger.counts["fault shepherd killed"] >= 1
