"""What is made when it is first asked for (core.cached)."""

from nqspy.core.cached import cached_property


class Pass:
    def __init__(self):
        self.made = 0

    @cached_property
    def ledger(self):
        """Use and entitlement."""
        self.made += 1
        return f"ledger {self.made}"


def test_it_is_made_once_and_when_somebody_asks_for_it():
    one = Pass()
    assert one.made == 0
    assert "ledger" not in vars(one)
    assert [one.ledger, one.ledger] == ["ledger 1", "ledger 1"]


def test_another_is_made_where_it_was_taken_away_and_what_was_put_there_counts():
    one = Pass()
    assert one.ledger == "ledger 1"
    del one.ledger
    assert one.ledger == "ledger 2"
    one.ledger = "mine"
    assert one.ledger == "mine"


def test_of_two_each_has_its_own_and_the_class_tells_what_it_is():
    one, other = Pass(), Pass()
    assert one.ledger == other.ledger == "ledger 1"
    assert Pass.ledger.__doc__ == "Use and entitlement."
