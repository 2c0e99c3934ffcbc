"""Every command of the README, the pages of docs/ and the READMEs of examples/ has a class: it is run here, or by another test, or
not at all, for a reason. A command without a class fails the test, so a new one in a page has to be classified.

A command is a line of a shell block or of an indented block, or text in backquotes that begins with a program and has at least
three words; shorter ones name a subcommand or an option. What the pages leave to the reader (hosts, addresses, train.py) is
substituted by what this machine has.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tools/site")]

from check_pages import fenced_blocks  # noqa: E402

from processes import Running, pids_with, wait_until_none  # noqa: E402

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/**/README.md"))]
SHELL, OTHER = {"bash", "sh", "shell", "console"}, {"python", "cpp", "c", "text", "json", "yaml", "toml", "ini"}
# With which text in backquotes begins if it is a command.
PROGRAM = (
    r"(\./)?tools/\S+|apt-get|bazel|bsub|cmake|cp|curl|docker|etcdctl|horovod-agent|horovod-rendezvousd|horovodrun|ip|jq|kubectl|"
    r"mpirun|pip|pkg-config|pkill|py-spy|python3?|qsub|ray|salloc|sbatch|scancel|scontrol|spark-submit|srun|ssh|torchrun"
)
# What looks like a command and is none: output, Python, a formula, a message.
NO_COMMAND = r"job\d: .*|state = hvd\.elastic.*|OMP_NUM_THREADS = .*|horovod-(agent|rendezvousd) [a-z].*"

TRAIN = r"python train(?:_elastic)?\.py"
# Commands that are run here, each with what its output has.
RUN = {
    r"horovodrun --check-build": r"^Available Frameworks:$",
    rf"horovodrun -np \d (?!.*--launcher).*--dry-run {TRAIN}": r"^2 processes: python train\.py$",
    rf"horovodrun -np \d .*--output-format json {TRAIN}": r'"text":"trained on 2 processes"',
    rf"horovodrun -np \d .*--output-format json {TRAIN} \| jq .*": r"^trained on 2 processes$",
    rf"horovodrun (--no-torch-env )?-np \d (?!.*(--launcher|--dry-run|--inject|--output-format json)).*{TRAIN}": r"trained on 2 processes$",
    r"python train\.py": r"^trained on 1 process$",
    r"python -c .*horovod.*": r"<module 'horovod'",
    r"python -c .*sys\.prefix.*": r"^/",
    r"horovod-rendezvousd --listen \S+ --np .*": r"^127\.0\.0\.1:\d+$",
    rf"horovod-agent --join (ADDRESS|[\d.:]+) .* -- (COMMAND|{TRAIN})": r"trained on 2 processes$",
    r"horovodrun status --connect (?!.*/var/lib).*": r"^job \w+.*: running, world 1, 2 ranks",
    r"horovodrun drain HOST --connect .*": r"",
    r"\./tools/bench/run (collectives|frameworks|gradients|recovery|start)( .*)?": r"\d",
    r"\./tools/run python tools/bench/recovery\.py .*": r"full size",
    r"python tools/site/draw_charts\.py": r"",
    r"pip install .*dist/.*whl.*": r"",
    r"ip -4 -o address show ib0": r"127\.0\.0\.1",
    r"(?s)#!.*\nmy-cluster .*": r"\Anode1:4\nnode2:4\n\Z",
    r"(?s)#!.*/spot/instance-action .*": r"^pkill -TERM -o -x horovod-agent$",
}
# What is substituted in them.
SUBSTITUTIONS = [
    (r"-H h\w*1:\d,h\w*2:\d", "-H localhost:2"),
    (r"( --?np) \d", r"\1 2"),
    (r"--slots (\d|N)", "--slots 2"),
    (r"--(listen|metrics) 10\.0\.0\.1:\d+", r"--\1 127.0.0.1:0"),
    (r"10\.0\.0\.1:7000|ADDRESS|DAEMON:PORT", '"$ADDRESS"'),  # as the daemon says
    (r"--token-file FILE", "--token-file token"),
    (r"-- COMMAND", "-- python train.py"),
    (r"drain HOST", "drain here"),
    (r"pip install", "pip --disable-pip-version-check install --no-index --no-deps --target installed"),
    (r"ib0", "lo"),
    (r"\./tools/bench/run collectives", f"python {ROOT}/tools/bench/collectives.py collectives"),
    (r"\./tools/bench/run (\w+)", rf"python {ROOT}/tools/bench/\1.py"),
    (r"\./tools/run python tools", f"python {ROOT}/tools"),
    (r"--rounds \d+", ""),
    (r"--kills \d+", "--kills 1"),
]
# The smallest arguments of a benchmark, whose figures are checked nowhere.
SHORT = "--rounds 1 --budget 0.01 --programs $PWD"
SMALLEST = {
    "collectives": f"--torch debian --sizes 64KB {SHORT}",
    "gradients": f"--torch debian --models resnet50 {SHORT}",
    "start": f"--torch debian {SHORT}",
    "frameworks": f"--rows 4B {SHORT}",
    "recovery": "",
}

# Files that a command finds in its directory.
FILES = {
    "train.py": """\
