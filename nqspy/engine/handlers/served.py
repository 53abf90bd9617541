"""Which handler serves which command."""

from nqspy.engine.handlers import acts, exits, requests, settings, shifts, submit, usage
from nqspy.engine.handlers.context import Handler
from nqspy.model import commands as cm

HANDLERS: dict[type[cm.Command], Handler] = {
    cm.Submit: submit.submit,
    cm.Configure: settings.configure,
    cm.ApplyFiles: settings.apply_files,
    cm.Delete: requests.delete,
    cm.HoldRequests: requests.hold,
    cm.ReleaseRequests: requests.release,
    cm.MoveRequests: requests.move,
    cm.ModifyRequest: requests.modify,
    cm.RerunRequests: requests.rerun,
    cm.SuspendRequests: requests.suspend,
    cm.SignalRequests: acts.signal,
    cm.WriteMessage: acts.message,
    cm.ExchangeRequests: acts.exchange,
    cm.ScheduleRequest: requests.schedule,
    cm.AbortQueue: requests.abort_queue,
    cm.PurgeQueue: requests.purge_queue,
    cm.CorrectUsage: usage.correct,
    cm.SwitchShift: shifts.switch,
    cm.AutomaticShift: shifts.automatic,
    cm.ReloadExits: exits.reload,
}

SETTLING = (cm.Configure, cm.ApplyFiles, cm.SwitchShift, cm.AutomaticShift, cm.ReloadExits)
"""Commands after which a plan asked for before is void, and the shifts are looked at anew."""
