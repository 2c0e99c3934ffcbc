"""Several hosts on one machine, for tests: each has its own network, processes, /tmp, /dev/shm, home directory, host name and sshd.

    with Cluster(["a", "b"], directory) as cluster:
        cluster["a"].run(["ssh", "b", "hostname"])

The hosts are joined by a bridge in a separate namespace; addresses are 10.77.0.x, seen nowhere else; interface names differ from host to host.
Every host's root may log in to every other one by key. Nothing of it has a name on the real machine: when the test process ends,
killed or not, the kernel kills every process of every host and removes all the namespaces. Needs root.

/proc shows all the hosts' processes (by their process ids outside) to the test, and /proc/PID/root a host's files.
"""

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

from host_link import BadLink
from processes import GUARD, Running, all_pids, command_line, is_alive, program, wait_until_none

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
INTERFACES = ["ens3", "enp1s0f0", "bond7", "eth-data", "wlp2s0", "net0"]
COVERED = ["/tmp", "/dev/shm", "/run", "/var/tmp"]
SSHD = "/usr/sbin/sshd"

SSHD_CONFIG = """
ListenAddress {address}
HostKey {host_key}
PidFile none
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""


def home_directory():
    return pwd.getpwuid(os.getuid()).pw_dir


def child_of(pid):
    """The one child of a wrapper."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(children) == 1, f"{command_line(pid)} has children {children}"
    return int(children[0])


def make_key(path, comment):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text()


def outermost(paths):
    """Those that lie in no other of them."""
    kept = []
    for path in sorted(set(paths)):
        if not any(os.path.commonpath([path, outer]) == outer for outer in kept):
            kept.append(path)
    return kept


class Namespace:
    """A process that holds namespaces open, and dies with this process."""

    def __init__(self, unshare_options, argv):
        self._wrapper = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *unshare_options, "--fork", "--kill-child=KILL", *argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def started(self, first_input=""):
        """Waits until the first process has reported that it is ready."""
        self._wrapper.stdin.write(first_input)
        self._wrapper.stdin.flush()
        line = self._wrapper.stdout.readline()
        assert line == "ready\n", f"no test host: {self._wrapper.args} said {line!r}"
        self.pid = child_of(self._wrapper.pid)

    def close(self):
        self._wrapper.kill()
        self._wrapper.wait()
        self._wrapper.stdin.close()
        self._wrapper.stdout.close()


