"""What `qstat --why` says, and the summaries of queues, character by character where other programs read
them."""

from nqspy.core import features  # noqa: F401  declares the kinds of reasons
from nqspy.model import events as ev
from nqspy.model.queues import Complex, Queue
from nqspy.model.reasons import KINDS, NEEDED
from nqspy.model.requests import Reservation, Used
from nqspy.report import json_objects, summaries
from nqspy.report.time_text import zone_of
from nqspy.report.why import both, eta_text, why_text

PARIS = zone_of("Europe/Paris")


def objects(book):
    place = json_objects.AnswerContext("ymp", PARIS, book.at(30))
    return [json_objects.request_object(r, place) for r in book.site.requests.values()]


# ---------------------------------------------------------------- queues
COUNTS = {"night": {"running": 1, "queued": 1}, "day": {"held": 1}}


def test_the_batch_summary_has_nqss_heads_counts_and_totals(book):
    book.site.settings.queues["night"].run_limit = 4
    book.site.settings.queues["night"].priority = 20
    book.site.settings.queues["day"].started = False
    assert summaries.nqs_batch_summary(book.site, COUNTS) == (
        "-----------------------\n"
        "NQS BATCH QUEUE SUMMARY\n"
        "-----------------------\n"
        "QUEUE NAME LIM TOT ENA STS QUE RUN WAI HLD ARR EXI\n"
        "---------- --- --- --- --- --- --- --- --- --- ---\n"
        "night        4   2 yes  on   1   1   0   0   0   0\n"
        "day         --   1 yes off   0   0   0   1   0   0\n"
        "---------- --- --- --- --- --- --- --- --- --- ---\n"
        "ymp         --   3           1   1   0   1   0   0\n"
    )


def test_a_stopped_queue_with_running_requests_is_stopping(book):
    book.site.settings.queues["night"].started = False
    assert " ing " in summaries.nqs_batch_summary(book.site, COUNTS)


def test_pipe_queues_show_their_destinations(book):
    book.site.settings.queues["batch"] = Queue("batch", kind="pipe", destinations=("express", "night"))
    last = summaries.pipe_summary(book.site, {}).splitlines()[-1]
    assert last.split()[:4] == ["batch", "--", "0", "no"]
    assert last.endswith("express night")
    assert "night " not in summaries.pipe_summary(book.site, {}).splitlines()[3]


def test_limits_show_what_counts_against_them(book):
    book.site.settings.queues["night"].memory_limit = 1 << 30
    book.site.settings.queues["night"].user_limit = 2
    line = next(x for x in summaries.limits(book.site, COUNTS).splitlines() if x.startswith("night"))
    assert line.split() == ["night", "--/1", "2", "--", "1gb/64mb", "--/2"]


def test_complexes_show_limits_and_members(book):
    book.site.settings.complexes["prime-time"] = Complex("prime-time", ("night", "day"), user_limit=2)
    line = summaries.complexes(book.site, COUNTS).splitlines()[-1]
    assert line.split() == ["prime-time", "--", "2", "--", "1", "night", "day"]
    assert "ymp" in summaries.mpp(book.site, COUNTS).splitlines()[-1]


def test_the_posix_queue_table(book):
    text = summaries.queues_posix(list(book.site.settings.queues.values()), COUNTS).splitlines()
    assert text[0] == "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type"
    assert text[1] == "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----"
    assert text[2] == "night                0     2 yes yes     1     1     0     0     0     0 Exec"


# ---------------------------------------------------------------- why
def test_why_says_who_keeps_a_request_back_and_what_it_needs(book):
    waiting = objects(book)[1] | {
        "reason": {"code": "LIMIT", "who": "queue night", "text": "run limit 1 is reached", "until": None},
        "priority": {"total": 1.5, "share": 0.5, "cpu": 0.0, "memory": 0.0, "time": 1.0, "at": "T"},
        "position": 1,
        "estimate": {
            "latest": {"start": None, "basis": "1.ymp has no wall limit"},
            "probably": {"start": "2026-03-02T21:10:00.000+01:00", "basis": "limits of what runs"},
            "as_of": "2026-03-01T23:50:00.000+01:00",
        },
    }
    text = why_text(waiting)
    for words in (
        "2.ymp",
        "run limit 1 is reached",
        "queue night (LIMIT)",
        "1 in queue night",
        "1.5000",
        "  latest:   unknown: 1.ymp has no wall limit",
        "  probably: tomorrow 21:10, limits of what runs",
    ):
        assert words in text


def test_what_is_needed_follows_from_the_kind_of_its_reason_else_from_its_code(book):
    by_kind, by_code = (
        KINDS["limit_shut"]("queue b", "run", 0, "queue b"),
        KINDS["SUSPENDED"]("olga", "stopped"),
    )
    assert by_kind.needed != NEEDED[by_kind.code]
    assert by_code.needed == NEEDED[by_code.code]
    for cause in (by_kind, by_code):
        reason = {"reason": json_objects.reason_object(cause, PARIS), "needed": cause.needed}
        [line] = [each for each in why_text(objects(book)[1] | reason).splitlines() if "needed:" in each]
        assert line.split() == ["needed:", *cause.needed.format(id="2.ymp").split()]


