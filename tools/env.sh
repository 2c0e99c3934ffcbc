# shellcheck shell=bash
# Sourced by the other tools: where things lie, and the few functions they share. Everything that the tools make lies in .dev/, which git ignores.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
DEV="$ROOT/.dev"
STAGE="$DEV/stage" # PYTHONPATH: stage/horovod is the source package plus bin/ and lib/
export ROOT DEV STAGE

# What a tool does now, for whoever waits.
say() { printf '==> %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# What is wrong with the command line; nothing has been done.
refuse() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# The comment at the head of the tool.
show_help() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

# Refuses an option without a value, or with one that it does not take.
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

# Two tools at work in one checkout wait for one another.
#   take_lock NAME
take_lock() {
  mkdir -p "$DEV"
  exec 9>"$DEV/$1.lock"
  if ! flock --nonblock 9; then
    say "waiting for another $1 in this checkout"
    flock 9
  fi
}

# A stamp says that something was done with just this input.
#   stamp_is NAME INPUT / set_stamp NAME INPUT
stamp_is() { [[ -f "$DEV/stamps/$1" && "$(<"$DEV/stamps/$1")" == "$(printf '%s' "$2" | sha256sum)" ]]; }
set_stamp() {
  mkdir -p "$DEV/stamps"
  printf '%s' "$2" | sha256sum >"$DEV/stamps/$1"
}

# Puts a virtual environment, our binaries and the staged package in front of this process's paths.
#   enter_environment VENV  (.dev/venv-VENV)
enter_environment() {
  export VIRTUAL_ENV="$DEV/venv-$1"
  export PATH="$VIRTUAL_ENV/bin:$STAGE/horovod/bin:$PATH"
  export PYTHONPATH="$STAGE${PYTHONPATH:+:$PYTHONPATH}"
  unset PYTHONHOME
}
