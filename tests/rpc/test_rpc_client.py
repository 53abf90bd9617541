"""The client library against a real server: typed errors, waiting, repetition over a restart."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import nqspy
from nqspy import errors
from nqspy.rpc import messages
from nqspy.rpc.client import Client
from nqspy.rpc.submission import submission


class Daemon:
    """Answers like a daemon; remembers submissions by their key."""

    def __init__(self):
        self.by_key = {}
        self.asked = []

    def __call__(self, asked):
        message = asked.message
        self.asked.append(message)
        return getattr(self, message["cmd"])(asked.handle.id, message)

    def submit(self, id, message):
        if message["items"][0]["spec"]["queue"] == "none":
            return messages.error_answer(id, "no such queue none", "no_queue", 170)
        number = self.by_key.setdefault(message["key"], len(self.by_key) + 1)
        return messages.result_answer(id, {"ids": [f"{number}.ymp"]})

    def list_requests(self, id, message):
        return messages.result_answer(id, [{"id": one, "state": "queued"} for one in message["ids"]])

    def wait(self, id, message):
        return messages.result_answer(id, [{"id": message["ids"][0], "state": "ended", "exit_status": 3}])

    def events(self, id, message):
        rows = [{"n": n} for n in range(message["after"] + 1, 6)][:2]
        last = rows[-1]["n"] if rows else message["after"]
        return messages.result_answer(id, {"events": rows, "last": last})

    def qmgr(self, id, message):
        return messages.result_answer(id, {"out": message["script"].upper()})

    def delete(self, id, message):
        return b""  # never answers


@pytest.fixture
def daemon():
    return Daemon()


def test_a_request_from_submission_to_its_end(counter, daemon, tmp_path):
    counter(daemon)
    script = tmp_path / "payload.sh"
    script.write_bytes(b"#!/bin/sh\necho \xff\n")
    with Client(tmp_path) as nqs:
        request = nqs.submit(
            script, "a", "b", queue="night", cpu="10:00", memory="2kw", pes=3, after=["3.ymp"]
        )
        assert (request.id, request.state) == ("1.ymp", "queued")
        assert request.wait()["exit_status"] == 3
        assert nqs.qmgr("show queue") == "SHOW QUEUE"
    item = daemon.asked[0]["items"][0]
    assert item["script"] == "#!/bin/sh\necho \xff\n"
    assert item["spec"]["ask"] == {"cpu": 600_000, "memory": 16_384, "pes": 3}
    assert (item["spec"]["name"], item["spec"]["name_given"]) == ("payload.sh", False)
    assert (item["spec"]["args"], item["spec"]["attributes"]) == (["a", "b"], ["after:3.ymp:ok"])
    assert "QSUB_WORKDIR=" in item["environment"]


def test_events_come_in_order_until_there_are_no_more(counter, daemon, tmp_path):
    counter(daemon)
    assert [event["n"] for event in Client(tmp_path).events(after=1)] == [2, 3, 4, 5]


def test_refusals_are_exceptions_with_text_code_and_status(counter, daemon, tmp_path):
    counter(daemon)
    with Client(tmp_path) as nqs, pytest.raises(errors.Refusal, match="no such queue none") as caught:
        nqs.submit("hostname\n", queue="none")
    assert (caught.value.code, caught.value.status) == ("no_queue", 170)
    with Client(tmp_path) as nqs, pytest.raises(errors.BadValue, match="is not a time"):
        nqs.submit("hostname\n", cpu="soon")
    with Client(tmp_path) as nqs, pytest.raises(errors.Refusal, match="no such script"):
        nqs.submit("missing.sh")


@pytest.mark.parametrize(("lines", "text"), [("no such job 4\n", "no such job 4"), ("", "153")])
def test_an_answer_in_text_form_is_its_text_or_a_refusal(counter, tmp_path, lines, text):
    def answer(asked):
        failed = asked.message["text"] == "wait"
        return messages.text_answer(asked.handle.id, 153 if failed else 0, "17.ymp\n", lines)

    counter(answer)
    with Client(tmp_path) as nqs:
        assert nqs.call("qselect", text="ids") == "17.ymp\n"
        with pytest.raises(errors.Refusal, match=text) as caught:
            nqs.call("message", ids=["4[1]"] * 3_000, text="wait")
    assert (caught.value.code, caught.value.status) == ("refused", 153)


def test_no_daemon_is_said_at_once(tmp_path):
    with (
        Client(tmp_path) as nqs,
        pytest.raises(errors.Unreachable, match="start it with `nqsd start --home "),
    ):
        nqs.submit("hostname\n")


def test_no_answer_in_time_is_an_error_and_wait_says_so(counter, daemon, tmp_path):
    counter(daemon)
    with Client(tmp_path, timeout=0.05) as nqs, pytest.raises(errors.Unreachable, match="gave no answer"):
        nqs.delete("1")
    daemon.wait = daemon.delete
    with Client(tmp_path) as nqs, pytest.raises(TimeoutError, match="has not ended"):
        nqs.wait("1", timeout=0.05)


def test_a_submission_is_repeated_over_a_restart_and_counts_once(counter, daemon, tmp_path):
    (tmp_path / "nqsd.pid").write_text("1\n")
    accepted = threading.Event()

    def lose_the_first_answer(asked):
        answer = daemon(asked)
        if not accepted.is_set():
            accepted.set()
            threading.Thread(target=first.server.close).start()
            first.server.put = lambda asked: None
            return b""
        return answer

    first = counter(lose_the_first_answer)
    ids = []
    with Client(tmp_path) as nqs:
        caller = threading.Thread(target=lambda: ids.append(nqs.submit("true\n").id))
        caller.start()
        assert accepted.wait(10)
        first.close()
        counter(daemon)
        caller.join()
    assert ids == ["1.ymp"]
    assert len(daemon.asked) == 2


def test_the_package_imports_nothing_before_it_is_asked_for():
    code = "import nqspy, sys; assert 'nqspy.rpc.client' not in sys.modules; print(nqspy.Client.__name__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "Client\n"
    with pytest.raises(AttributeError):
        _ = nqspy.Cleint
    assert Path(nqspy.__file__).name == "__init__.py"


@pytest.mark.parametrize(
    ("asked", "array"),
    [
        ("1-10:2%5", {"indices": [[1, 9, 2]], "limit": 5}), (range(1, 5), {"indices": [[1, 4, 1]]}),
        ([7, 1, 3], {"indices": [[1, 3, 2], [7, 7, 1]]}),
    ],
)  # fmt: skip
def test_the_library_submits_arrays(asked, array):
    assert submission("true\n", (), {"array": asked})["spec"]["array"] == array


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("array", ""), ("array", "x"), ("array", []), ("array", "1-3%0"), ("array", "1-3%x"),
        ("environment", {"": "x"}), ("environment", {"A=B": "x"}), ("environment", {"A\0B": "x"}),
        ("environment", {"A": "x\0y"}),
        ("array", 5), ("array", b"1-5"), ("array", [1.5]), ("after", 17), ("after", ["a", 3]), ("needs", [1]),
        ("environment", {5: "x"}), ("environment", ["A=b"]), ("consumables", ["gpu"]), ("speedup", 3),
        ("speedup", (8,)), ("eligible", "tomorrow"), ("workdir", 5), ("stdout", 5), ("cpu", [1]),
        ("cpu", True), ("wall", float("nan")), ("walls", [float("inf")]), ("walls", "10:00"), ("memory", 1.5),
        ("memory", -1), ("wall", -0.001),
        ("name", 5), ("queue", ["x"]), ("held", 1), ("sizes", 4), ("sizes", ["4"]), ("pes", "x"), ("key", 5),
    ],
)  # fmt: skip
def test_an_option_with_a_wrong_value_is_refused(option, wrong):
    with pytest.raises(errors.BadValue):
        submission("true\n", (), {option: wrong})


def test_an_option_that_is_none_is_left_out():
    assert submission("true\n", (), {"after": None, "sizes": None, "environment": None, "name": None}) == (
        submission("true\n", (), {})
    )


def test_other_arguments_of_the_wrong_type_are_refused_too(counter, daemon, tmp_path):
    counter(daemon)
    with Client(tmp_path) as nqs:
        request = nqs.submit("true\n")
        assert [each.id for each in nqs.requests(request, "2")] == ["1.ymp", "2"]
        for wrong in (
            lambda: nqs.submit(5), lambda: nqs.submit("true\n", 5), lambda: nqs.submit(None),
            lambda: nqs.requests(5), lambda: nqs.hold(5), lambda: nqs.release(None), lambda: nqs.wait(5),
            lambda: nqs.move("batch", ["1"]), lambda: nqs.delete({1}), lambda: nqs.qmgr({1}),
            lambda: nqs.call("hold", ids={"1"}), lambda: nqs.wait("1", timeout="1"), lambda: Client(5),
            lambda: Client(tmp_path, timeout="1"),
        ):  # fmt: skip
            with pytest.raises(errors.BadValue):
                wrong()
