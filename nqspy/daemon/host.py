"""What the daemon's parts see of it."""

from typing import Protocol

from nqspy.answers.serving import Serving
from nqspy.daemon.clock import Clock
from nqspy.daemon.home import Home
from nqspy.daemon.inbox import Inbox
from nqspy.engine.inputs import Outcome
from nqspy.model.events import Event
from nqspy.model.people import Caller


class Host(Serving, Protocol):
    """The daemon, to its parts: beside what answers may do they put things into the inbox and journal what
    they find. Everything but ``inbox`` and ``clock`` belongs to the engine's thread."""

    inbox: Inbox
    owner: Caller
    damage: list[str]
    """What the start found missing, for as long as the daemon runs: events in the database, files that
    declare settings."""

    @property
    def home(self) -> Home:
        """Its files."""

    @property
    def clock(self) -> Clock:
        """The site's clock."""

    def note(self, event: Event) -> None:
        """Has an event journaled that nobody has asked for."""

    def pump(self, outcome: Outcome) -> None:
        """Sends an outcome's replies and notices, and goes on feeding while a pass is due."""
