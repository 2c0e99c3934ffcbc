# shellcheck shell=bash
# Sourced by the other tools: common paths and functions. The tools write only to .dev/, which git ignores.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
DEV="$ROOT/.dev"
STAGE="$DEV/stage" # PYTHONPATH: stage/horovod is the source package plus bin/ and lib/
export ROOT DEV STAGE
# shellcheck disable=SC2034 # used by who sources this
mapfile -t ROOMS <"$ROOT/tools/rooms" # the folders of the product's C++

# Prints what the tool is doing now.
say() { printf '==> %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Ends the tool because of a mistake in the command line, before it has done anything.
refuse() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# Prints the comment at the head of the tool.
show_help() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

# Refuses an option without a value, or with a value that is not one of the choices.
#   check_option "VALUE VALUE..." "$@"    "$@" begins with the option
check_option() {
  local choices="${1// /, }"
  choices="${choices%, *} or ${choices##*, }"
  (($# > 2)) || refuse "$2 needs a value: $choices"
  [[ -n "$3" && " $1 " == *" $3 "* ]] || refuse "$2 takes $choices, not '$3'"
}

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root or sudo to run: $*"
  fi
}

# Takes a lock of this checkout, so that two tools do not work in it at once; waits for it.
#   take_lock NAME
take_lock() {
  mkdir -p "$DEV"
  exec 9>"$DEV/$1.lock"
  if ! flock --nonblock 9; then
    say "waiting for another $1 in this checkout"
    flock 9
  fi
}

# A stamp records that something was done with exactly this input.
#   stamp_is NAME INPUT / set_stamp NAME INPUT
stamp_is() { [[ -f "$DEV/stamps/$1" && "$(<"$DEV/stamps/$1")" == "$(printf '%s' "$2" | sha256sum)" ]]; }
set_stamp() {
  mkdir -p "$DEV/stamps"
  printf '%s' "$2" | sha256sum >"$DEV/stamps/$1"
}

# Puts a virtual environment, this project's programs and the staged package first in this process's paths.
#   enter_environment VENV  (.dev/venv-VENV)
enter_environment() {
  export VIRTUAL_ENV="$DEV/venv-$1"
  export PATH="$VIRTUAL_ENV/bin:$STAGE/horovod/bin:$PATH"
  export PYTHONPATH="$STAGE${PYTHONPATH:+:$PYTHONPATH}"
  unset PYTHONHOME
}
