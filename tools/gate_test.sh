#!/usr/bin/env bash
# Bazel's own py_test wants a program named python, which Debian lacks. The link that Bazel runs leads to the source tree, whose suites are looked at.
exec /usr/bin/python3 -B "$(dirname "$(realpath "$0")")/gate/gate_test.py"
