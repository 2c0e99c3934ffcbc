"""The suites of tools/test, in the order in which they run. Lanes run side by side.

`.dev/venv-debian` has Debian's torch, `venv-pip` the newest one; `tf-new` to `tf-old` are TensorFlows with their Keras and JAX.
"""

from pathlib import Path
from typing import Optional

from suite import Suite, bazel, check, on_ranks, pytest

_SPARK_ON_DATA = ("data", "hooks", "keras", "lightning", "parquet", "saved", "torch", "types")
_E2E_OF_PIP = ("lightning", "torchrun_launch", "torchrun_nodes", "torchrun_scripts")


def lint(root: Path) -> list[Suite]:
    return [check("format of the sources", "tools/format", "--check"), check("Python code", "tools/lint", "--python")]


def unit(root: Path) -> list[Suite]:
    return [
        *lint(root),
        bazel("quick C++ tests", "//:unit_tests"),
        check("build", "tools/build"),
        on_ranks("package, torch of debian", "debian", 1),
    ]


def set_up(everything: bool) -> Suite:
    """What frameworks and engines need, fetched while the C++ tests are compiled."""
    which = "--frameworks all --engines all" if everything else "--frameworks some --engines newest"
    return check("frameworks and engines", "tools/setup", "--torch", "pip", "--lightning", *which.split())


def sources(root: Path) -> list[Suite]:
    """Checks of the sources, the C++ tests, and the package that all others need."""
    return [
        check("format of the sources", "tools/format", "--check"),
        check("shell scripts", "shellcheck", "-x", "-P", ".", *shell_scripts(root)),
        check("Dockerfiles", ".dev/venv-lint/bin/hadolint", "Dockerfile", "examples/kubernetes/Dockerfile"),
        check("clang-tidy of what has changed", "tools/lint", "--changed"),
        bazel("C++ tests", "//..."),
        bazel("growth of costs", "--config=counted", "//tests/complexity/..."),
        check("build", "tools/build"),
        check("documentation", "tools/docs"),  # which asks the programs for their options
        # Last, as it needs the newest torch, which is fetched meanwhile.
        check("Python code", "tools/lint", "--python"),
    ]


def package(root: Path) -> list[Suite]:
    return [on_ranks("package, torch of debian", "debian", ranks) for ranks in (1, 2, 4)]


def local(root: Path) -> list[Suite]:
    """Jobs under horovodrun and agents, on this machine."""
    ignored = [f"--ignore=tests/e2e/{name}_test.py" for name in _E2E_OF_PIP]
    return [pytest("jobs on this machine", "debian", *ignored, "tests/e2e")]


def local_lane(root: Path) -> list[Suite]:
    """Jobs on this machine, and what needs the newest torch."""
    return [
        *local(root),
        on_ranks("package, torch of pip", "pip", 3),
        # Debian's torch comes without fsspec, and several ranks do not run these.
        on_ranks("checkpoints below URLs", "pip", 1, "test_torch_checkpoint_url.py"),
        *(pytest(f"jobs with the newest torch, {name}", "pip", f"tests/e2e/{name}_test.py") for name in _E2E_OF_PIP),
        pytest("a simulated Intel XPU", "pip", "tests/xpu"),
        pytest("the simulated NVIDIA GPU itself", "pip", "tests/gpu/simulated"),
    ]


def cluster_lane(root: Path) -> list[Suite]:
    """Jobs on test hosts, which wait for time limits more than they work; then the frameworks, with the wheel."""
    return [
        pytest("jobs over ssh", "debian", "tests/cluster", root=True),
        check("the wheel", "tools/gate/packages", "install"),
        check("the GPU check as a bundle", "tools/gpu_bundle"),
        pytest(
            "the GPU check on a simulated GPU", "pip", "tests/gpu/bundle", "tests/gpu/gpu_check_test.py", wheel=True
        ),
        _framework("tensorflow", "tf-new", 2),
        _framework("jax", "tf-new", 2),
        _framework("keras", "tf-new", 2, KERAS_BACKEND="tensorflow"),
        _framework("mxnet", "mxnet", 2),
        _framework_jobs(root, "tensorflow", "tf-new"),
        _framework_jobs(root, "jax", "tf-new"),
        _framework_jobs(root, "keras", "tf-new", only="tensorflow"),
    ]


def engines_lane(root: Path) -> list[Suite]:
    return [
        _engine(root, "spark", "engines", "cluster", "connect", "direct", "local", "store"),
        *(_engine(root, engine, "engines") for engine in ("ray", "dask", "s3", "kubernetes")),
        *torch_distributed(root),
    ]


def torch_distributed(root: Path) -> list[Suite]:
    """torch.distributed over the backend hvd, in the newest torch and the oldest one, beside the lanes that wait for time limits."""
    return [
        *(pytest(f"torch.distributed, {venv}", venv, _of_torch("backend")) for venv in ("pip", "debian")),
        pytest("torch.distributed, launchers, parallelism", "pip", _of_torch("launchers"), _of_torch("parallelism")),
        pytest(
            "torch.distributed, frameworks",
            "pip",
            _of_torch("frameworks"),
            only="as_over_gloo and not ray and not deepspeed",
            variables={"PYTHONPATH": "{dev}/lightning-2"},
        ),
        pytest("torch.distributed, engines", "engines", "tests/engines/torch_distributed_test.py"),
        torchs_own(ranks=2),
    ]