import os
import numpy
import horovod.numpy as hvd

hvd.init()
state = hvd.elastic.State(step=0)

@hvd.elastic.run
def train(state):
    while state.step < 20 or os.path.exists("endless"):
        assert (hvd.allreduce(numpy.ones(3), op=hvd.Sum) == hvd.size()).all()
        state.step += 1
        state.commit()
        if state.step == 1 and hvd.rank() == 0:
            print("trains", flush=True)

train(state)
print(f"trained on {hvd.size()} process" + "es" * (hvd.size() > 1), flush=True)
""",
    "hosts.sh": "#!/bin/sh\necho localhost:2\n",
    "bin/my-cluster": "#!/bin/sh\nprintf 'node1\\nnode2\\n'\n",
    "bin/curl": "#!/bin/sh\necho word\n",  # AWS has announced the end
    "bin/pkill": '#!/bin/sh\necho pkill "$@"\n',
}

# Commands that another file runs, each with that file and with what it has of the command.
BENCHMARKS, SLURM, TOOLS = "tests/e2e/benchmarks_test.py", "tests/cluster/slurm_test.py", "tests/e2e/quickstart_test.py"
ELSEWHERE = {
    # Set-up, packages
    r"(\./)?tools/build_wheel": ("tools/gate/packages", "tools/build_wheel"),
    r"\./tools/deb": ("tools/gate/packages", "tools/deb"),
    r"tools/build": ("tools/gate/table.py", '"tools/build"'),
    r"\./tools/setup --torch pip --lightning": (
        "tools/gate/table.py",
        '"tools/setup", "--torch", "pip", "--lightning"',
    ),
    r"tools/check_packages dist/.*": ("tools/gate/packages", 'tools/check_packages" "${packages[@]}"'),
    r"apt-get install \./dist/horovod_\*\.deb python3-torch": ("tools/check_packages", "apt-get install -y"),
    r"pkg-config --libs horovod-rendezvous": ("tools/check_packages", "pkg-config --cflags --libs horovod-rendezvous"),
    r"\./tools/quickstart": (TOOLS, 'partial(tool, "quickstart")'),
    rf"\./tools/run horovodrun -np \d {TRAIN}": (TOOLS, 'tool("run", *arguments.split(), "horovodrun"'),
    r"\./tools/run --torch debian COMMAND": (TOOLS, '"--torch debian": ('),
    r"\./tools/run --frameworks newest COMMAND": (TOOLS, '"--frameworks newest": ('),
    r"\./tools/run --frameworks mxnet COMMAND": (TOOLS, '"--frameworks mxnet": ('),
    r"\./tools/run --engines newest COMMAND": (TOOLS, '"--engines newest": ('),
    r"PYTHONPATH=\$PWD/\.dev/lightning-2 \./tools/run COMMAND": ("tools/gate/table.py", "{dev}/lightning-2"),
    r"pip install torch": ("tools/setup", "torch==2"),
    r"pip install jax optax scikit-learn": ("tools/setup", "jax==0.10.2 optax==0.2.8 scikit-learn"),
    r"pip install mxnet==1\.9\.1 'numpy<1\.24' scikit-learn": ("tools/setup", "mxnet==1.9.1 numpy<1.24 scikit-learn"),
    r"pip install pyspark": ("tools/setup", "pyspark==4"),
    r"pip install ray": ("tools/setup", "ray[train]=="),
    r"pip install distributed": ("tools/setup", "distributed=="),
    r"pip install tf-keras": ("tools/setup", "tf-keras=="),
    r"\./tools/bench/run allreduce( .*)?": (BENCHMARKS, 'bench("collectives.py", "allreduce"'),
    r"\./tools/bench/run threads --rounds \d": (BENCHMARKS, '"threads.py"'),
    # What docs/reliability.md promises
    r"tools/run --torch debian pytest tests/(cluster|e2e)/.*": ("tools/gate/table.py", '"tests/cluster", root=True'),
    r"KILLS=\d+ tools/run --torch debian pytest tests/torch_distributed/backend_test\.py": (
        "tools/gate/table.py",
        '"tests/torch_distributed/{name}_test.py"',
    ),
    r"tools/run --torch debian python python/tests/run_ranks\.py 1 .*": (
        "tools/gate/suite.py",
        '"python/tests/run_ranks.py"',
    ),
    r"bazel run -c opt //tests/simulation:simulate .*": (
        "tests/simulation/control_plane_test.cc",
        "RunWithSuccessors(seed",
    ),
    # Rehearsals
    rf"horovodrun -np \d --min-np \d -H \S+ --inject campaign\.json --inject-report report\.json {TRAIN}": (
        "tests/e2e/rehearsal_test.py",
        '"--inject", campaign, "--inject-report"',
    ),
    # Examples
    r"horovodrun -np \d (--min-np 1 )?python examples/(pytorch|numpy)_(?!lightning)\w+\.py.*": (
        "tests/e2e/examples_test.py",
        "horovodrun (.*)",
    ),
    r"(horovodrun -np \d python|torchrun --nproc-per-node 2) examples/torch_\w+_digits\.py": (
        "tests/torch_distributed/digits_test.py",
        "examples/README.md",
    ),
    r"horovodrun --encrypt-data -np 2 python examples/torch_ddp_digits\.py": (
        "tests/torch_distributed/launchers_test.py",
        '"horovodrun", "--encrypt-data"',
    ),
    r"torchrun --nproc-per-node 2 mistake\.py BACKEND CASE": ("tests/torch_distributed/backend_test.py", "MISTAKES"),
    r"horovodrun -np 2 python examples/pytorch_lightning_mnist\.py": (
        "tests/e2e/lightning_test.py",
        "examples/pytorch_lightning_mnist.py",
    ),
    r"horovodrun -np 2 python examples/tensorflow2_digits\.py": (
        "python/tests/tensorflow/test_tensorflow_example.py",
        "tensorflow2_digits",
    ),
    r"(KERAS_BACKEND=jax )?horovodrun -np 2 python examples/keras_digits\.py": (
        "python/tests/keras/test_keras_examples.py",
        "keras_digits",
    ),
    r"horovodrun -np 2 --min-np 1 python examples/keras_elastic_digits\.py": (
        "python/tests/keras/test_keras_examples.py",
        "keras_elastic_digits",
    ),
    r"horovodrun -np 2 python examples/jax_digits\.py": ("python/tests/jax/test_jax_example.py", "jax_digits"),
    r"horovodrun -np 2 python examples/mxnet_digits\.py": ("python/tests/mxnet/test_mxnet_example.py", "mxnet_digits"),
    r"python examples/scheduler\.py .*": ("tests/e2e/embedding_test.py", '"scheduler.py"'),
    r"\.dev/examples/scheduler .*": ("tests/e2e/scheduler_test.py", '"examples" / "scheduler"'),
    # The library
    r"tools/install PREFIX": ("tests/e2e/embedding_test.py", "tools/install_library.py"),
    r"cp examples/scheduler_c/scheduler\.c \.": ("tests/e2e/embedding_test.py", "examples/scheduler_c/scheduler.c"),
    r"export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig": ("tests/e2e/embedding_test.py", '"lib/pkgconfig"'),
    r"cc -o scheduler scheduler\.c .*": ("tests/e2e/embedding_test.py", 'checked("cc", '),
    r"\./scheduler 3 .*": ("tests/e2e/embedding_test.py", 'getfixturevalue({"C": "scheduler_in_c"'),
    r"cp -r examples/scheduler_cmake ~/scheduler": ("tests/e2e/embedding_test.py", "examples/scheduler_cmake"),
    r"cmake -S .* -DCMAKE_PREFIX_PATH=PREFIX.*": ("tests/e2e/embedding_test.py", "-DCMAKE_PREFIX_PATH="),
    r"~/scheduler/build/scheduler .*": ("tests/e2e/embedding_test.py", '/ "build" / "scheduler"'),
    r"PKG_CONFIG_PATH=PREFIX.* pkg-config .*": ("tests/e2e/embedding_test.py", '"pkg-config", "--cflags", "--libs"'),
    r"cmake .*-Dhorovod-rendezvous_DIR=.*": ("tests/e2e/wheel_test.py", "-Dhorovod-rendezvous_DIR="),
    r"PKG_CONFIG_PATH=\$\(.* pkg-config .*": ("tests/e2e/wheel_test.py", "--pkg-config-dir"),
    # Other launchers, schedulers
    r"sbatch (--nodes=2 )?(--ntasks-per-node=4 )?--wrap 'horovodrun python train\.py'": (
        "tests/cluster/slurm_launch_test.py",
        '"--ntasks-per-node=2"], f"horovodrun {REPORT}"',
    ),
    r"sbatch --nodes=2 --gpus-per-node=4 --wrap 'horovodrun python train\.py'": (
        "tests/cluster/slurm_launch_test.py",
        '"--gpus-per-node=2"',
    ),
    r"horovodrun python train\.py": ("tests/cluster/slurm_launch_test.py", 'f"horovodrun {REPORT}"'),
    r"horovodrun --dry-run python train\.py": ("tests/cluster/slurm_launch_test.py", "horovodrun --dry-run"),
    r"horovodrun --min-np \d python train\.py": ("tests/cluster/slurm_launch_test.py", "horovodrun --min-np 1 python"),
    r"sbatch --requeue --open-mode=append": (
        "tests/cluster/slurm_launch_test.py",
        '"--requeue", "--open-mode=append"',
    ),
    r"srun (-n ?4 |(-N|--nodes=)2 --ntasks-per-node=4 )?python train\.py": (
        "tests/cluster/slurm_tasks_test.py",
        '["srun", *options, "python", script',
    ),
    r"sbatch (--nodes=8 )?train\.sbatch python train\.py.*": (SLURM, "train.sbatch"),
    r"srun --no-kill --kill-on-bad-exit=0 --wait=0": (SLURM, "train.sbatch"),
    r"srun --overlap --jobid=JOB .* pkill -TERM -o -x horovod-agent": (SLURM, "pkill -TERM -o -x horovod-agent"),
    r"scontrol update JobId=JOB StartTime=now": ("tests/cluster/slurm.py", '"scontrol", "update", f"JobId='),
    r"address=\$\(hostname .*|horovod-rendezvousd --listen \"\$address:4711\" .* &|srun .* horovod-agent .*": (
        SLURM,
        '"README.md").read_text()',
    ),
    r"mpirun -np 8 --host .*": ("tests/cluster/mpirun_test.py", '"mpirun", "--allow-run-as-root"'),
    r"mpirun --map-by node": ("tests/cluster/mpirun_test.py", '"--map-by", "node"'),
    r"mpirun -np 8 -hosts a,b -ppn 4 .*": ("tests/cluster/mpirun_test.py", '"-hosts", "a,b", "-ppn"'),
    r"torchrun --nproc_per_node 4 train\.py": ("tests/e2e/torchrun_launch_test.py", '"--nproc_per_node"'),
    r"torchrun --rdzv-backend=horovod .*": ("tests/e2e/torchrun_nodes_test.py", '"--rdzv-backend=horovod"'),
    r"horovodrun --elastic-restart .*": ("tests/e2e/restarted_test.py", '["--elastic-restart"]'),
    r"horovodrun .*--launcher kubectl .*": ("tests/cluster/schedulers_test.py", '"--launcher", "kubectl"'),
    r"horovodrun .*--launcher '.*\{host\}.*": ("tests/cluster/schedulers_test.py", "--host={{host}}"),
    r"horovodrun --hostfile /etc/mpi/hostfile": (
        "tests/cluster/kubernetes_operators_test.py",
        'MpiJob("mpijob.yaml"',
    ),
    r"horovodrun -np auto python train\.py": ("tests/e2e/local_job_test.py", '"-np", "auto"'),
    r"horovodrun -np 4 -m package\.train( --epochs 3)?": ("tests/e2e/local_job_test.py", '"-m", "package.train"'),
    r"horovodrun --config-file job\.yaml python train\.py": (
        "tests/e2e/local_job_test.py",
        '"--config-file", "job.yaml", "sh"',
    ),
    # Drains, stores, etcd
    r"horovodrun drain HOST": ("tests/cluster/elastic_test.py", '["horovodrun", "drain", "b"]'),
    r"horovodrun status --(watch|json|connect \S+ --token-file /var/lib/horovod/training/token)": (
        "tests/e2e/control_test.py",
        '"--watch"',
    ),
    r"horovodrun stop( --now| --connect 10\.0\.0\.1:7000 --token-file /var/lib/horovod/training/token)?": (
        "tests/e2e/control_test.py",
        'control("stop", *where)',
    ),
    # Monitoring, systemd
    r"promtool (check config prometheus|test rules rules_test)\.yml": ("tests/e2e/monitoring_test.py", '"promtool"'),
    r"pkill -TERM -o -x horovod-agent": (SLURM, "pkill -TERM -o -x horovod-agent"),
    r"python -m horovod\.elastic\.export( /shared/job.*)?": (
        "python/tests/test_torch_checkpoint_choice.py",
        '"-m", "horovod.elastic.export"',
    ),
    r"export AWS_ACCESS_KEY_ID=.*": ("tests/engines/s3_checkpoints_test.py", '"AWS_ACCESS_KEY_ID"'),
    r"pip install 'fsspec\[s3\]'": ("tools/setup", "s3fs=="),
    r"horovod-rendezvousd --etcd .*": ("tests/cluster/etcd_nodes.py", '"--standby"'),
    r"horovod-agent --join 10\.0\.0\.1:7000,10\.0\.0\.2:7000 .*": ("tests/cluster/etcd_nodes.py", '"horovod-agent"'),
    r"etcdctl role grant-permission horovod .*": ("tests/cluster/etcd_test.py", '"grant-permission", "horovod"'),
    # Engines
    r"python examples/spark/digits_on_spark\.py --num-proc 2": (
        "tests/engines/spark_local_test.py",
        '"digits_on_spark.py"',
    ),
    r"spark-submit .* examples/spark/digits_on_spark\.py .*": ("tests/engines/spark_cluster_test.py", '"spark-submit"'),
    r"python examples/spark/estimator_on_spark\.py --num-proc 2": (
        "tests/engines/spark_direct_test.py",
        '"estimator_on_spark.py"',
    ),
    r"python examples/ray/digits_on_ray\.py --num-workers 2": (
        "tests/engines/ray_static_test.py",
        '["--num-workers", "2"]',
    ),
    r"python examples/ray/digits_on_ray\.py --min-workers 1 --max-workers 4": (
        "tests/engines/ray_static_test.py",
        '["--min-workers", "2", "--max-workers", "2"]',
    ),
    r"python examples/dask/digits_on_dask\.py --num-workers 2": ("tests/engines/dask_test.py", '"digits_on_dask.py"'),
    r"python examples/dask/digits_on_dask\.py .*--address .*": ("tests/engines/dask_test.py", '"--address"'),
}

# Commands that nothing runs, each with the reason.
DOCKER = "needs a Docker daemon, which test machines do not have"
CLUSTER = "needs a Kubernetes cluster; tests/cluster/kubernetes*_test.py run what the manifests' containers run"
SYSTEMD = "needs systemd and a user; tests/e2e/systemd_units_test.py runs what the units start"
SENTENCE = "a part of a command, named in a sentence"
NOT_RUN = {
    r"docker (build|run) .*": DOCKER,
    r"kubectl (apply|wait|logs|patch|delete) .*": CLUSTER,
    r"kubectl exec job/.*": CLUSTER,
    r"(tests/gpu/run|dist/gpu/run) .*": "needs an NVIDIA GPU; tests/gpu/gpu_check_test.py runs the check on a simulated one",
    r"cd examples/kubernetes": CLUSTER,
    r"(useradd|cp horovod-\*@\.service|mkdir -p /etc/horovod|install -o horovod) .*": SYSTEMD,
    r"(systemctl|journalctl) .*": SYSTEMD,
    r"bsub .*": "needs LSF; tests/cluster/schedulers_test.py plays what horovodrun finds in its jobs",
    r"qsub .*": "needs PBS or Grid Engine; tests/cluster/schedulers_test.py plays what horovodrun finds in their jobs",
    r"tools/faults/run .*": "does harm to a job for minutes, at random",
    r"\./tools/bench/run( --quick)?": "measures for minutes; the parts that the pages name run here, for one round",
    r"torchrun --nnodes 2 .*": "how the reader's script was started before; needs two machines",
    r"torchrun --nproc_per_node (auto train\.py|4 -m package\.train)": "how the reader's script was started before",
    r"(HOROVOD_WITH_PYTORCH=1 )?pip install horovod": "installs the original Horovod; pages name it as what not to do",
    r"pip uninstall horovod": "removes a package from the reader's environment",
    r"apt-get remove horovod": "the same, for the Debian package",
    r"pip install (torch scikit-learn )?tensorboard( tqdm)?": "other projects' packages; tools/setup installs what tests need",
    r"py-spy dump --pid PID": "another project's program, which no test needs",
    r"ssh -o BatchMode=yes HOST true": "needs the reader's other machine",
    r"pip install --target|kubectl exec -i POD --": SENTENCE,
    r"horovod-rendezvousd --listen 10\.0\.0\.1:7000|horovodrun --network-interfaces .*": SENTENCE,
}


class Command(NamedTuple):
    place: str
    text: str
    block: tuple  # all commands of its block


def without_comment(line):
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index].rstrip()
    return line.rstrip()


def commands_of_block(place, text):
    if text.startswith("#!"):
        return [Command(place, text, (text,))]
    page, _, first = place.partition(":")
    found = {}
    lines = iter(enumerate(text.split("\n"), int(first)))
    for number, line in lines:
        while line.endswith("\\"):
            line = line[:-1].rstrip() + " " + next(lines)[1].strip()
        if without_comment(line).strip():
            found[number] = without_comment(line).strip()
    return [Command(f"{page}:{number}", line, tuple(found.values())) for number, line in found.items()]


def indented_blocks(page, lines):
    """Lines of four spaces after an empty line that no list precedes."""
    number = 0
    while number < len(lines):
        if lines[number].startswith("    ") and not lines[number - 1].strip():
            end = number
            while lines[end].startswith("    "):
                end += 1
            if not re.match(NO_COMMAND, lines[number].strip()):
                yield f"{page}:{number + 1}", "\n".join(line.strip() for line in lines[number:end])
            number = end
        number += 1


def is_command(span):
    if len(span.split()) < 3 or "..." in span or re.fullmatch(NO_COMMAND, span):
        return False
    return re.match(rf"([A-Z_]+=\S* )*({PROGRAM}) ", span)


def commands_of(path):
    page = str(path.relative_to(ROOT))
    lines = path.read_text().split("\n")
    for code in fenced_blocks(page, lines):  # which are blank afterwards
        assert code.language in SHELL | OTHER, f"{code.place}: what is this block?"
        if code.language in SHELL:
            yield from commands_of_block(code.place, code.text)
    for place, text in indented_blocks(page, lines):
        yield from commands_of_block(place, text)
    for number, line in enumerate(lines, 1):
        if not line.startswith("    "):
            for span in filter(is_command, re.findall(r"`([^`]+)`", line)):
                yield Command(f"{page}:{number}", span, (span,))


COMMANDS = [command for path in PAGES for command in commands_of(path)]
CLASSES = {"run here": RUN, "run elsewhere": ELSEWHERE, "not run": NOT_RUN}


def classes_of(command):
    """(class, pattern) of each class that has it."""
    return [
        (name, pattern)
        for name, patterns in CLASSES.items()
        for pattern in patterns
        if re.fullmatch(pattern, command.text)
    ]


def test_every_command_has_one_class():
    wrong = {command: classes_of(command) for command in COMMANDS if len(classes_of(command)) != 1}
    assert wrong == {}, "\n".join(f"{command.place}: {command.text}: {found}" for command, found in wrong.items())
    counts = Counter(classes_of(command)[0][0] for command in COMMANDS)
    print(dict(counts))
    assert set(counts) == set(CLASSES)


def test_every_entry_of_the_classes_is_needed():
    used = {found for command in COMMANDS for found in classes_of(command)}
    assert {(name, pattern) for name, patterns in CLASSES.items() for pattern in patterns} - used == set()
    assert all(NOT_RUN.values())


@pytest.mark.parametrize("file, part", sorted(set(ELSEWHERE.values())))
def test_other_file_runs_it(file, part):
    assert part in (ROOT / file).read_text()


def test_tests_of_a_command_are_there():
    files = {file for command in COMMANDS for file in re.findall(r"(?:python/)?tests/\S+\.py", command.text)}
    assert len(files) > 10
    assert sorted(file for file in files if not (ROOT / file).exists()) == []


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if each.text.startswith("kubectl")], ids=lambda each: each.place
)
def test_manifests_of_a_command_are_there(command):
    """And the objects that it names, in one of them."""
    folder = ROOT / "examples/kubernetes"
    for path in re.findall(r" -[fk] (\w[\w./]*)", command.text):
        assert (folder / path).exists()
    manifests = "\n".join(path.read_text() for path in folder.rglob("*.yaml"))
    for name in re.findall(r"(?: (?:job|jobset|mpijob)[/ ]| secret (?:generic )?)([\w-]+)(?![\w./])", command.text):
        assert re.search(rf"(name|secretName): {name}\b", manifests), name


class Desk:
    """A directory with what the commands take as given, and the processes that they start in it."""

    def __init__(self, directory):
        self.directory = directory
        self._mark = f"DOCUMENTS_TEST={directory}"
        self._started = []
        for name, text in FILES.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        shutil.copy(directory / "train.py", directory / "train_elastic.py")

    def start(self, command, **variables):
        name, _, value = self._mark.partition("=")
        environment = {
            **os.environ,
            "PATH": f"{self.directory}/bin:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            name: value,
            **variables,
        }
        words = ["bash", "-o", "pipefail", "-c", command]
        self._started.append(Running(words, env=environment, cwd=self.directory))
        return self._started[-1]

    def run(self, command, **variables):
        running = self.start(command, **variables)
        assert running.wait(240) == 0, running.everything()
        return running

    def script(self, text):
        (self.directory / "script").write_text(text)
        (self.directory / "script").chmod(0o755)
        return "./script"

    def start_daemon(self, command="horovod-rendezvousd --listen 127.0.0.1:0 --np 2 --token-file token"):
        daemon = self.start("exec " + command)
        return daemon, daemon.stdout.wait_for(r"^127\.0\.0\.1:\d+$").group()

    def close(self):
        for running in self._started:
            running.end()
        assert wait_until_none(lambda: pids_with(self._mark.encode() + b"\0")) == []


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The folder in which it is, alone."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["/usr/bin/python3", ROOT / "tools/wheel.py", ROOT / ".dev/stage", folder], check=True, timeout=300)
    return folder


def substituted(command):
    for pattern, here in SUBSTITUTIONS:
        command = re.sub(pattern, here, command)
    return command


def run_here():
    """Each command once, at its first place: some differ only in what is substituted."""
    first = {}
    for command in COMMANDS:
        for name, _ in classes_of(command):
            if name == "run here":
                first.setdefault(substituted(command.text), command)
    return list(first.values())


@pytest.mark.parametrize("command", run_here(), ids=lambda command: re.sub(r"\W+", "_", command.text[:90]))
def test_command_runs(desk, command, request):
    text = substituted(command.text)
    if text.startswith("horovod-rendezvousd"):
        running = run_daemon(desk, text)
    elif text.startswith("horovod-agent"):
        running = run_agent(desk, text, command.block)
    elif "--connect" in text:
        running = run_beside_a_job(desk, text)
    elif text.startswith("pip "):
        running = install_wheel(desk, text, request.getfixturevalue("wheel"))
    elif "draw_charts" in text:
        running = draw_charts(desk, text)
    elif text.startswith("#!"):
        running = desk.run(desk.script(text))
    elif part := re.match(r"\./tools/bench/run (\w+)", command.text):
        desk.run(f"cc -O2 -pthread -o cache_line {ROOT}/tools/bench/native/cache_line.c")
        running = desk.run(f"{text} {SMALLEST[part.group(1)]}")
    else:
        running = desk.run(text)
    ((_, pattern),) = classes_of(command)
    assert re.search(RUN[pattern], running.stdout.text, re.M), running.everything()


def run_daemon(desk, text):
    daemon, _ = desk.start_daemon(text)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143, daemon.everything()
    return daemon


def run_agent(desk, text, block):
    """With the daemon of the same block, if there is one."""
    daemons = [substituted(command) for command in block if command.startswith("horovod-rendezvousd")]
    daemon, address = desk.start_daemon(*daemons[:1])
    agent = desk.run(text, ADDRESS=address)
    assert daemon.wait() == 0, daemon.everything()
    return agent


def run_beside_a_job(desk, text):
    (desk.directory / "endless").touch()
    limits = "--np 2 --min-np 1 --grace 2"  # when all leave they wait for others, half of the grace
    daemon, address = desk.start_daemon(f"horovod-rendezvousd --listen 127.0.0.1:0 {limits} --token-file token")
    agent = desk.start(
        f"exec horovod-agent --join {address} --token-file token --host here --slots 2 -- python train.py"
    )
    agent.stdout.wait_for("trains$", 60)
    running = desk.run(text, ADDRESS=address)
    if "drain" in text:
        assert agent.wait() == 0, agent.everything()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143, daemon.everything()
    agent.wait()
    return running


def install_wheel(desk, text, wheel):
    (desk.directory / "dist").symlink_to(wheel)
    running = desk.run(text)
    assert (desk.directory / "installed/horovod/__init__.py").exists()
    assert "WARNING" not in running.stderr.text, "it has this extra"
    return running


def draw_charts(desk, text):
    """The pictures of the repository are what it draws."""
    for folder in ("tools/site", "docs/images"):
        shutil.copytree(ROOT / folder, desk.directory / folder)
    drawn = {path: path.read_text() for path in (desk.directory / "docs/images").glob("*.svg")}
    running = desk.run(text)
    assert {path: path.read_text() for path in drawn} == drawn
    return running
