from nqspy.model.errors import Refusal as Refusal
from nqspy.sim.testing.fixture import site_of_test as site
from nqspy.sim.testing.record import BadExit as BadExit
from nqspy.sim.testing.record import BadStory as BadStory
from nqspy.sim.testing.record import ExitFailed as ExitFailed
from nqspy.sim.testing.site import StorySite as Site
from nqspy.sim.testing.stage import StoryJob as Job

__all__ = ["BadExit", "BadStory", "ExitFailed", "Job", "Refusal", "Site", "site"]
