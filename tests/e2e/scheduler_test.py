"""The example scheduler: several elastic jobs share this machine's slots, and preemption costs none of them a step."""

import os
import sys
from pathlib import Path

from processes import Running, pids_with, wait_until_none
from training_log import TrainingLog

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEDULER = ROOT / ".dev" / "examples" / "scheduler"
TRAIN = ROOT / "tests" / "cluster" / "scripts" / "elastic_train.py"


def training(name, *flags):
    return " ".join(
        [sys.executable, f"{TRAIN} --framework numpy --job {name} --samples 240 --step-seconds 0.05", *flags]
    )


def test_a_second_job_gets_slots_of_the_first_and_gives_them_back(tmp_path):
    mark = f"scheduler-{os.getpid()}-{tmp_path.name}"
    first = training("one", f"--epochs 1000 --end-file {tmp_path / 'end'}")
    scheduler = Running(
        [str(SCHEDULER), "--slots", "3", "--job", f"1-3 {first}", "--job", f"2-2 {training('two', '--epochs 2')}"],
        env={**os.environ, "HVD_TEST_MARK": mark, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    one, two = TrainingLog(scheduler.stdout, "one"), TrainingLog(scheduler.stdout, "two")
    one.wait_until(lambda: two.all("done") and one.trains_with(3), 120, "all slots are the first's again")
    (tmp_path / "end").touch()
    assert scheduler.wait(240) == 0, scheduler.everything()
    assert one.check_samples(240, one.epochs()) == 0, "preempted without losing a step"
    assert two.check_samples(240, 2) == 0
    sizes = [size for size, _ in one.worlds().values()]
    assert 1 in sizes, f"job one gave slots to job two: {sizes}"
    assert sizes[-1] > 1, f"and got some back: {sizes}"
    assert {size for size, _ in two.worlds().values()} == {2}
    assert wait_until_none(lambda: pids_with(f"HVD_TEST_MARK={mark}\0".encode())) == []
