"""examples/systemd: what systemd thinks of the units, and whether what they start is a job."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from joinable import Joinable

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "systemd"
UNITS = ["horovod-rendezvousd@.service", "horovod-agent@.service"]
TRAINS = "import horovod.numpy as hvd; hvd.init(); print('trains with', hvd.size(), flush=True)"


def with_programs_of_tests(text):
    return re.sub(r"/usr/bin/(horovod-\w+)", lambda found: shutil.which(found.group(1)), text)


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_units(tmp_path, unit):
    (tmp_path / unit).write_text(with_programs_of_tests((FOLDER / unit).read_text()))
    result = subprocess.run(["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, timeout=60)
    assert (result.returncode, unit in result.stderr) == (0, False), result.stderr


@pytest.fixture
def joinable(tmp_path):
    joinable = Joinable(tmp_path)
    yield joinable
    joinable.close()


def command(unit, settings):
    """The words of ExecStart, as systemd makes them: ${NAME} within a word; $NAME as words of its own."""
    line = re.search(r"^ExecStart=(.+)$", with_programs_of_tests((FOLDER / unit).read_text()), re.M).group(1)
    words = []
    for word in line.split():
        if re.fullmatch(r"\$\w+", word):
            words += shlex.split(settings[word[1:]])
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda found: settings[found.group(1)], word))
    return words


def test_the_units_start_a_job(joinable, tmp_path):
    settings = dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / "job.conf").read_text(), re.M))
    assert settings["LISTEN"] == settings["DAEMON"]
    settings["STATE_DIRECTORY"] = str(tmp_path / "job")
    (tmp_path / "job").mkdir(mode=0o700)
    settings["LISTEN"] = settings["METRICS"] = "127.0.0.1:0"
    daemon = joinable.start(*command(UNITS[0], settings))
    settings["DAEMON"] = daemon.stdout.wait_for(r"^(127\.0\.0\.1:\d+)$", 30).group(1)
    settings["COMMAND"] = shlex.join([sys.executable, "-c", TRAINS])
    token = tmp_path / "job" / "token"
    agents = [joinable.start(*agent_words(settings, token, name)) for name in ("a", "b")]
    for agent in agents:
        agent.stdout.wait_for("trains with 4", 60, count=2)
    for running in (*agents, daemon):
        assert running.wait(60) == 0, running.everything()


def agent_words(settings, token, name):
    words = [word.replace("/etc/horovod/%i.token", str(token)) for word in command(UNITS[1], settings)]
    return [words[0], "--host", name, *words[1:]]  # both are on one machine here
