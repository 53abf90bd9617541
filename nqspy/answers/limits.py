"""``qlimit`` and ``qping``: what requests may be limited to here, and that somebody answers."""

from typing import Any

from nqspy.answers.serving import Serving
from nqspy.model.errors import Refusal
from nqspy.qmgr.show import limit_flags
from nqspy.rpc import messages
from nqspy.rpc import server as rpc


def answer(serving: Serving, asked: rpc.Asked) -> Any:
    """The list (``verbose``: with how each is kept), or with the text form ``qping`` a sentence. Raises
    Refusal for another host than this."""
    site, message = serving.engine.site, asked.message
    for host in message.get("hosts") or ():
        if host not in (site.name, site.host):
            raise Refusal("other_host", host=host[:80], name=site.name)
    if message.get("text") == "qping":
        text = f"{site.name}: nqsd answers\n"
    else:
        text = limit_flags(site.settings.server.shell_strategy, bool(message.get("verbose")))
    if message.get("text") is None:
        return {"host": site.name, "text": text}
    return messages.text_answer(asked.handle.id, 0, text)
