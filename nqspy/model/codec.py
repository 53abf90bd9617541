"""Events as they stand in the journal: their kinds by name, and their fields as JSON."""

import msgspec

from nqspy.model import array_events as array_events  # imported for their kinds, as the next two
from nqspy.model import events as events
from nqspy.model import promises as promises
from nqspy.model.event import Event

KINDS: dict[str, type[Event]] = {cls.kind: cls for cls in Event.__subclasses__()}
"""Every kind of event by its name in the journal."""

_encoder = msgspec.json.Encoder()
_decoders = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}


def encode(event: Event) -> bytes:
    """JSON of an event's fields."""
    return _encoder.encode(event)


def decode(kind: str, fields: bytes | str) -> Event:
    """The event of that kind with those fields. Raises KeyError for an unknown kind,
    msgspec.ValidationError for bad fields."""
    event: Event = _decoders[kind].decode(fields)
    return event
