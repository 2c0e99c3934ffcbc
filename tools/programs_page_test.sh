#!/usr/bin/env bash
# The options in docs/programs.md are those that the programs print. Bazel's own py_test wants a program named python, which Debian lacks.
exec /usr/bin/python3 -B tools/site/programs_page.py --check "$@"
