"""Rehearsals: horovodrun --inject does harm to the job that it runs, and says whether the job did what is promised."""

import json
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parent / "jobs"
# A job of two hosts that are this machine.
HOSTS = ("-np", 4, "--min-np", 2, "-H", "localhost:2,127.0.0.1:2")
# What ends only a hang of a busy machine.
LIMIT = 100
KILL = {"kind": "kill", "at": {"step": 5}, "limit_seconds": LIMIT}


def write(path, campaign):
    path.write_text(campaign if isinstance(campaign, str) else json.dumps(campaign))
    return path


class Rehearsal:
    def __init__(self, horovodrun, directory, faults, *options, checkpoints=()):
        self.directory = directory
        self.report_file = directory / "report.json"
        campaign = write(directory / "campaign.json", {"seed": 3, "faults": faults})
        job = [*HOSTS, "--inject", campaign, "--inject-report", self.report_file, *options]
        self.job = horovodrun.start(*job, sys.executable, JOBS / "rehearsed.py", directory, *checkpoints)

    def end(self):
        (self.directory / "end").touch()
        code = self.job.wait()
        return code, json.loads(self.report_file.read_text())

    def end_when_over(self):
        self.job.stderr.wait_for("no more are due")
        return self.end()


def test_campaign_of_all_kinds(horovodrun, tmp_path):
    other = "127.0.0.1"
    faults = [
        {"kind": "kill", "at": {"step": 5}, "rank": 1},
        {"kind": "slow_rank", "at": {"step": 6}, "delay_ms": 2, "seconds": 0.2},
        {"kind": "slow_link", "at": {"step": 7}, "delay_ms": 2, "seconds": 0.2},
        {"kind": "exception", "at": {"step": 8}, "host": other},
        {"kind": "cut_link", "at": {"step": 9}},
        {"kind": "wrong_gradient_value", "at": {"step": 10}, "rank": 0},
        {"kind": "full_disk", "at": {"seconds": 0.1}, "seconds": 1},
        {"kind": "stop", "at": {"step": 11}, "seconds": 1},
        {"kind": "stop", "at": {"step": 12}, "rank": 0},
        {"kind": "lost_host", "at": {"random": [0.1, 0.2]}, "host": "localhost"},
        # The last one, for which both hosts must be there: this one does not come back.
        {"kind": "preemption", "at": {"step": 2000}, "host": other, "grace_seconds": 60},
    ]
    for fault in faults:
        fault["limit_seconds"] = LIMIT
    rehearsal = Rehearsal(horovodrun, tmp_path, faults, checkpoints=[tmp_path / "checkpoints"])
    code, report = rehearsal.end_when_over()
    assert [fault["verdict"] for fault in report["faults"]] == ["as promised"] * len(faults), rehearsal.job.everything()
    assert (code, report["exit_code"], report["job_exit_code"]) == (0, 0, 0)
    assert report["as_promised"] is True
    assert all(fault["seconds"] < fault["limit_seconds"] == LIMIT for fault in report["faults"])
    table = rehearsal.job.stderr.text
    assert f"{len(faults)} of {len(faults)} faults as promised; the job ended well" in table
    assert "kill                  rank 1 on localhost" in table


def test_fault_that_was_never_due_is_not_as_promised(horovodrun, tmp_path):
    rehearsal = Rehearsal(horovodrun, tmp_path, [KILL, {"kind": "kill", "at": {"step": 10**12}}])
    rehearsal.job.stderr.wait_for("world of 3 workers formed")
    rehearsal.job.stdout.wait_for("begins at .* of 3")
    rehearsal.job.stdout.wait_for("begins at .* of 4", count=5)
    code, report = rehearsal.end()
    assert code == 70
    assert [fault["verdict"] for fault in report["faults"]] == ["as promised", "NOT done"]
    assert report["faults"][1]["happened"] == "the job ended before"


@pytest.mark.parametrize(
    ("campaign", "message"),
    [
        ("{", "campaign.json:1:2: a name in double quotes is expected"),
        ({}, 'campaign.json:1:1: "faults" is missing'),
        ({"faults": []}, '"faults" must be a list of at least one fault'),
        ({"faults": [{**KILL, "kind": "kil"}]}, "'kil' is no kind of fault; did you mean kill?"),
        ({"faults": [{**KILL, "kind": "lost_daemon"}]}, "lost_daemon can't be rehearsed here: the daemon of this job"),
        ({"faults": [{**KILL, "kind": "clock_step"}]}, "clock_step can't be rehearsed here: no deadline"),
        ({"faults": [{**KILL, "at": {"random": [1, 2]}}]}, '"random" needs a "seed"'),
        ({"faults": [{**KILL, "signal": 9}]}, 'there is no "signal" here'),
        ({"faults": [{**KILL, "at": {"step": "5"}}]}, '"step" must be a whole number'),
        ({"faults": [{**KILL, "rank": 9}]}, "kill of rank 9 can't happen: the job has 4 ranks at most"),
        (
            {"faults": [{"kind": "lost_host", "at": {"step": 1}, "host": "b"}]},
            "the job's hosts are localhost, 127.0.0.1",
        ),
    ],
)
def test_wrong_campaign_starts_nothing(horovodrun, tmp_path, campaign, message):
    file = write(tmp_path / "campaign.json", campaign)
    done = horovodrun.run(*HOSTS, "--max-np", 4, "--inject", file, "touch", tmp_path / "started")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("horovodrun: error: --inject: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inject", "campaign.json"], "--inject is for elastic jobs"),
        (["--inject-report", "report.json"], "--inject-report needs --inject"),
        (["--min-np", 1, "--elastic-restart", "--inject", "campaign.json"], "no --elastic-restart"),
        (["--min-np", 1, "--inject", "missing.json"], "missing.json: No such file"),
        (
            ["--min-np", 1, "--inject", "campaign.json", "--inject-report", "no/report"],
            "--inject-report: can't write no/report",
        ),
    ],
)
def test_options_that_do_not_fit(horovodrun, tmp_path, options, message):
    write(tmp_path / "campaign.json", {"faults": [KILL]})
    done = horovodrun.run("-np", 2, *options, "touch", "started")
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()


def test_only_the_command_line_asks_for_harm(horovodrun, tmp_path):
    campaign = write(tmp_path / "campaign.json", {"faults": [{"kind": "kill", "at": {"step": 1}}]})
    names = ("HOROVOD_INJECT", "HOROVODRUN_INJECT", "HOROVOD_INJECT_FILE", "INJECT")
    job = ["-np", 2, "--min-np", 1, sys.executable, JOBS / "rehearses_nothing.py"]
    done = horovodrun.run(*job, env=dict.fromkeys(names, str(campaign)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("disk is full: False pages: []") == 2
    assert "rehearsal" not in done.stderr
    settings = write(tmp_path / "settings.yaml", f"inject: {campaign}\n")
    done = horovodrun.run("--config-file", settings, *job)
    assert done.returncode == 2 and "inject" in done.stderr, done.stderr
