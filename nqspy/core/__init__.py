"""Names from the folders of `core` for other rooms, which import files at the top of `core` directly."""

from nqspy.core.fallback import resume as resume
from nqspy.core.fallback.preempt import move_rank as move_rank
from nqspy.core.gate.gate import NOW as NOW
from nqspy.core.gate.gate import Gate as Gate
from nqspy.core.gate.gate import empty_gate as empty_gate
from nqspy.core.gate.gate import never as never
from nqspy.core.gate.gate import refusal_of as refusal_of
from nqspy.core.gate.running import GroupLimit as GroupLimit
from nqspy.core.gate.running import RunLimit as RunLimit
from nqspy.core.order.places import Place as Place
from nqspy.core.order.places import QueueOrder as QueueOrder
from nqspy.core.order.places import standing as standing
from nqspy.core.preemption import health as health
from nqspy.core.preemption import swap as swap
from nqspy.core.timeline.lengths import guarantees_times as guarantees_times