class Host:
    """Made by Cluster. Thread-compatible."""

    def __init__(self, cluster, name, number):
        self.name = name
        self.address = f"10.77.0.{number + 1}"
        self.interface = INTERFACES[number % len(INTERFACES)]
        self._cluster = cluster
        self._directory = cluster.directory / name
        self._directory.mkdir()
        self.public_host_key = make_key(self._directory / "host_key", name).strip()
        self._namespace = Namespace(
            ["--net", "--mount", "--uts", "--ipc", "--pid", "--mount-proc", "--propagation", "private"],
            ["/usr/bin/python3", "-S", str(HERE / "host_init.py")],
        )
        self._started = []
        self._sshd = None
        self._link = None

    def start(self, home_files):
        self._namespace.started(json.dumps(self._spec(home_files)) + "\n")
        self.root = Path(f"/proc/{self._namespace.pid}/root")
        self.home = self.root / home_directory().lstrip("/")
        self._cluster.plug(self)
        self.start_sshd()
        self._files_at_start = self.files()

    def _spec(self, home_files):
        cover = COVERED + [home_directory()]
        return {
            "name": self.name,
            "cover": cover,
            "keep": outermost(map(os.path.realpath, [REPOSITORY, self._cluster.directory, sys.prefix, sys.base_prefix])),
            "bind": [[str(self._cluster.directory / "hosts"), "/etc/hosts"],
                     [str(self._cluster.directory / "shadow"), "/etc/shadow"],
                     [str(self._cluster.directory / "etc_ssh"), "/etc/ssh"]],
            "home": home_files,
        }  # fmt: skip

    @property
    def init_pid(self):
        return self._namespace.pid

    def _enter(self, argv, directory):
        # A shell that has started this process in the background lets it ignore SIGINT.
        namespaces = ["--net", "--mount", "--uts", "--ipc", "--pid"]
        return [
            "nsenter",
            "--target",
            str(self.init_pid),
            *namespaces,
            "--",
            "env",
            "--default-signal=INT",
            "-C",
            str(directory),
            *map(str, argv),
        ]

    def start_command(self, argv, directory="/", env=None, **options):
        """Starts a command on this host; ended with the cluster at the latest."""
        environment = {**os.environ, "HOME": home_directory(), **(env or {})}
        environment.pop("SSH_AUTH_SOCK", None)
        running = Running(self._enter(argv, directory), find_pid=child_of, env=environment, **options)
        self._started.append(running)
        return running

    def run(self, argv, timeout=GUARD, **options):
        """Runs a command to its end; has .returncode, .stdout and .stderr as text."""
        running = self.start_command(argv, **options)
        code = running.wait(timeout)
        return subprocess.CompletedProcess(argv, code, running.stdout.text, running.stderr.text)

    # ---- sshd

    def start_sshd(self):
        config = self._directory / "sshd_config"
        config.write_text(SSHD_CONFIG.format(address=self.address, host_key=self._directory / "host_key"))
        self._sshd = self.start_command([SSHD, "-D", "-e", "-f", config])
        self._sshd.stderr.wait_for("Server listening")
        self._sshd_pid = self._sshd.pid

    def kill_sshd(self):
        """SIGKILL to the listening sshd and to those of all sessions."""
        for pid in self._all_processes():
            if os.path.basename(program(pid)).startswith("sshd"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._sshd.wait()

    # ---- what runs and what is left

    def _all_processes(self):
        mine = os.readlink(f"/proc/{self.init_pid}/ns/pid")
        found = []
        for pid in all_pids():
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == mine and pid != self.init_pid and is_alive(pid):
                    found.append(pid)
            except OSError:
                pass  # it has ended
        return found

    def processes(self):
        """Process ids of all that runs here, the listening sshd apart."""
        return [pid for pid in self._all_processes() if pid != self._sshd_pid]

    def find(self, pattern):
        """Process ids whose command line contains `pattern`."""
        return [pid for pid in self.processes() if pattern in command_line(pid)]

    def ports(self):
        """Addresses on which something listens, the listening sshd's apart, and abstract sockets."""
        found = []
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.init_pid}/net/{table}").read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == "0A" and int(local.rpartition(":")[2], 16) != 22:
                    found.append(f"{table} {local}")
        for line in Path(f"/proc/{self.init_pid}/net/unix").read_text().splitlines()[1:]:
            if "@" in line:
                found.append(line.split()[-1])
        return found

    def files(self):
        """Paths of all files in the host's private directories: those that were there at its start have to be subtracted."""
        kept = [self.root / str(path).lstrip("/") for path in self._spec({})["keep"]]
        found = set()
        for directory in self._spec({})["cover"]:
            for parent, children, names in os.walk(self.root / directory.lstrip("/")):
                children[:] = [child for child in children if Path(parent, child) not in kept]
                found.update(
                    os.path.join("/", os.path.relpath(os.path.join(parent, name), self.root)) for name in names
                )
        return found

    def leftovers(self, timeout=GUARD):
        """Processes, ports and files that are still here although the job is over: lines of text, none if all is well. Waits for processes to go."""
        left = wait_until_none(self.processes, timeout)
        left += [f"port {port}" for port in self.ports()]
        left += [f"file {path}" for path in sorted(self.files() - self._files_at_start)]
        return [f"{self.name}: {line}" for line in left]

    # ---- trouble

    def cut(self):
        """Drops all packets between this host and the others from now on."""
        self._cluster.in_switch("ip", "link", "set", f"port-{self.name}", "down")

    def set_link(self, **faults):
        """Makes this host's cable this bad, until the next call: from_host= and to_host= each {"loss": SHARE, "delay": SECONDS} and whatever
        else bad_link.py knows."""
        self._bad_link().tell(**faults)

    def watch_link(self, **texts):
        """From now on counts the frames with each of these texts, from and to this host."""
        self._bad_link().tell(watch=texts)

    def seen_on_link(self):
        """How many frames with each text there were by now."""
        return self._bad_link().ask(seen=True)

    def _bad_link(self):
        if not self._link:
            self._link = BadLink(self._cluster, self)
        return self._link

    def cut_from(self):
        """Drops all packets that this host sends, but none that it receives."""
        self.set_link(from_host={"loss": 1})

    def cut_to(self):
        """Drops all packets sent to this host, but none that it sends."""
        self.set_link(to_host={"loss": 1})

    def cut_both(self):
        """Like cut(), but the interface stays up."""
        self.set_link(from_host={"loss": 1}, to_host={"loss": 1})

    def heal(self):
        self.set_link(from_host={}, to_host={})

    def change_address(self, address):
        """Replaces the IPv4 address, as a new lease of DHCP may; sshd keeps the old one."""
        commands = (
            f"ip address del {self.address}/24 dev {self.interface}; ip address add {address}/24 dev {self.interface}"
        )
        result = self.run(["sh", "-e", "-c", commands])
        assert result.returncode == 0, result.stderr
        self.address = address

    def use_ipv6_only(self):
        """Gives up the IPv4 address, also of lo, for one of IPv6; sshd listens there."""
        self.kill_sshd()
        self.address = self.address.replace("10.77.0.", "fd77::")
        commands = (
            f"ip -4 address flush dev {self.interface}; ip -4 address flush dev lo; "
            f"ip address add {self.address}/64 dev {self.interface} nodad"
        )
        result = self.run(["sh", "-c", commands])
        assert result.returncode == 0, result.stderr
        self.start_sshd()

    def hide(self, path):
        """Puts an empty directory over `path`, on this host only."""
        result = self.run(["mount", "-t", "tmpfs", "tmpfs", path])
        assert result.returncode == 0, result.stderr

    def put_over(self, source, path):
        """Puts the file `source` over the file `path`, on this host only."""
        result = self.run(["mount", "--bind", source, path])
        assert result.returncode == 0, result.stderr

    def close(self):
        if self._link:
            self._link.close()
        self._namespace.close()
        for running in self._started:
            running.end()


