"""A run on an engine, without an engine: its progress, the answers to its tasks, and its output."""

import pytest

from horovod.runner._engine_options import Options
from horovod.runner._engine_progress import EngineEnded, JobEnded, Progress, TaskBegan, TaskEnded
from horovod.runner._engine_run import Run
from horovod.runner._task_registry import TaskRegistry


@pytest.fixture
def elastic():
    return Progress(elastic=True, least=2, notice=10, deadline=60)


def test_start_is_waited_for_with_one_notice():
    progress = Progress(elastic=False, least=2, notice=10, deadline=60)
    progress.take(TaskBegan("task0"), 1)
    assert (progress.patience(4), progress.take_notice(4), progress.is_late(4)) == (6, False, False)
    assert progress.take_notice(10) and not progress.take_notice(11)
    assert progress.count() == "1 of 2 tasks have started"
    assert (progress.patience(50), progress.is_late(59), progress.patience(61), progress.is_late(60)) == (
        10,
        False,
        0,
        True,
    )
    progress.take(TaskBegan("task1"), 60)
    assert progress.has_started and progress.patience(61) is None and not progress.is_late(61)


def test_a_notice_after_the_deadline_is_not_waited_for():
    assert Progress(elastic=False, least=1, notice=10, deadline=3).patience(1) == 2


def test_attempts_of_one_task_are_one_task(elastic):
    for attempt in range(3):
        elastic.take(TaskBegan(f"task0.{attempt}"), attempt)
    assert not elastic.has_started and elastic.count() == "1 of 2 tasks have started"
    elastic.take(TaskEnded("task0.1", refused=False), 4)
    assert elastic.tasks_run, "it was an earlier attempt that ended"
    elastic.take(TaskEnded("task0.2", refused=False), 5)
    assert not elastic.tasks_run, "those before are gone, whether they have said so or not"


def test_one_refusal_ends_a_job_of_fixed_size():
    progress = Progress(elastic=False, least=2, notice=10, deadline=60)
    for name in ("task0", "task1"):
        progress.take(TaskBegan(name), 0)
    assert not progress.is_refused(30)
    progress.take(TaskEnded("task0", refused=True), 30)
    assert progress.is_refused(30)


def test_an_elastic_job_continues_with_a_task_that_runs(elastic):
    elastic.take(TaskBegan("task0.0"), 0)
    for second in range(0, 40, 2):
        elastic.take(TaskBegan(f"task1.{second}"), second)
        elastic.take(TaskEnded(f"task1.{second}", refused=True), second + 1)
        assert not elastic.is_refused(second + 1)
    elastic.take(TaskEnded("task0.0", refused=False), 40)
    elastic.take(TaskEnded("task1.38", refused=True), 40)
    assert elastic.is_refused(40), "no task runs"


def test_tasks_that_are_refused_in_turn_end_an_elastic_job(elastic):
    """Whenever one is refused, the other has just begun."""
    refused = []
    for second in range(15):
        elastic.take(TaskBegan(f"task{second % 2}.{second}"), second)
        elastic.take(TaskEnded(f"task{(second + 1) % 2}.{second - 1}", refused=True), second + 0.5)
        refused.append(elastic.is_refused(second + 0.5))
    assert refused == [False] * 10 + [True] * 5


def test_the_engine_may_end(elastic):
    elastic.take(JobEnded(0), 1)
    assert not elastic.engine_is_over
    elastic.take(EngineEnded(None), 2)
    assert elastic.engine_is_over


def test_a_task_comes_too_late_when_the_job_is_over():
    registry = TaskRegistry()
    assert not registry.begin("task0.0", "1") and registry.job_goes_on()
    assert [registry.end("task0.0"), registry.end("task0.0")] == [False, False]
    registry.close()
    assert registry.begin("task0.1", None) and not registry.job_goes_on()


def test_tasks_of_an_executor_that_leaves_are_taken_once_and_wanted_again():
    registry = TaskRegistry()
    for name, executor in (("task0.0", "1"), ("task1.0", "2"), ("task2.0", "1")):
        registry.begin(name, executor)
    registry.end("task2.0")
    asked = []
    assert registry.take_leaving(lambda executor: asked.append(executor) or executor == "1") == ["task0.0"]
    assert sorted(asked) == ["1", "2"]
    assert registry.take_leaving(lambda executor: executor == "1") == []
    assert registry.end("task0.0") and not registry.end("task1.0")
    registry.close()
    assert not registry.end("task0.0"), "the job is over"


@pytest.mark.parametrize("error", [ValueError("I/O operation on closed file"), SystemExit(1)])
def test_a_stream_of_the_users_that_fails_stops_nothing(error):
    class Closed:
        written = ""

        def write(self, text):
            self.written += text
            raise error

    closed = Closed()
    options = Options(env=None, stdout=closed, stderr=None, verbose=1, nics=None, timestamps=False, executable=None)
    Run(job=None, engine=None, elastic=False, least=1, start_timeout=60.0, options=options).on_output(1, "text\n")
    assert closed.written == "text\n"
