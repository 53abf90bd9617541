"""The attacks on a daemon, part by part: each is a test with its judge; here they are run as one programme,
counted and told as a table.

`scripts/chaos --attacks` is the way to call it. What needs root is not tried without, and said so.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Attack:
    """``part``: of the list in the manual's page "faults"; ``tests``: where it is tried and judged, ``FILE``
    or ``FILE::TEST`` below ``tests``."""

    part: str
    name: str
    tests: tuple[str, ...]


_ROLES = "answers/test_answers_roles.py"
_START, _ROOM = (f"daemon/test_daemon_{name}.py" for name in ("start", "room"))
_LOST, _MISHAPS = (f"daemon/test_daemon_{name}.py" for name in ("lost", "mishaps"))
_DECIDER = "decider/test_decider_process.py"
_PEOPLE, _INDICES = "engine/test_engine_people.py", "model/test_indices.py"
_REAPER, _BACKUP = "executors/test_executors_reaper.py", "daemon/test_daemon_backup.py"

ATTACKS = (
    Attack("1", "pin a PE: output that is read slowly, sparse output, a start or delivery that is stopped",
           ("executors/test_executors_delivery.py",)),
    Attack("2", "become root as a manager, by a setting that names a program or a path",
           (f"{_ROLES}::test_a_manager_names_no_program_and_no_path_that_the_daemon_uses",
            f"{_ROLES}::test_neither_by_other_names_of_the_same_settings",
            f"{_ROLES}::test_a_manager_who_is_not_root_runs_nothing_as_root")),
    Attack("2", "be told the password of the mail server as a manager", ("engine/test_engine_people.py",)),
    Attack("2", "become root as an operator, by the shell of a request",
           (f"{_ROLES}::test_the_shell_of_a_request_is_for_whom_might_have_handed_it_in",)),
    Attack("2", "write a file of queues.d",
           (f"{_START}::test_files_of_queues_d_that_others_may_write_are_not_read",)),
    Attack("2", "one user against another, and against the daemon", ("daemon/test_daemon_attacks.py",)),
    Attack("3", "run again by taking away the folder of an attempt",
           (f"{_LOST}::test_an_attempt_that_ran_and_has_no_folder_any_more_is_lost_and_not_run_again",
            "executors/test_executors_lost.py")),
    Attack("4", "run twice at a time by killing the shepherd and hiding from it",
           (f"{_LOST}::test_who_hides_has_ended_before_the_request_runs_again", _REAPER)),
    Attack("5", "fork without end", ("executors/test_executors_limits.py",)),
    Attack("6", "fill the disk with scripts",
           (f"{_ROOM}::test_a_script_has_a_limit_that_the_site_sets",
            f"{_ROOM}::test_a_user_keeps_so_many_bytes_and_those_of_requests_that_never_ran_go_with_them",
            "answers/test_answers_room.py::test_a_list_and_an_array_count_for_each_request")),
    Attack("6", "keep others from deleting, holding and starting by a full disk",
           (f"{_ROOM}::test_on_a_full_disk_requests_are_deleted_and_held_and_the_daemon_starts",)),
    Attack("7", "remove the socket",
           (f"{_MISHAPS}::test_a_socket_that_was_removed_is_bound_again",)),
    Attack("7", "exchange names under a backup of root's",
           (f"{_BACKUP}::test_who_exchanges_names_where_root_puts_a_backup_has_nothing_of_it",
            f"{_BACKUP}::test_root_backs_up_somebodys_home_with_his_rights_only")),
    Attack("7", "reach the daemon from a user exit",
           (f"{_DECIDER}::test_the_process_reaches_neither_the_daemons_socket_nor_the_daemon",
            f"{_DECIDER}::test_nor_does_the_one_that_gives_notices_which_has_the_network")),
    Attack("7", "lock users out by waiting, by idle connections, by a lock on the database",
           ("daemon/test_daemon_locked_out.py",
            "daemon/test_daemon_callers.py::test_who_waits_for_64_requests_may_still_ask_and_delete")),
    Attack("8", "have a home made of a folder of something else",
           (f"{_START}::test_a_folder_of_something_else_is_not_made_a_home",)),
    Attack("9", "stop the daemon by a message that names many requests, or many indices of an array",
           ("answers/test_answers_many.py",
            f"{_INDICES}::test_what_is_cut_out_of_a_run_with_a_step_costs_nothing_for_each_index",
            f"{_INDICES}::test_pieces_that_interleave_are_few_or_refused",
            f"{_INDICES}::test_single_indices_that_are_held_and_released_stay_one_group")),
    Attack("9", "keep PEs past limits and deletion by messages into an output that nobody reads",
           ("executors/test_executors_control_messages.py",)),
    Attack("9", "fill the disk with arguments and notes, ask for what no program can be started with",
           ("answers/test_answers_room.py",)),
    Attack("9", "fill the disk by an output that was delivered and is still open",
           ("daemon/test_daemon_room.py",)),
    Attack("9", "lose what was acknowledged by damaging the log after a crash",
           ("daemon/test_daemon_lost_log.py",)),
    Attack("9", "say as a manager what root's jobs run or read, by the variable of a consumable",
           (f"{_PEOPLE}::test_a_manager_does_not_set",
            f"{_PEOPLE}::test_nor_does_he_change_which_variables_a_request_of_roots_has")),
    Attack("9", "have mpprun wait for an application that was lost", ("daemon/test_daemon_mpprun.py",)),
    Attack("9", "take all descriptors by applications that wait, mail to a program or to strangers",
           ("engine/test_engine_applications.py::test_commands_wait_for_so_many_requests_of_a_user_and_no_more",
            "engine/test_engine_submit.py::test_values_that_are_none_are_refused")),
    Attack("9", "leave the sandbox of a user exit: namespaces, shared memory, files",
           (f"{_DECIDER}::test_the_process_reaches_neither_the_daemons_socket_nor_the_daemon",
            f"{_DECIDER}::test_nor_does_the_one_that_gives_notices_which_has_the_network",
            "decider/test_decider_file_check.py::test_nothing_of_a_candidate_runs_as_root_or_writes_a_file")),
)  # fmt: skip
"""Every attack; the house looks that each test is there."""


def attempt(attack: Attack) -> tuple[Counter[str], list[str]]:
    """Try an attack once, by pytest. Return how many tests held, were lost, or were left, and what the judge
    said of the lost ones."""
    with tempfile.TemporaryDirectory(prefix="nqspy-attacks-") as folder:
        os.chmod(folder, 0o755)
        told = Path(folder) / "told.xml"
        # As scripts/test: nqspy as it is installed, not as it lies here.
        words = [str(Path(sys.executable).parent / "pytest"), "-q", "-p", "no:cacheprovider",
                 f"--junitxml={told}", f"--basetemp={folder}/t"]  # fmt: skip
        run = subprocess.run(
            [*words, *(f"tests/{name}" for name in attack.tests)], cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not told.exists():
            return Counter(lost=1), [f"it could not be tried: {(run.stdout + run.stderr)[-2000:]}"]
        cases = list(ElementTree.parse(told).getroot().iter("testcase"))
    counts, texts = Counter[str](), []
    for case in cases:
        wrong = [*case.findall("failure"), *case.findall("error")]
        counts["left" if case.find("skipped") is not None else "lost" if wrong else "held"] += 1
        name = f"GOT THROUGH: {attack.name}: {case.get('name')}"
        texts += [f"{name}: {each.get('message')}"[:2000] for each in wrong]
    return counts, texts


def _row(part: str, counts: Counter[str], name: str) -> str:
    tries = counts["held"] + counts["lost"]
    return f"{part:<4}{tries:>6}{counts['held']:>6}{counts['left']:>6}  {name}"


def main(parts: Iterable[str], tries: int) -> int:
    """Try the attacks of these parts (1 to 9; none: all) so many times each, and print a table. Return 1 if
    any got through, or none could be tried. Raises ValueError for an unknown part."""
    wanted, every, lost = set(parts), Counter[str](), []
    if unknown := wanted - {attack.part for attack in ATTACKS}:
        raise ValueError(f"there is no part {min(unknown)} of the attacks; there are 1 to 9")
    print(f"{'part':<4}{'tries':>6}{'held':>6}{'left':>6}  attack", flush=True)
    for attack in ATTACKS:
        if not wanted or attack.part in wanted:
            results = [attempt(attack) for _ in range(tries)]
            counts = sum((counts for counts, _ in results), Counter[str]())
            every += counts
            lost += [text for _, texts in results for text in texts]
            print(_row(attack.part, counts, attack.name), flush=True)
    print(_row("all", every, f"as {'root' if os.geteuid() == 0 else 'a plain user'}"))
    if every["left"]:
        print("left: not tried here, most need root and what root may make (users, small file systems)")
    print("\n".join(lost))
    return 1 if lost or not every["held"] else 0
