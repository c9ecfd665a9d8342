# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What a test needs of the machine, and what becomes of it where that is not there; of e2e/init.sh.
# What is not tried is said: scripts/test lists each SKIP and each LEFT OUT with its reason.

# need_program NAME...: the test is skipped where one of them is missing.
need_program()
{
  local name
  for name in "$@"; do
    command -v "$name" >/dev/null || skip_ "$name is not installed"
  done
}

# left_out PART REASON: what scripts/test lists of a test that goes on without this part.
left_out()
{
  echo "LEFT OUT: $1: $2" >&2
}

# "${apart[@]}" COMMAND...: with mounts of its own, as root. Root needs no user namespace for that, in which directories of other users
# would be closed to it.
apart=(unshare --mount)
{ [ "$EUID" = 0 ] && "${apart[@]}" true 2>/dev/null; } || apart+=(--map-root-user)

# can_try PART COMMAND...: it succeeds here; else PART is left out, with what it says.
can_try()
{
  local said
  said=$("${@:2}" 2>&1 >/dev/null </dev/null) && return
  said=${said%%$'\n'*}
  said=${said#*: line [0-9]*: } # where the shell says it
  left_out "$1" "${said:-not here: ${*:2}}"
  return 1
}

# has_program PART NAME: it is installed; else PART is left out.
has_program()
{
  command -v "$2" >/dev/null && return
  left_out "$1" "$2 is not installed"
  return 1
}

# fetched NAME: real/fetch has it, in $at; else why not is in $why.
fetched()
{
  # shellcheck disable=SC2034 # for the tests
  at=$abs_top_builddir/tests/real/lib/$1
  why=$("$srcdir/real/fetch" "$abs_top_builddir/tests/real/lib" "$1" 2>&1) && return
  why=$(tail -n 1 <<<"$why")
  return 1
}

# as_user ID COMMAND...: without root's rights; the program, too, is found by that user.
as_user()
{
  setpriv --reuid="$1" --clear-groups -- sh -c 'cd / && exec "$@"' sh "${@:2}"
}

# make_open_place: $open_place is a directory that other users reach, wherever the test's own is, with the command, until the test
# ends. Fails with the reason in $why where there is none, or where root may not become another user.
make_open_place()
{
  local parent
  why='setpriv cannot become another user here'
  as_user 65533 true 2>/dev/null || return 1
  for parent in "$scratch" "${TMPDIR:-/tmp}" /tmp /var/tmp; do
    open_place=$(mktemp -d "$parent/cuwarden-open.XXXXXX" 2>/dev/null) || continue
    chmod 755 "$open_place"
    install -m 755 "$command" "$open_place/cuwarden"
    ! as_user 65533 "$open_place/cuwarden" --version >/dev/null 2>&1 || return 0
    rm -r "$open_place"
  done
  open_place=
  # shellcheck disable=SC2034 # for the tests
  why="other users reach no directory of ours, not even in ${TMPDIR:-/tmp}"
  return 1
}
