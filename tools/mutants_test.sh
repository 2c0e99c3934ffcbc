#!/usr/bin/env bash
# As gate_test.sh.
exec /usr/bin/python3 -B "$(dirname "$(realpath "$0")")/mutation/mutants_test.py"
