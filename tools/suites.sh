# shellcheck shell=bash
# Sourced by tools/test, after env.sh: runs suites of tests, counts what passed and failed, and says which failures come from a race.

RESULTS="$DEV/results"
COUNTS="$RESULTS/counts" # a line a suite: passed, failed, skipped, name
FLAKY="$ROOT/tests/flaky.txt"

begin_results() {
  rm -rf "$RESULTS"
  mkdir -p "$RESULTS"
  touch "$COUNTS"
}

# Whether tests/flaky.txt lists all tests that standard input names, a line each, with a reason. No names are not listed.
all_are_listed() {
  local name listed=1
  while IFS= read -r name; do
    NAME="$name" awk 'BEGIN { start = ENVIRON["NAME"] ": " } index($0, start) == 1 && length($0) > length(start) { found = 1 } END { exit !found }' "$FLAKY" ||
      return 1
    listed=0
  done
  return "$listed"
}

# Writes the counts down; a suite that failed without a failed test in it counts as one.
#   count NAME EXIT_CODE PASSED FAILED [SKIPPED]
count() {
  local bad="$4"
  (($2 == 0 || bad > 0)) || bad=1
  echo "$3 $bad ${5:-0} $1" >>"$COUNTS"
  say "$1: $3 passed, $bad failed, ${5:-0} skipped, $((SECONDS - started)) s"
}

# A command that passes or fails as a whole.
#   check NAME COMMAND...
check() {
  local name="$1" code=0
  shift
  started=$SECONDS
  "$@" || code=$?
  count "$name" "$code" "$((code == 0))" 0
}

# Bazel's tests. One that fails is repeated at once, to tell a race from a fault that is always there; it has failed either way, unless it is listed.
#   bazel_tests [--config=NAME] TARGET
bazel_tests() {
  local code=0 log name passed failed kind=""
  (($# == 1)) || kind="${1#--config=}"
  log="$RESULTS/bazel${kind:+-$kind}.log"
  started=$SECONDS
  (cd "$ROOT" && bazel test --keep_going --flaky_test_attempts=2 --ui_event_filters=-info,-debug "$@") 2>&1 | tee "$log" || code=$?
  passed="$(grep -cE '^//.* PASSED' "$log")" || true
  failed="$(grep -cE '^//.* (FAILED|TIMEOUT|NO STATUS)' "$log")" || true
  while IFS= read -r name; do
    say "passes when repeated: $name"
    if all_are_listed <<<"$name"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done < <(sed -nE 's/^(\/\/[^ ]+) +FLAKY.*/\1/p' "$log")
  count "Bazel's tests${kind:+, $kind}" "$code" "$passed" "$failed"
}

# tests, failures and skipped ones of a JUnit file
read_junit() {
  [[ -f "$1" ]] || { echo 0 0 0 && return; }
  /usr/bin/python3 - "$1" <<'END'
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
total, failed, errors, skipped = (int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped"))
print(total - failed - errors - skipped, failed + errors, skipped)
END
}

# Runs a command of a suite.
#   in_environment VENV CACHE COMMAND...
in_environment() (
  enter_environment "$1"
  cd "$ROOT" || exit
  export PYTHONDONTWRITEBYTECODE=1
  [[ " $* " == *run_ranks.py* ]] || export PYTEST_ADDOPTS="-o cache_dir=$RESULTS/cache/$2" # for --last-failed
  shift 2
  exec timeout 2700 "$@"
)

# Runs a command in an environment (.dev/venv-NAME) and counts what it writes to results/REPORT.xml (JUnit). Its output goes to results/REPORT.log;
# that of a suite that failed is shown, in one piece, as suites may run side by side.
#   suite NAME VENV REPORT COMMAND...
suite() {
  local name="$1" venv="$2" cache="$3" report="$RESULTS/$3.xml" output="$RESULTS/$3.log" code=0
  local -a counts
  shift 3
  started=$SECONDS
  say "$name"
  in_environment "$venv" "$cache" "$@" >"$output" 2>&1 || code=$?
  read -r -a counts <<<"$(read_junit "$report")"
  {
    flock 9
    if ((code != 0)); then
      cat "$output"
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$venv" "$cache" "$code" "${counts[1]}" "$STAGE" "${*@Q}" >>"$RESULTS/failed_suites"
    fi
    count "$name" "$code" "${counts[@]}"
  } 9>"$RESULTS/output.lock"
}

# Repeats suites with few failed tests alone, at the end: those tests, or on several ranks the whole suite. This is a diagnosis: a test that passes
# then has too short a limit or a race. It has failed all the same, unless tests/flaky.txt lists all such tests of the suite.
repeat_failed_suites() {
  local name venv cache first failed STAGE words code
  [[ -f "$RESULTS/failed_suites" ]] || return 0
  while IFS=$'\t' read -r name venv cache first failed STAGE words; do
    ((first == 1 && failed >= 1 && failed <= 5)) || continue # else more has failed than tests
    local -a command=()
    eval "command=($words)"
    [[ " $words " == *run_ranks.py* ]] || command+=(--last-failed --last-failed-no-failures none)
    say "again, alone: $name"
    code=0
    in_environment "$venv" "$cache" "${command[@]}" </dev/null >"$RESULTS/$cache.again.log" 2>&1 || code=$?
    if ((code != 0)); then
      cat "$RESULTS/$cache.again.log"
      continue
    fi
    say "passes when repeated alone: $(names_of_failed_tests "$RESULTS/$cache.log" | paste -sd ' ')"
    if names_of_failed_tests "$RESULTS/$cache.log" | all_are_listed; then count_as_passed "$name" "$cache"; fi
  done <"$RESULTS/failed_suites"
}

#   count_as_passed SUITE REPORT
count_as_passed() {
  awk -v name="$1" '{ suite = $0; sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", suite) } suite == name && $2 > 0 { $0 = ($1 + $2) " 0 " $3 " " name } { print }' \
    "$COUNTS" >"$COUNTS.new" && mv "$COUNTS.new" "$COUNTS"
  mv "$RESULTS/$2.log" "$RESULTS/$2.first" # its failures are not among the last lines
}

# The failed tests that logs of pytest name.
failed_tests() {
  grep -ahoE '(^|<stdout>:)(FAILED|ERROR) [^ ]+::.*' "$@" | sed 's/^<stdout>://' | sort -u | head -50 || true
}

# Their node ids: without what failed and why.
names_of_failed_tests() { failed_tests "$@" | sed -E 's/^(FAILED|ERROR) //; s/ - .*//' | sort -u; }

finish() {
  repeat_failed_suites
  local passed failed skipped failures
  read -r passed failed skipped <<<"$(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$COUNTS")"
  failures="$(awk '$2 > 0 { $1 = $2 = $3 = ""; print substr($0, 4) }' "$COUNTS" | paste -sd ';')"
  if ((failed > 0)); then
    say "failed: ${failures//;/; }"
    failed_tests "$RESULTS"/*.log
    grep -ahsE '^//.* (FAILED|TIMEOUT|NO STATUS|FLAKY)' "$RESULTS"/bazel*.log || true
  fi
  say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
  printf '%d passed, %d failed' "$passed" "$failed"
  ((skipped == 0)) || printf ', %d skipped' "$skipped"
  printf '\n'
  ((failed == 0 && passed > 0))
}

