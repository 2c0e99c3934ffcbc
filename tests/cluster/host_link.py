"""The link between a test host and its switch, when a test makes it bad."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class BadLink:
    """Between a host and the switch from now on: see bad_link.py."""

    def __init__(self, cluster, host):
        here, there, port = f"bad-{host.name}", f"bridged-{host.name}", f"port-{host.name}"
        program = [sys.executable, str(HERE / "bad_link.py")]
        turned_off = host.run([*program, "--without-offloads", host.interface])
        assert turned_off.returncode == 0, turned_off.stderr
        cluster.in_switch("ip", "link", "add", here, "up", "type", "veth", "peer", "name", there)
        cluster.in_switch(*program, "--without-offloads", there)
        cluster.in_switch("ip", "link", "set", port, "nomaster")
        cluster.in_switch("ip", "link", "set", there, "master", "bridge", "up")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *cluster.switch_argv(*program, port, here)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._expect("ready")

    def _expect(self, line):
        said = self._process.stdout.readline()
        assert said == line + "\n", f"the link said {said!r}"

    def tell(self, **wish):
        self._say(wish)
        self._expect("done")

    def ask(self, **wish):
        self._say(wish)
        return json.loads(self._process.stdout.readline())

    def _say(self, wish):
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
