"""A Slurm cluster on test hosts: Debian's slurmctld and munged on one of them, a slurmd on each of the others.

    with Cluster(["a", "b", "control"], directory) as cluster:
        slurm = Slurm(cluster["control"], [cluster["a"], cluster["b"]], directory / "slurm")
        slurm.run(["srun", "-N2", "hostname"])

All its files lie in one directory that all hosts share, as a cluster's nodes share the users' directories. The daemons end with their hosts.
"""

import os
import re

from polling import poll_until

# Slurm's usual ports: each test host has its own network.
CONFIG = """
ClusterName=test
SlurmctldHost={control.name}({control.address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
PlugStackConfig={directory}/plugstack.conf
MailProg=/bin/true
# Signals reach a step's own processes and not their children's groups, as with proctrack/cgroup, which most clusters have.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES
"""
NODE = "NodeName={host.name} NodeAddr={host.address} CPUs=8 RealMemory=1000"


class Slurm:
    """Takes jobs once it is made. Thread-compatible."""

    def __init__(self, control, nodes, directory, gpus=0):
        """`gpus`: how many each node has, in name only."""
        self._control = control
        self._gpus = gpus
        self.directory = directory
        self._node_count = len(nodes)
        self._configure(nodes)
        self._env = {"SLURM_CONF": str(directory / "slurm.conf")}
        self._start_munged()
        self._controller = self._start(control, "slurmctld")
        self._controller.stderr.wait_for("Running as primary controller")
        for host in nodes:
            self._start(host, "slurmd", "-N", host.name).stderr.wait_for("slurmd started")

    def _configure(self, nodes):
        for name in ("", "state", *(f"spool-{host.name}" for host in nodes)):
            (self.directory / name).mkdir()
        lines = "\n".join(NODE.format(host=host) + (f" Gres=gpu:{self._gpus}" if self._gpus else "") for host in nodes)
        self._write("slurm.conf", CONFIG.format(control=self._control, directory=self.directory, nodes=lines))
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")  # not used, but else one is looked for
        self._write("plugstack.conf", "")
        for number in range(self._gpus):
            (self.directory / f"nvidia{number}").symlink_to("/dev/null")  # it must be a device
        self._write("gres.conf", f"Name=gpu File={self.directory}/nvidia[0-{self._gpus - 1}]\n" if self._gpus else "")
        self._write("munge.key", os.urandom(64).hex())

    def _write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o600)

    def _start_munged(self):
        # In the background it is ready when the command ends; it dies with the host. Its files belong to a test, hence --force.
        names = {
            "socket": "munge.socket",
            "key-file": "munge.key",
            "log-file": "munged.log",
            "pid-file": "munged.pid",
            "seed-file": "seed",
        }
        result = self._control.run(
            ["munged", "--force", *(f"--{option}={self.directory / name}" for option, name in names.items())]
        )
        assert result.returncode == 0, result.stderr

    def _start(self, host, daemon, *options):
        return host.start_command([daemon, "-D", *options], env=self._env)

    def run(self, argv, directory, env=None, **options):
        """Runs a command of Slurm's users on the control host."""
        return self._control.run(argv, directory=directory, env={**self._env, **(env or {})}, **options)

    def submit(self, argv, directory):
        """sbatch, with these arguments."""
        result = self.run(["sbatch", *argv], directory)
        assert result.returncode == 0, result.stderr
        return Job(self, re.fullmatch(r"Submitted batch job (\d+)\n", result.stdout)[1], directory)

    def wait_until_idle(self, timeout):
        """Until no job has anything left on any node: a job that wants all of them for itself comes to its turn."""
        nodes = f"--nodes={self._node_count}"
        result = self.run(["srun", nodes, "--exclusive", f"--immediate={timeout}", "true"], "/", timeout=timeout + 20)
        assert result.returncode == 0, result.stderr

    def set_down(self, host):
        """What Slurm does itself with a node that it has not heard from for a while."""
        result = self.run(["scontrol", "update", f"NodeName={host.name}", "State=DOWN", "Reason=lost"], "/")
        assert result.returncode == 0, result.stderr

    def start_soon(self, job, timeout):
        """Spares a job that was requeued the two minutes for which Slurm holds it back. Not all: a node that has ended a job refuses one of the same
        number that starts in the same second."""
        show = ["scontrol", "show", "job", job.number]
        poll_until(lambda: "PENDING" in self.run(show, "/").stdout, "the state PENDING", timeout)
        result = self.run(["scontrol", "update", f"JobId={job.number}", "StartTime=now+2seconds"], "/")
        assert result.returncode == 0, result.stderr

    def follow(self, path):
        """The Stream of a file's lines."""
        return self._control.start_command(["tail", "-n", "+1", "--follow=name", "--retry", path]).stdout

    def wait_for_controller(self, pattern, timeout):
        """Until slurmctld logs it. AssertionError otherwise."""
        self._controller.stderr.wait_for(pattern, timeout)


class Job:
    """A batch job."""

    def __init__(self, slurm, number, directory):
        self._slurm = slurm
        self.number = number
        self.output = slurm.follow(directory / f"slurm-{number}.out")

    def wait(self, timeout):
        """Returns "STATE EXIT_CODE:SIGNAL" once it has ended."""
        try:
            self._slurm.wait_for_controller(rf"_job_complete: JobId={self.number} done", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output.text}") from None
        show = ["scontrol", "show", "job", self.number]
        poll_until(
            lambda: "JobState=COMPLETING" not in self._slurm.run(show, "/").stdout, "the end of COMPLETING", timeout
        )
        shown = self._slurm.run(show, "/").stdout
        return f"{re.search(r'JobState=(.*?) ', shown)[1]} {re.search(r'ExitCode=(.*?)$', shown, re.M)[1]}"
