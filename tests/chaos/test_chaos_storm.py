"""Everything at once, for twenty seconds with a fixed seed; `scripts/chaos` does the same for hours."""

import pytest
from chaos.run import storm


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_seconds_of_faults_loses_nothing_and_runs_nothing_twice(tmp_path):
    ledger = storm(7, 20, tmp_path, clients=4, strikes=10)
    print(ledger.report(7))
    assert not ledger.violations, ledger.report(7)
    assert ledger.counts["acknowledged"] > 50
    assert ledger.counts["restarts"] >= 2
    assert sum(n for name, n in ledger.counts.items() if name.startswith("fault ")) >= 8
