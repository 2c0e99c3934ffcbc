"""A rehearsal on hosts that are reached over SSH, of a training that must add up in the end."""

import json

from elastic_job import FaultyJob

FAULTS = [
    {"kind": "kill", "at": {"step": 10}, "host": "b"},
    {"kind": "cut_link", "at": {"step": 20}, "host": "a"},
    {"kind": "slow_link", "at": {"step": 30}, "host": "b", "delay_ms": 10, "seconds": 1},
    {"kind": "exception", "at": {"step": 40}},
    {"kind": "lost_host", "at": {"step": 50}, "host": "b"},
    {"kind": "preemption", "at": {"step": 60}, "host": "a", "grace_seconds": 60},
]


def test_rehearsal_of_hosts(cluster, tmp_path):
    campaign, report = tmp_path / "campaign.json", tmp_path / "report.json"
    campaign.write_text(json.dumps({"seed": 1, "faults": [{**fault, "limit_seconds": 100} for fault in FAULTS]}))
    job = FaultyJob(cluster, ["--inject", campaign, "--inject-report", report], ["--step-seconds", 0.02])
    job.running.stderr.wait_for("no more are due", timeout=200)
    job.finish()
    found = json.loads(report.read_text())
    assert [fault["verdict"] for fault in found["faults"]] == ["as promised"] * len(FAULTS), job.running.everything()
    assert found["faults"][0]["target"].endswith("on b")