def test_a_deleted_prerequisite_is_told_with_who_deleted_it(book):
    link = {
        "needed_by": "2.ymp", "id": "1.ymp", "word": "ok", "state": "ended", "end_reason": "deleted",
        "exit_status": None, "exit_signal": None,
        "reason": {"code": "ENDED", "who": "anne", "text": "", "until": None},
    }  # fmt: skip
    told = objects(book)[1] | {"chain": [link]}
    chain = "  chain:    2.ymp waits until 1.ymp has ended with exit status 0; 1.ymp is ended (deleted)"
    assert f"{chain}: by anne\n" in why_text(told)
    told["chain"] = [link | {"reason": {**link["reason"], "who": ""}}]
    assert f"{chain}\n" in why_text(told)


def test_why_says_who_redated_a_request_when_and_because_of_whose_start(book):
    place = json_objects.AnswerContext("ymp", PARIS, book.at(60))
    request = book.site.requests[2]
    assert json_objects.redating_object(request, place) is None
    book.add(1, ev.Redated((2,), book.at(1), 1, "machine_gun"))
    told = json_objects.request_object(request, place) | {
        "redated": json_objects.redating_object(request, place)
    }
    assert told["redated"] == {"at": told["date_in_queue"], "who": "machine_gun", "cause": "1.ymp"}
    line = "counts as submitted today 21:00, set by machine_gun when 1.ymp was started"
    assert line in why_text(told, PARIS.text(book.at(60)))


def test_why_of_an_ended_request_says_what_ended_it(book):
    request = book.site.requests[1]
    ended = ev.Ended(1, 1, "wall_limit", None, 15, Used(1000, 2000, 4096), "wall limit 2 s", "/o", "/e")
    row = {
        "seq": 1, "spec": request.spec, "queue": "night", "submitted": request.submitted, "ended": ended,
        "at": book.at(60), "request": request,
    }  # fmt: skip
    text = why_text(json_objects.ended_object(row, json_objects.AnswerContext("ymp", PARIS, book.at(60))))
    assert "wall_limit, signal 15" in text
    assert "wall limit 2 s" in text
    assert "1.00 s CPU" in text


def test_why_says_which_start_is_promised_who_holds_it_up_and_why_it_came_late(book):
    place = json_objects.AnswerContext("ymp", PARIS, book.at(60))
    request = book.site.requests[2]
    kept = Reservation(book.at(90), (1,), "what it needs is held by 1.ymp")
    told = json_objects.request_object(request, place) | {
        "reservation": json_objects.reservation_object(kept, True, place)
    }
    lines = why_text(told, PARIS.text(book.at(60))).splitlines()
    assert "  reserved: today 21:01 at the latest" in lines
    assert "  late:     what it needs is held by 1.ymp" in lines
    told["reservation"] = json_objects.reservation_object(Reservation(book.at(90), (1,)), True, place)
    lines = why_text(told, PARIS.text(book.at(60))).splitlines()
    assert "  reserved: today 21:01 at the latest; after the end of 1.ymp" in lines
    told["reservation"] = json_objects.reservation_object(Reservation(None), True, place)
    assert "  reserved: at an unknown time" in why_text(told).splitlines()
    told["reservation"] = json_objects.reservation_object(Reservation(book.at(90)), False, place)
    when = "2026-03-02 21:01 unless a request that passed it runs longer than expected"
    assert f"  reserved: {when}" in why_text(told).splitlines()


def waiting_at(id: str, latest: str | None, probably: str, why: str = "limits") -> dict:
    day = "2026-03-02T2"
    latest, probably = (each and f"{day}{each[1]}:00:00.000+01:00" for each in (latest, probably))
    told = {
        "latest": {"start": latest, "basis": why},
        "probably": {"start": probably, "basis": "the past"},
        "as_of": f"{day}0:00:00.000+01:00",
    }
    return {"id": id, "name": "job", "owner": "anne", "queue": "night", "estimate": told}


def test_eta_shows_both_starts_and_says_each_basis_once():
    rows = [waiting_at("1.ymp", "T1", "T0"), waiting_at("2.ymp", "T3", "T2")]
    rows += [waiting_at(f"{n}.ymp", None, "T2", "9.ymp has no wall limit") for n in range(3, 10)]
    lines = eta_text(rows).splitlines()
    assert lines[0].split() == ["request", "name", "owner", "queue", "at", "the", "latest", "probably"]
    assert lines[1].split() == ["1.ymp", "job", "anne", "night", "today", "21:00", "today", "20:00"]
    assert lines[3].split() == ["3.ymp", "job", "anne", "night", "-", "today", "22:00"]
    assert lines[10:] == [
        "at the latest: limits",
        "probably: the past",
        "3.ymp, 4.ymp, 5.ymp, 6.ymp, 7.ymp and 2 more: latest start unknown: 9.ymp has no wall limit",
    ]
    assert eta_text([]) == "no request waits\n"


def test_one_cause_for_which_both_starts_are_unknown_is_said_once():
    row = waiting_at("1.ymp", None, "T0", "it is held")
    row["estimate"]["probably"] = row["estimate"]["latest"]
    assert eta_text([row]).splitlines()[2:] == ["1.ymp: start unknown: it is held"]
    assert [*both(row["estimate"])] == [("start", "unknown: it is held")]


def test_eta_says_whose_start_rests_on_what_where_they_differ():
    rows = [waiting_at("1.ymp", "T1", "T0", "promised"), waiting_at("2.ymp", "T3", "T2")]
    assert eta_text(rows).splitlines()[3:] == [
        "at the latest (1.ymp): promised",
        "probably: the past",
        "at the latest (2.ymp): limits",
    ]
