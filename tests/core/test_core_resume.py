"""Suspended requests that gave their PEs away: how they come back."""

import pytest
from core.story import Story

THREE = "machine 2; queue night; run anne, ben, cleo"
PARKED = """run anne pes=2 wall=1:00:00{units}; later 10; suspend anne probe nfs
    submit ben pes=2 wall=20:00; begins ben 0-1"""
AWAY = f"machine 2; queue night reserve=1; {PARKED.format(units='')}"
STORIES = {
    "before all that waits": f"{THREE}; suspend anne probe nfs; go; returns anne; why cleo NO_PES",
    "one that an operator suspended keeps its PEs and stays": f"{THREE}; suspend anne op; does -",
    "what is to end gives way to none and does not come back": f"""{THREE}; suspend ben probe nfs; delete ben
        does start:cleo; delete anne; day suspend stop:night; does suspend:cleo""",
    "a PE that the machine no longer has is neither freed nor taken": """machine 2; queue night
        queue batch; run anne queue=night, ben queue=night; machine 1; submit cleo, dora
        day suspend stop:night; does suspend:anne suspend:ben start:cleo; pes cleo 0""",
    "on the PE that becomes free": f"""{THREE}; suspend anne probe nfs; begins cleo 0; go; returns -
        why anne pes_to_go_on 1 -; end ben; go; returns anne 1; pes anne 1; end cleo; submit dora
        starts dora; pes dora 0""",
    "on its own PEs if they are free": """machine 4; queue night; run anne, ben pes=2; suspend ben probe nfs
        end anne; go; returns ben; pes ben 1-2""",
    "it keeps of its PEs what is free": """machine 4; queue night; run anne pes=2; suspend anne probe nfs
        submit ben; begins ben 0; go; returns anne 1-2""",
    "too few free PEs are kept for it": """machine 4; queue night; run anne pes=3; suspend anne probe nfs
        submit ben, cleo, dora; begins ben 0; begins cleo 3; starts -; why anne pes_to_go_on 3 2
        end cleo; go; returns anne 1-3""",
    "two that had the same PE": """machine 1; queue night; run anne, ben; suspend anne probe nfs; later 5s
        begins ben 0; suspend ben probe nfs; go; returns anne; why ben NO_PES""",
    "a user limit counts it": """machine 3; queue night user_limit=1; run anne, anne, ben
        suspend anne probe nfs; go; returns anne; why anne2 limit_reached""",
    "while it is away only memory counts": """machine 3
        queue night user_limit=1 run_limit=1 memory_limit=10mw; run anne mem=6mw, anne mem=4mw, anne mem=1mw
        suspend anne probe nfs; delete anne; starts anne2; end anne2; submit ben mem=5mw; starts anne3""",
    "a start is reserved behind its return": f"""{AWAY}; run cleo pes=2 wall=5:00; reserved cleo 80; later 20
        end ben; go; returns anne; later 50; end anne; starts cleo""",
    "what it did not give back is its own until its end": f"""machine 2; queue night reserve=1
        create consumable/gpu units=(g0); {PARKED.format(units=" gpu=1")}; run cleo gpu=1 wall=5:00
        reserved cleo 80; units anne gpu=g0""",
    "nothing is kept for one of a stopped queue": f"""{AWAY}; set queue/night/started off
        queue day reserve=1; run cleo pes=2 wall=5:00; reserved cleo 30""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_coming_back(house, title):
    Story(house).play(STORIES[title])