class Cluster:
    """Hosts by name. A context manager; starts all of them on entry."""

    def __init__(self, names, directory):
        self.directory = Path(directory).resolve()
        self._names = names
        self._hosts = {}
        self._switch = None

    def __getitem__(self, name):
        return self._hosts[name]

    def __iter__(self):
        return iter(self._hosts.values())

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception):
        self.close()

    def _start(self):
        self.directory.chmod(0o755)
        self._switch = Namespace(["--net"], ["sh", "-c", "echo ready; exec cat"])
        for number, name in enumerate(self._names):
            self._hosts[name] = Host(self, name, number)
        self._switch.started()
        self.in_switch("ip", "link", "add", "bridge", "type", "bridge")
        self.in_switch("ip", "link", "set", "bridge", "up")
        self._write_etc()
        home_files = self._home_files()
        for host in self:
            host.start(home_files)

    def _write_etc(self):
        lines = ["127.0.0.1 localhost", "::1 localhost"] + [f"{host.address} {host.name}" for host in self]
        (self.directory / "hosts").write_text("\n".join(lines) + "\n")
        # An account without a password is one thing, a locked one (with "!") another: sshd rejects all logins there.
        user = pwd.getpwuid(os.getuid()).pw_name
        shadow = self.directory / "shadow"
        shadow.write_text(f"{user}:*:19000:0:99999:7:::\nsshd:!:19000::::::\n")
        shadow.chmod(0o640)
        (self.directory / "etc_ssh").mkdir()  # no system-wide settings of the real machine

    def _home_files(self):
        public = make_key(self.directory / "user_key", "test")
        known = "".join(f"{host.name},{host.address} {host.public_host_key}\n" for host in self)
        return {
            ".ssh/id_ed25519": [(self.directory / "user_key").read_text(), 0o600],
            ".ssh/authorized_keys": [public, 0o600],
            ".ssh/known_hosts": [known, 0o600],
        }

    def switch_argv(self, *argv):
        return ["nsenter", "--target", str(self._switch.pid), "--net", "--", *argv]

    def in_switch(self, *argv):
        subprocess.run(self.switch_argv(*argv), check=True)

    def plug(self, host):
        """Joins a host to the bridge."""
        port = f"port-{host.name}"
        self.in_switch(
            "ip", "link", "add", port, "type", "veth", "peer", "name", host.interface, "netns", str(host.init_pid)
        )
        self.in_switch("ip", "link", "set", port, "master", "bridge", "up")
        result = host.run(
            ["sh", "-c", f"ip address add {host.address}/24 dev {host.interface} && ip link set {host.interface} up"]
        )
        assert result.returncode == 0, result.stderr

    def leftovers(self, timeout=GUARD):
        return [line for host in self for line in host.leftovers(timeout)]

    def close(self):
        for host in self:
            host.close()
        if self._switch:
            self._switch.close()
