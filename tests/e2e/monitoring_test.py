"""examples/monitoring: the alerts and the dashboard, compared with the metrics that jobs really have, and with docs/operations.md."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from training_log import TrainingLog

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "monitoring"
TRAINING = ROOT / "tests" / "cluster" / "scripts" / "elastic_train.py"
COMMAND = [sys.executable, TRAINING, "--framework", "numpy", "--samples", "100000"]
ELASTIC_ONLY = {
    "horovod_failures_left",
    "horovod_max_workers",
    "horovod_min_workers",
    "horovod_seconds_since_checkpoint",
    "horovod_seconds_since_commit",
    "horovod_seconds_since_world",
    "horovod_seconds_without_world_total",
}


def alerts():
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions_of_dashboard():
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def dashboard():
    return json.loads((FOLDER / "dashboard.json").read_text())


def promtool(*arguments, folder=FOLDER):
    result = subprocess.run(["promtool", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def samples(horovodrun, *limits, checkpoints=()):
    """The names of the samples that a job serves while it trains. An elastic job must have reported a commit."""
    job = horovodrun.start("-np", "2", *limits, "--metrics", "127.0.0.1:0", *COMMAND, *checkpoints)
    address = job.stderr.wait_for(r"metrics at (http://\S+)$", 60).group(1)
    log = TrainingLog(job.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() >= 5, 90, "it trains")
    text = ""

    def is_complete(_):
        nonlocal text
        with urllib.request.urlopen(address, timeout=30) as page:
            text = page.read().decode()
        return not limits or re.search(r"^horovod_seconds_since_checkpoint\{", text, re.M)

    job.stdout.wait_until(is_complete, 60, "a checkpoint in the metrics")
    assert horovodrun.run("stop", "--now", "--job", re.search(r'job="(\w+)"', text).group(1)).returncode == 0
    assert job.wait(60) == 143, job.everything()
    return set(re.findall(r"^(\w+)\{", text, re.M)), text


def names_in(expressions):
    return set(re.findall(r"\bhorovod_\w+", "\n".join(expressions)))


@pytest.mark.parametrize(
    "arguments",
    [("check", "config", "prometheus.yml"), ("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml")],
)
def test_prometheus_accepts_the_files_and_the_alerts_fire_when_they_should(arguments):
    promtool(*arguments)


def test_every_alert_has_a_test():
    tests = yaml.safe_load((FOLDER / "rules_test.yml").read_text())["tests"]
    fired = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each.get("exp_alerts")}
    quiet = {each["alertname"] for test in tests for each in test["alert_rule_test"] if not each.get("exp_alerts")}
    assert fired == quiet == {rule["alert"] for rule in alerts()}


def test_alerts_and_dashboard_know_only_metrics_that_jobs_have(horovodrun, tmp_path):
    elastic, text = samples(horovodrun, "--min-np", "1", "--max-np", "2", checkpoints=["--checkpoint-dir", tmp_path])
    static, _ = samples(horovodrun)
    assert elastic - static == ELASTIC_ONLY and static <= elastic
    used = names_in([rule["expr"] for rule in alerts()] + expressions_of_dashboard())
    assert used <= elastic, used - elastic
    listed = (ROOT / "docs" / "operations.md").read_text().split("## Metrics")[1].split("### Alerts")[0]
    assert names_in([listed]) - {"horovod_rendezvousd"} == elastic
    kinds = set(re.findall(r'kind="(\w+)"', text))
    for kind in re.findall(r'kind="(\w+)"', str([rule["expr"] for rule in alerts()])):
        assert kind in kinds


def test_the_page_lists_the_alerts():
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(Horovod\w+)` \| `(.+?)` \| (\S+) \| .+ \|$", page, re.M)
    assert rows == [(rule["alert"], rule["expr"], rule.get("for", "-")) for rule in alerts()]


def test_the_dashboard_is_whole(tmp_path):
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells) and all(x < 24 for x, _ in cells)
    # Prometheus reads the expressions as those of recording rules.
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace('"$job"', '".*"')}
        for number, expression in enumerate(expressions_of_dashboard())
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", "panels.yml", folder=tmp_path)
