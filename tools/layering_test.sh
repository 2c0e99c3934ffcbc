#!/usr/bin/env bash
# Bazel's own py_test wants a program named python, which Debian lacks. The link that Bazel runs leads to the source tree, which is what is checked.
exec /usr/bin/python3 -B "$(dirname "$(realpath "$0")")/check_layering_test.py"
