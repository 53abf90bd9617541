"""What a pass leaves behind: nothing that waits for the collector of circles."""

import gc


def test_a_pass_leaves_no_circles_behind(house):
    house.machine(pes=2).queue("night", share=20, time=1, user_limit=1).group("d1", share=3)
    house.run("anne group=d1", "ben", "ben", "cleo group=d1")
    house.submit("dora", "eva group=d1")
    house.run_pass()
    gc.collect()
    gc.disable()
    try:
        house.run_pass()
        assert not gc.collect()
    finally:
        gc.enable()
