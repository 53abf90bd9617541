"""The exceptions of the client library: each one's text is one line for a person."""

from nqspy.model.errors import BadValue, NqspyError, Refusal, Unreachable

__all__ = ["BadValue", "NqspyError", "Refusal", "Unreachable"]
