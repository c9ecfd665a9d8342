# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What every real/*.test starts with:
#
#   #!/usr/bin/env bash
#   . "${srcdir:=$(dirname "$0")/..}/real/init.sh"
#
# On top of e2e/init.sh; over NVIDIA's own driver as it comes unpacked, which finds no device: cuInit says 100, and what
# does not need one answers. $drivers, $runtimes: what there is of it (real/fetch). REAL=all runs what takes long, too.

. "$srcdir/e2e/init.sh"
need_program python3 nm

# As root the driver makes /dev/nvidiactl, which stays: the whole test runs without mknod.
if [ -z "${REAL_SEALED:-}" ]; then
  CC=${HOST_CC:-${CC:-cc}} compile filter "$srcdir/e2e/filter.c" # of the shell's processor, also where programs are of another
  export abs_top_srcdir abs_top_builddir srcdir
  REAL_SEALED=1 exec ./filter errno mknod mknodat -- "$srcdir/real/$test_name.test"
fi

: "${CUDA_INCLUDE:=/usr/local/cuda/include}" "${CUDA_LIBDIR:=/usr/local/cuda/lib64}"
real_dir=$abs_top_builddir/tests/real/lib

# Nothing of a machine with a GPU: there the driver would answer what tests/gpu asks it. (/dev/nvidiactl is no sign of one: any driver
# that runs as root makes it.)
for device in /dev/nvidia[0-9]*; do
  [ ! -e "$device" ] || skip_ "there is a GPU here, $device; these are answers without one"
done

# have NAME...: those that can be fetched, on standard output. The reasons of others are in the log.
have_()
{
  local name
  for name; do
    "$srcdir/real/fetch" "$real_dir" "$name" >why 2>&1 && { echo "$name"; continue; }
    [ $? = 77 ] || framework_failure_ "real/fetch $name: $(cat why)"
    cat why >&2
  done
}

# need_drivers NAME...: in $drivers, or those of REAL_DRIVERS; a driver of its own directory by on_driver.
need_drivers()
{
  # shellcheck disable=SC2086 # words
  mapfile -t drivers < <(have_ ${REAL_DRIVERS:-"$@"})
  [ "${#drivers[@]}" != 0 ] || skip_ "$(tail -n 1 why)"
}

# need_runtimes NAME...: files of a libcudart in ${runtimes[NAME]}, and with "toolkit" that of the toolkit.
declare -A runtimes=()
need_runtimes()
{
  local name
  [ -z "${AARCH64:-}" ] || return 0 # none is of that processor
  while read -r name; do
    runtimes[$name]=$(echo "$real_dir/$name"/lib/libcudart.so.*)
  done < <(have_ "$@")
  # shellcheck disable=SC2034 # for the tests
  [ ! -e "$CUDA_LIBDIR/libcudart.so" ] || runtimes[toolkit]=$(readlink -f "$CUDA_LIBDIR/libcudart.so")
}

# on_driver NAME: programs run over this one from now on.
on_driver()
{
  driver_dir=$real_dir/$1
}

# exports: address, type and name of what the driver exports.
exports()
{
  nm -D --defined-only "$driver_dir/libcuda.so.1" || framework_failure_ "nm cannot read the driver in $driver_dir"
}

# all_hooked: symbol, base name, first version and stream flavour of each function of the driver that is ours.
all_hooked()
{
  sed -n -E 's/^(HOOK|PLAIN)\(([A-Za-z0-9_]+), *"([A-Za-z0-9_]+)", *([0-9]+), *([A-Z]+).*/\2 \3 \4 \5/p' \
    "$abs_top_srcdir/src/hook/hooks.def"
}

# hooked EXPORTS: those that this driver has.
hooked()
{
  all_hooked | awk 'NR == FNR { has[$3] = 1; next } $1 in has' "$1" -
}

# build NAME [FLAG...]: ./NAME from real/NAME.c.
build()
{
  compile "$1" "$srcdir/real/$1.c" -O1 -Wall -Wextra -Werror "${@:2}" -ldl
}

# same_route ROWS MINIMUM PROGRAM ARGUMENT...: the same answers, but for the functions of ROWS; at least MINIMUM of them.
same_route()
{
  local count
  run_plain "${@:3}"
  mv out bare && mv err err.bare && mv status status.bare
  run_preloaded "${@:3}"
  cmp -s status status.bare || fail_ "exit status $(cat status), without the library $(cat status.bare)"
  cmp -s err err.bare || fail_ "standard error is another with the library"
  python3 "$srcdir/real/routes_check.py" symbols "$1" bare out >checked ||
    { head -n 20 checked >&2; fail_ "driver $driver: ${*:3} gives other answers with the library"; }
  count=$(sed -n -E '1s/.* ([0-9]+) functions of ours$/\1/p' checked)
  [ "$count" -ge "$2" ] || fail_ "driver $driver: ${*:3} gives only $count functions of ours"
  echo "driver $driver, ${*:3}: $(head -n 1 checked)"
}

# bare_ NAME LIBRARY HEAT: twice without the library.
bare_()
{
  exits 0 run_plain "./$1" "$2" "$3"
  mv out "bare.$1.$3" && mv err err.bare # the C library says that what is freed was never allocated
  exits 0 run_plain "./$1" "$2" "$3"
  mv out "again.$1.$3"
}

# same_ NAME LIBRARY HEAT MODE: as without the library; armed, because a report is asked for.
same_()
{
  local setting=CUWARDEN_MODE=$4
  case $4 in
    deferred) setting=CUWARDEN_FREE_SYNC=deferred ;;
    limit) setting=CUWARDEN_LIMIT=1K ;;
  esac
  mkdir -p reports
  exits 0 run_preloaded "$setting" CUWARDEN_REPORT="$PWD/reports/%p" "./$1" "$2" "$3"
  rm -f reports/*
  cmp -s err err.bare || fail_ "$1, $3, mode $4: standard error is another with the library"
  python3 "$srcdir/real/calls_check.py" "bare.$1.$3" "again.$1.$3" out >checked ||
    { head -n 20 checked >&2; fail_ "$1, $3, mode $4: other answers with the library"; }
  echo "$1, $3, mode $4: $(head -n 1 checked)"
}

# every_mode NAME LIBRARY HEAT...: the program NAME of calls.c calls what LIBRARY has with the same results in each of $modes;
# $all_modes are those there are.
# shellcheck disable=SC2034 # for the tests
all_modes='pool track off deferred limit'
every_mode()
{
  local heat mode
  for heat in "${@:3}"; do
    bare_ "$1" "$2" "$heat"
    for mode in $modes; do
      same_ "$1" "$2" "$heat" "$mode"
    done
  done
}
