"""A job over SSH on two hosts: checks the placement, and that training on parts of a batch equals training on the whole batch."""

import json
import re
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def run_job(cluster, arguments, host="launcher", timeout=120):
    result = cluster[host].run(["horovodrun", *arguments], timeout=timeout)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def worlds_of(output):
    lines = re.findall(r"^\[(\d+)\]<stdout>:\s*world (.*)$", output, re.M)
    worlds = {int(rank): json.loads(text) for rank, text in lines}
    assert len(worlds) == len(lines)
    return worlds


@pytest.mark.parametrize("starter", ["launcher", "a"])
def test_every_rank_knows_its_place(cluster, starter):
    output = run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "report_world.py"], host=starter)
    worlds = worlds_of(output)
    assert sorted(worlds) == [0, 1, 2, 3]
    for rank, world in worlds.items():
        expected = {
            "rank": rank,
            "size": 4,
            "local_rank": rank % 2,
            "local_size": 2,
            "cross_rank": rank // 2,
            "cross_size": 2,
        }
        assert {key: world[key] for key in expected} == expected
        assert world["environment"] == expected
        assert world["host"] == world["named"] == "ab"[rank // 2]
    assert cluster.leftovers() == []


def test_scripts_for_torchrun_find_rank_0(cluster):
    """On hosts with other numbers of slots, so that a group's rank is not a worker's cross rank."""
    script = SCRIPTS.parent.parent / "e2e" / "jobs" / "torchrun_script.py"
    output = run_job(cluster, ["-np", "3", "-H", "a:1,b:2", "python", script])
    entries = [json.loads(line.split(">:", 1)[1]) for line in output.splitlines() if ">:{" in line]
    entries.sort(key=lambda entry: entry["rank"])
    assert [(entry["local_rank"], entry["GROUP_RANK"]) for entry in entries] == [(0, "0"), (0, "1"), (1, "1")]
    assert {entry["GROUP_WORLD_SIZE"] for entry in entries} == {"2"}
    assert all(entry["weights"] == entries[0]["weights"] for entry in entries)


def test_np_limits_the_slots_used_and_hosts_may_differ(cluster):
    worlds = worlds_of(run_job(cluster, ["-np", "3", "-H", "a:1,b:4", "python", SCRIPTS / "report_world.py"]))
    places = {rank: (world["host"], world["local_rank"], world["local_size"]) for rank, world in worlds.items()}
    assert places == {0: ("a", 0, 1), 1: ("b", 0, 2), 2: ("b", 1, 2)}
    assert [worlds[rank]["cross_size"] for rank in range(3)] == [2, 2, 1]


def test_agents_that_join_share_a_machine_only_within_a_network_namespace(cluster, tmp_path):
    daemon = cluster["launcher"].start_command(
        ["horovod-rendezvousd", "--listen", f"{cluster['launcher'].address}:0", "--np", "4"]
        + ["--token-file", tmp_path / "token"]
    )
    address = daemon.stdout.wait_for(r"^\S+:\d+$").group()
    join = ["horovod-agent", "--join", address, "--token-file", tmp_path / "token", "--host"]
    report = ["--", "python", SCRIPTS / "report_world.py"]
    agents = [cluster[name[0]].start_command([*join, name, *report]) for name in ("a1", "b1", "a2", "b2")]
    assert [agent.wait(60) for agent in agents] == [0] * 4, [agent.everything() for agent in agents]
    assert daemon.wait() == 0, daemon.everything()
    worlds = worlds_of("".join(agent.stdout.text for agent in agents))
    places = sorted((world["host"], world["local_rank"], world["local_size"]) for world in worlds.values())
    assert places == [("a", 0, 2), ("a", 1, 2), ("b", 0, 2), ("b", 1, 2)]
    assert {world["cross_size"] for world in worlds.values()} == {2}
    assert worlds[0]["host"] == worlds[1]["host"]
    assert cluster.leftovers() == []


def test_weights_equal_those_of_one_process_with_the_whole_batch(cluster, tmp_path):
    script = SCRIPTS / "train_and_compare.py"
    run_job(cluster, ["-np", "4", "-H", "a:2,b:2", "python", script, tmp_path / "four", "30"])
    run_job(cluster, ["-np", "1", "-H", "a:1", "python", script, tmp_path / "one", "30"])
    four, one = torch.load(tmp_path / "four"), torch.load(tmp_path / "one")
    assert four.keys() == one.keys()
    for name, weights in one.items():
        assert torch.allclose(four[name], weights, rtol=1e-9, atol=1e-12), name


def test_network_of_the_job_can_be_chosen(cluster):
    output = run_job(
        cluster,
        ["-np", "2", "-H", "a:1,b:1", "--network-interfaces", "10.77.0.0/24", "python", SCRIPTS / "report_world.py"],
    )
    assert len(worlds_of(output)) == 2


def test_hostfile_and_ssh_options(cluster, tmp_path):
    (tmp_path / "hosts.txt").write_text("# two hosts\na slots=1\n\nb slots=1\n")
    key = cluster["launcher"].home / ".ssh/id_ed25519"
    key.rename(key.with_name("job_key"))
    identity = "/" + str(key.with_name("job_key").relative_to(cluster["launcher"].root))
    output = run_job(
        cluster, ["-np", "2", "--hostfile", tmp_path / "hosts.txt", "-p", "22", "-i", identity, "python", SCRIPTS / "report_world.py"]
    )  # fmt: skip
    assert [world["host"] for _, world in sorted(worlds_of(output).items())] == ["a", "b"]


def test_environment_and_directory_reach_the_workers(cluster):
    code = "import os; print('got', os.environ['FROM_LAUNCHER'], os.environ['FROM_FLAG'], os.getcwd())"
    result = cluster["launcher"].run(
        ["horovodrun", "-np", "2", "-H", "a:1,b:1", "-x", "FROM_FLAG=x y'z", "python", "-c", code],
        env={"FROM_LAUNCHER": 'a "b" $HOME'}, directory="/usr",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.count('got a "b" $HOME x y\'z /usr\n') == 2
