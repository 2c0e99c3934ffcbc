#!/usr/bin/env bash
# Tests of suites.sh: which tests of which suites count as passed. Bazel and pytest are scripts here.
set -euo pipefail

tools="$(dirname "$(realpath "$0")")"
# shellcheck source=tools/env.sh
source "$tools/env.sh"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
ROOT="$scratch" DEV="$scratch/dev"
# shellcheck source=tools/suites.sh
source "$tools/suites.sh"
enter_environment() { PATH="$scratch/bin:$PATH"; }
PATH="$scratch/bin:$PATH"
mkdir -p "$scratch/bin" "$scratch/tests"

# A suite of 3 tests, of which one fails in the first N runs.
cat >"$scratch/bin/fails" <<'END'
#!/usr/bin/env bash
echo run >>"$2.runs"
bad=$(($(wc -l <"$2.runs") <= $1))
echo "<testsuites><testsuite tests='3' failures='$bad' errors='0' skipped='0'/></testsuites>" >"$2.xml"
((bad == 0)) || echo "FAILED tests/a_test.py::test_a[b c] - AssertionError: x - y"
exit "$bad"
END
cat >"$scratch/bin/bazel" <<'END'
#!/usr/bin/env bash
echo "//a:a_test   PASSED in 0.1s"
echo "//a:b_test   FLAKY, failed in 1 out of 2 in 0.1s"
END
chmod +x "$scratch/bin"/*

#   expect WHAT FOUND WANTED
expect() { [[ "$2" == "$3" ]] || { echo "$1: '$2' instead of '$3'" && exit 1; }; }

# The last line, then the exit code of finish, after a suite whose test fails in its first N runs.
#   result_of N
result_of() {
  local code=0 output
  begin_results
  output="$({
    suite "some tests" any some "$scratch/bin/fails" "$1" "$RESULTS/some"
    finish
  } 2>"$scratch/said")" || code=$?
  echo "$(tail -1 <<<"$output"), exit code $code"
}

bazel_result() {
  local code=0 output
  begin_results
  output="$({
    bazel_tests //...
    finish
  } 2>"$scratch/said")" || code=$?
  echo "$(tail -1 <<<"$output"), exit code $code"
}

says() { grep -qF -- "$1" "$scratch/said" || { echo "'$1' is not in:" && cat "$scratch/said" && exit 1; }; }

echo "# nothing" >"$FLAKY"
expect "a suite that passes" "$(result_of 0)" "3 passed, 0 failed, exit code 0"
expect "a test that passes when repeated" "$(result_of 1)" "2 passed, 1 failed, exit code 1"
says "passes when repeated alone: tests/a_test.py::test_a[b c]"
says "failed: some tests"
expect "Bazel's" "$(bazel_result)" "1 passed, 1 failed, exit code 1"
says "passes when repeated: //a:b_test"

echo "tests/a_test.py::test_a[b c]: " >"$FLAKY"
expect "a listed test without a reason" "$(result_of 1)" "2 passed, 1 failed, exit code 1"

printf '%s\n' "tests/a_test.py::test_a[b c]: the clock of the moon" "//a:b_test: the same" >"$FLAKY"
expect "a listed test that passes when repeated" "$(result_of 1)" "3 passed, 0 failed, exit code 0"
expect "a listed test that fails twice" "$(result_of 2)" "2 passed, 1 failed, exit code 1"
expect "Bazel's, listed" "$(bazel_result)" "2 passed, 0 failed, exit code 0"
