"""The first process of a test host: makes the host's file system private, then reaps orphans until its standard input ends.

Started by netns.py as process 1 of new network, mount, process, IPC and host name namespaces; when it ends, the kernel ends all other processes of
the host and removes all the namespaces. Reads one line of JSON:
  name     the host name
  cover    directories on which an empty file system is mounted
  keep     directories that stay visible although they lie in a covered one
  bind     [[file, place]...]: files to put over others
  home     files of the home directory by name: [text, mode]
"""

import json
import os
import pwd
import select
import signal
import socket
import subprocess
import sys


def mount(*arguments, **options):
    subprocess.run(["mount", *arguments], check=True, **options)


def cover(directories, keep):
    kept = [(path, os.open(path, os.O_PATH)) for path in keep]
    for directory in directories:
        if os.path.isdir(directory):
            mount("-t", "tmpfs", "-o", "mode=" + oct(os.stat(directory).st_mode & 0o7777)[2:], "tmpfs", directory)
    for path, descriptor in kept:
        if any(os.path.commonpath([path, directory]) == directory for directory in directories):
            os.makedirs(path, exist_ok=True)
            # Not by name: that now leads into the covering file system.
            mount("--no-canonicalize", "--bind", f"/proc/self/fd/{descriptor}", path, pass_fds=[descriptor])
        os.close(descriptor)


def write_home(files):
    # Where ssh and sshd look, whatever HOME says.
    home = pwd.getpwuid(os.getuid()).pw_dir
    for name, (text, mode) in files.items():
        path = os.path.join(home, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", opener=lambda p, flags, mode=mode: os.open(p, flags, mode)) as file:
            file.write(text)


def reap_until_end_of_input():
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken)
    while True:
        ready = select.select([0, wake], [], [])[0]
        if 0 in ready:
            return
        os.read(wake, 4096)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def main():
    spec = json.loads(sys.stdin.readline())
    socket.sethostname(spec["name"])
    cover(spec["cover"], spec["keep"])
    mount("-t", "sysfs", "sysfs", "/sys")  # /sys/class/net of this host's network
    for source, place in spec["bind"]:
        mount("--bind", source, place)
    write_home(spec["home"])
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    print("ready", flush=True)
    reap_until_end_of_input()


if __name__ == "__main__":
    main()
