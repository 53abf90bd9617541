"""What a test of an exit may meet beside its own assertions. All are assertions that failed, so a test fails
with their text; but for `Refusal`, which a submission may meet as at a site."""

from nqspy.model.errors import Refusal as Refusal


class BadExit(AssertionError):
    """A file cannot be an exit; a line for each thing that is wrong with it."""


class ExitFailed(AssertionError):
    """An exit raised, answered nonsense or did not come back; with its traceback."""


class BadStory(AssertionError):
    """The test asks for what there is not: a request of that name, a time that has gone by."""