def _of_torch(name: str) -> str:
    return f"tests/torch_distributed/{name}_test.py"


def torchs_own(ranks: int) -> Suite:
    """torch's own tests of backends, on ours."""
    path = "tests/torch_distributed/torchs_cases.py"
    return pytest(f"torch's tests of backends, {ranks} ranks", "pip", path, variables={"WORLD_SIZE": str(ranks)})


def rest(root: Path) -> list[Suite]:
    """What takes or fetches much: tools/test --all."""
    return [
        torchs_own(ranks=4),
        pytest("torch.distributed, examples", "pip", _of_torch("digits"), _of_torch("resume")),
        pytest("torch.distributed, Ray Train", "engines", _of_torch("frameworks"), only="ray"),
        *_other_frameworks(root),
        _engine(
            root, "ray", "engines", "train", wheel=True, variables={"RAY_TRAIN_V2_ENABLED": "0"}
        ),  # Ray Train as it was
        _engine(root, "ray", "engines-old", "rules", "static", "elastic", wheel=True),
        _engine(root, "spark", "engines", *_SPARK_ON_DATA, wheel=True),
        _engine(root, "spark", "engines-old", wheel=True),
        pytest("each failpoint alone", "debian", "tests/e2e/failpoints_test.py", variables={"FAILPOINTS_ALL": "1"}),
        bazel("C++ tests with AddressSanitizer and UBSan", "--config=asan", "//..."),
        bazel("C++ tests with ThreadSanitizer", "--config=tsan", "//..."),
        check("fuzz targets", "tools/fuzz", "--all", "600"),
        check("clang-tidy", "tools/lint"),
        check("packages in fresh Debian roots", "tools/gate/packages", "check"),
        pytest("NCCL as NVIDIA has it", "debian", "tests/nccl", wheel=True),
        check("aarch64", "as-root", "tools/check_aarch64"),
        pytest("commands of the documents", "debian", "tests/docs", wheel=True),
    ]


def _other_frameworks(root: Path) -> list[Suite]:
    """The frameworks on other numbers of ranks, with other backends of Keras, and in older versions."""
    others = (("tf-new", "jax"), ("pip", "torch"))
    return [
        *(_framework("tensorflow", venv, ranks) for venv in ("tf-new", "tf-old", "tf-mid") for ranks in (1, 3)),
        _framework("tensorflow", "tf-new", 4),
        *(_framework(name, venv, 2) for venv in ("tf-old", "tf-mid", "tf-215") for name in ("tensorflow", "keras")),
        *(_framework("jax", venv, ranks) for venv in ("tf-new", "tf-old") for ranks in (1, 3)),
        _framework("jax", "tf-old", 2),
        *(_framework("mxnet", "mxnet", ranks) for ranks in (1, 3)),
        *(_framework("keras", venv, ranks, KERAS_BACKEND=backend) for venv, backend in others for ranks in (1, 2, 3)),
        *(_framework("keras", "tf-new", ranks, KERAS_BACKEND="tensorflow") for ranks in (1, 3)),
        *(_framework("keras", "tf-old", ranks) for ranks in (1, 3)),
        _framework("keras", "tf-new", 2, TF_USE_LEGACY_KERAS="1"),
        *(_framework_jobs(root, name, "tf-old") for name in ("tensorflow", "jax", "keras")),
        _framework_jobs(root, "tensorflow", "tf-mid"),
        _framework_jobs(root, "keras", "tf-new", only="not tensorflow"),
        *(_framework_jobs(root, "keras", venv) for venv in ("pip", "tf-215")),
    ]


def _framework(name: str, venv: str, ranks: int, **variables: str) -> Suite:
    """The tests of a framework's package."""
    settings = [f"{variable}={value}" for variable, value in variables.items()]
    return on_ranks(
        ", ".join([name, venv, *settings]), venv, ranks, f"python/tests/{name}", wheel=True, variables=variables
    )


def _framework_jobs(root: Path, name: str, venv: str, only: str = "") -> Suite:
    title = ", ".join(filter(None, [f"jobs of {name}", venv, only]))
    return pytest(title, venv, *_tests(root, "frameworks", name), only=only, wheel=True)


def _engine(
    root: Path, name: str, venv: str, *parts: str, wheel: bool = False, variables: Optional[dict[str, str]] = None
) -> Suite:
    """Jobs on an engine, on clusters of this machine, or with a store (s3); the manifests for kubernetes. `parts`: of its test files."""
    paths = [f"tests/engines/{name}_{part}_test.py" for part in parts] or _tests(root, "engines", name)
    variables = dict(variables or {})
    if name == "spark":
        variables["PYTHONPATH"] = "{dev}/lightning-2"  # for an estimator
    return pytest(", ".join([f"jobs on {name}", venv, *parts]), venv, *paths, wheel=wheel, variables=variables)


def _tests(root: Path, folder: str, prefix: str) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in (root / "tests" / folder).glob(f"{prefix}*test.py"))


def shell_scripts(root: Path) -> list[str]:
    """All scripts of bash, by their first line, and what they source."""
    folders = ["tools", "tests", "examples", ".ci"]
    files = sorted(path for folder in folders for path in (root / folder).rglob("*") if path.is_file())
    return [str(path.relative_to(root)) for path in files if path.suffix == ".sh" or _is_bash(path)]


def _is_bash(path: Path) -> bool:
    with open(path, "rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and b"bash" in first
