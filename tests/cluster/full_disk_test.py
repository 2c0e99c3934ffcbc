"""Disks without room behind what a job writes: its journal, its event log, and its output."""

from elastic_job import JoinedJob, workers_on
from faults import SLACK, kill

BACK_AGAIN = "the rendezvous daemon is there again"
WITHOUT_ROOM = "No space left on device"


def make_small_disk(host, path, size):
    assert host.run(["mkdir", "-p", path]).returncode == 0
    assert host.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", path]).returncode == 0


def fill(host, path):
    """All of it, but for what is left of the pages of files that are there."""
    assert WITHOUT_ROOM in host.run(["sh", "-c", f"cat /dev/zero >{path}/filler"]).stderr


def test_daemon_ends_and_continues_when_there_is_room(cluster):
    launcher = cluster["launcher"]
    small = cluster.directory / "small"
    make_small_disk(launcher, small, "1m")
    job = JoinedJob(cluster, state=small / "state")
    job.wait_for_size(4)
    job.wait_for_steps(3)
    fill(launcher, small)
    job.begin_trouble()

    def lost(text):
        return "lost the rendezvous daemon" in text

    while not lost(job.running.stdout.text):  # until its events need another page
        world = job.log.newest_world()
        kill(workers_on(cluster["b"])[:1])
        job.running.stdout.wait_until(
            lambda text, world=world: lost(text) or job.log.newest_world() > world,
            60,
            "the next world, or the daemon's end",
        )
    assert job.daemon.wait() == 1
    assert "journal" in job.daemon.stderr.text and WITHOUT_ROOM in job.daemon.stderr.text
    assert launcher.run(["rm", small / "filler"]).returncode == 0
    job.start_daemon()
    job.running.stdout.wait_for(BACK_AGAIN, SLACK, count=2)
    job.wait_for_size(4, 90)
    job.finish()


def test_event_log_and_output_cost_a_line_each(cluster):
    launcher = cluster["launcher"]
    for path in ("/run/log", "/run/out"):
        make_small_disk(launcher, path, "64k")
    fill(launcher, "/run/log")
    write = "print('x' * 63 * 10000)"
    command = [
        "horovodrun",
        "-np",
        "2",
        "-H",
        "a:1,b:1",
        "--event-log",
        "/run/log/events",
        "--output-filename",
        "/run/out/job",
        "python",
        "-c",
        write,
    ]
    done = launcher.run(command)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if WITHOUT_ROOM in line]
    assert sorted("/run/log/events" in line for line in lines) == [False, True], done.stderr
    assert sorted("/run/out/job/rank." in line for line in lines) == [False, True], done.stderr
