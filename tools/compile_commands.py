#!/usr/bin/env python3
"""Writes compile_commands.json at the root, for editors and clang-tidy: every C++ file of the tree with the flags that .bazelrc gives it.

The libraries are the system's, so the only include paths are the root and Bazel's generated files; build once (tools/build) for these.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (*(ROOT / "tools/rooms").read_text().split(), "tests", "tools", "examples")


def bazelrc_flags():
    """Flags of plain builds: not those of a --config."""
    flags = []
    for line in (ROOT / ".bazelrc").read_text().splitlines():
        if line.startswith("build "):
            flags += re.findall(r"--(?:cxxopt|copt)=(\S+)", line)
    return [flag for flag in flags if flag != "-Werror"]


def third_party_defines():
    """What //third_party's libraries define for all who use them."""
    text = (ROOT / "third_party/BUILD.bazel").read_text()
    defines = []
    for block in re.findall(r"defines = \[(.*?)\]", text, re.S):
        defines += re.findall(r'"([^"]+)"', block)
    return [f"-D{name}" for name in defines]


def entries():
    info = ["bazel", "info", "bazel-bin"]
    generated = subprocess.run(info, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    arguments = [
        "clang++",
        *bazelrc_flags(),
        *third_party_defines(),
        f"-I{ROOT}",
        f"-I{ROOT}/rendezvous/c_api/include",
        "-isystem",
        generated,
    ]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cc")):
            yield {"directory": str(ROOT), "file": str(path), "arguments": [*arguments, "-c", str(path)]}


def main():
    listed = list(entries())
    target = ROOT / "compile_commands.json"
    target.write_text(json.dumps(listed, indent=1) + "\n")
    print(f"{target.name}: {len(listed)} files", file=sys.stderr)


if __name__ == "__main__":
    main()
