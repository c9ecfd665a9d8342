# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What every *.test starts with:
#
#   #!/usr/bin/env bash
#   . "${srcdir:=$(dirname "$0")/..}/e2e/init.sh"
#
# It leaves the test in an empty directory of its own, which goes away when the test ends (KEEP=1
# keeps it). A test passes by reaching its end, or ends by one of fail_, skip_, framework_failure_; what it
# cannot try of itself here it names by left_out.
# Programs are named without a path: first the victims are searched, then $PATH.

fail_()
{
  echo "FAIL: $*" >&2
  show_run_ >&2
  exit 1
}

skip_()
{
  echo "SKIP: $*"
  exit 77
}

# For what is broken in the test's surroundings: no compiler, no scratch directory.
framework_failure_()
{
  echo "ERROR: $*" >&2
  exit 99
}

# What the last run left, for the reader of a failure.
show_run_()
{
  local file
  [ -z "${last_run_:-}" ] || echo "--- last run: $last_run_; exit status $(cat status 2>/dev/null)"
  for file in out err screen; do
    [ ! -s "$file" ] || { echo "--- $file:"; head -n 60 "$file"; }
  done
}

set -u
set -o pipefail
LC_ALL=C
export LC_ALL
umask 022
ulimit -S -c 0

srcdir=$(cd "$srcdir" && pwd) || framework_failure_ "no directory $srcdir"
. "$srcdir/e2e/surroundings.sh"
: "${abs_top_srcdir:=$(dirname "$srcdir")}"
if [ -z "${abs_top_builddir:-}" ]; then # started by hand
  abs_top_builddir=$abs_top_srcdir
  for dir in "$PWD" "$PWD/.." "$abs_top_srcdir/build/test" "$abs_top_srcdir/build/demo"; do
    [ ! -x "$dir/src/cuwarden" ] || { abs_top_builddir=$(cd "$dir" && pwd); break; }
  done
fi

library=$abs_top_builddir/src/.libs/libcuwarden.so
command=$abs_top_builddir/src/cuwarden
sim_dir=$abs_top_builddir/tests/sim/lib
victim_dir=$abs_top_builddir/tests/e2e/victims

# Nothing of the caller's environment steers the library or the simulated GPU.
for name in $(compgen -e | grep -E '^(CUWARDEN|CUSIM)_'); do
  unset "$name"
done
unset LD_PRELOAD
PATH=$PATH:/usr/sbin:/sbin # not every user has them there

# The tests of tests/gpu run over the machine's own driver, all others over the simulated one.
test_dir=$(basename "$(cd "$(dirname "$0")" && pwd)")
driver_dir=$sim_dir
if [ "$test_dir" = gpu ]; then
  driver_dir=
else
  unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER LD_LIBRARY_PATH
  # What a platform sets in its containers is a limit; and nothing steers what programs load and print.
  for name in $(compgen -e | grep -E '^(NVIDIA_GPU_|CUDA_DEVICE_MEMORY_|CUDA_MPS_|CUDA_INJECTION|NVTX_|PYTORCH_|PYTEST_|UCX_)|^(COLUMNS|NO_COLOR|PYTHON[A-Z]+)$'); do
    unset "$name"
  done
fi

test_name=$(basename "$0" .test)
scratch=$abs_top_builddir/tests/scratch/$test_dir-$test_name
rm -rf "$scratch"
{ mkdir -p "$scratch" && cd "$scratch"; } || framework_failure_ "cannot make $scratch"
case $library in
  *[[:space:]:]*) framework_failure_ "LD_PRELOAD cannot carry the name of $library: build where no directory has a space or a colon" ;;
esac

# Nothing has its live files where other tests and the machine's other programs have them, or looks there, unless a test says so.
export CUWARDEN_LIVE=$scratch/live-default

# Its simulated devices are of no other test, and of nobody else on the machine: a process that has run out of memory asks all
# that share its device, wherever their live files are.
CUSIM_UUID=$(printf '%08x' "$(printf %s "$scratch" | cksum | cut -d ' ' -f 1)")
export CUSIM_UUID

declare -A started_=() # what start_ has started: process ids by name

# What the test leaves of reports in JSON is what docs/report-json.md says; how much of them, see schema.py. Those written by hand, with
# only what the test is about, begin with a space.
check_reports_()
{
  local -a reports
  mapfile -t reports < <(grep -rlIsE -m 1 '^\{"(schema":"cuwarden-report/|selection":)' "$scratch")
  [ "${#reports[@]}" != 0 ] || return 0
  command -v python3 >/dev/null ||
    { left_out 'the schema of reports in JSON' 'python3 is not installed'; return 0; }
  python3 "$abs_top_srcdir/tests/e2e/schema.py" "$abs_top_srcdir/docs/report-1.schema.json" "${reports[@]}" >&2
}

cleanup_()
{
  local status=$?
  [ "${#started_[@]}" = 0 ] || kill -KILL "${started_[@]}" 2>/dev/null
  cd "$abs_top_builddir" || exit 99
  [ "$status" != 0 ] || check_reports_ || { echo 'FAIL: a report is not what its schema says' >&2; status=1; }
  [ -n "${KEEP:-}" ] || rm -rf "$scratch"
  [ -z "${open_place:-}" ] || rm -rf "$open_place"
  exit "$status"
}
trap cleanup_ EXIT
trap 'exit 99' HUP INT TERM

# compose_ WITH_PRELOAD [VAR=value...] prog args: leaves the whole command in ${command_[@]}.
compose_()
{
  local with_preload=$1
  local -a settings=()
  shift
  last_run_="$*"
  [ -z "$driver_dir" ] || settings+=("LD_LIBRARY_PATH=$driver_dir")
  # Live files stay in the scratch directory, also those of programs that are meant to die; a test
  # that wants another place says so behind this. Reports that a program leaves while it runs are in
  # cuwarden-UID there.
  [ "$with_preload" = 0 ] ||
    settings+=("LD_PRELOAD=$library" "CUWARDEN_LIVE=$scratch/live-files" "TMPDIR=$scratch")
  while [ $# -gt 0 ] && [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_]*= ]]; do
    settings+=("$1")
    shift
  done
  [ $# -gt 0 ] || framework_failure_ "no program to run: $last_run_"
  local program=$1
  shift
  [ ! -x "$victim_dir/$program" ] || program=$victim_dir/$program
  command -v "$program" >/dev/null || framework_failure_ "no program $program"
  [ "$with_preload" = 0 ] || [ -r "$library" ] || framework_failure_ "no library $library"
  command_=(env "${settings[@]}" "$program" "$@")
}

# leave_ COMMAND...: its output in out and err, its exit status in the file status and in $status.
leave_()
{
  "$@" >out 2>err </dev/null
  status=$?
  echo "$status" >status
  # What qemu-user adds when a signal ends a program (tests/aarch64/enter).
  [ -z "${QEMU_LD_PREFIX:-}" ] || sed -i '/^qemu: uncaught target signal /d' err
}

# run_raw COMMAND...: as it stands, with nothing of ours around it; leaves what run_preloaded does.
run_raw()
{
  last_run_=$*
  leave_ "$@"
}

# run_ WITH_PRELOAD [VAR=value...] prog args: the common half of the two below.
run_()
{
  compose_ "$@"
  leave_ "${command_[@]}"
  # Thousands of runs are not to fill the disk; programs that go on beside the test keep what is open. A live file that
  # waits for its name begins with a dot: its program is starting (a daemon), and would say that it is gone.
  local -a left=("$scratch"/live-files/*)
  [ ! -e "${left[0]}" ] || rm -rf "${left[@]}"
}

# run_preloaded [VAR=value...] prog args
# Runs prog under the library and over the simulated GPU. Leaves its output in out and err, its exit
# status in the file status and in $status.
run_preloaded()
{
  run_ 1 "$@"
}

# with_reports [VAR=value...] prog args: its report in report and report.json, the simulated driver's in sim.
with_reports()
{
  rm -f report report.json sim
  run_preloaded CUSIM_REPORT=sim CUWARDEN_REPORT=report CUWARDEN_FORMAT=both "$@"
}

# run_plain [VAR=value...] prog args: the same without the library.
run_plain()
{
  run_ 0 "$@"
}

# start_preloaded NAME [VAR=value...] prog args; start_plain NAME ...
# As run_preloaded and run_plain, but the program goes on beside the test, until finish NAME. Its
# output is in NAME.out and NAME.err meanwhile, its process id in ${started_[NAME]}.
start_()
{
  compose_ "$1" "${@:3}"
  "${command_[@]}" >"$2.out" 2>"$2.err" </dev/null &
  started_[$2]=$!
}

start_preloaded()
{
  start_ 1 "$@"
}

start_plain()
{
  start_ 0 "$@"
}

# finish NAME [SIGNAL]: waits for its end, if need be by a signal; leaves what run_preloaded does.
finish()
{
  local name=$1
  [ $# -lt 2 ] || kill "-$2" "${started_[$name]}"
  wait "${started_[$name]}" 2>/dev/null
  status=$?
  unset "started_[$name]"
  last_run_=$name
  mv "$name.out" out
  mv "$name.err" err
  echo "$status" >status
}

# run_command args: the command cuwarden, with the same leavings.
run_command()
{
  run_ 0 "$command" "$@"
}

expect_status()
{
  [ "$status" = "$1" ] || fail_ "exit status $status, expected $1"
}

# exits STATUS COMMAND...: one of the functions that run or finish a program, and how the program ends.
exits()
{
  "${@:2}"
  expect_status "$1"
}

# exits_silent STATUS COMMAND...: the same, with nothing on standard error.
exits_silent()
{
  exits "$@"
  expect_silent
}

# complains STATUS REGEX COMMAND ARG...: `cuwarden COMMAND ARG...`, by the test's function of this name if it has
# one, says in a line what is wrong, and nothing on standard output.
complains()
{
  if declare -F "$3" >/dev/null; then exits "$1" "${@:3}"; else exits "$1" run_command "${@:3}"; fi
  expect_lines 1 "^cuwarden( $3)?: $2"
  [ ! -s out ] || fail_ "something was written on standard output: $last_run_"
}

# reported ARG...: `cuwarden report` has done it without a word.
reported()
{
  exits_silent 0 run_command report "$@"
}

# wait_for COMMAND...: until it succeeds, while what was started goes on, and for ten minutes at most,
# which is for what never comes, and no measure of what is slow.
wait_for()
{
  local end=$((SECONDS + 600))
  until "$@"; do
    [ "${#started_[@]}" = 0 ] || kill -0 "${started_[@]}" 2>/dev/null || fail_ "it ended before: $*"
    ((SECONDS < end)) || fail_ "not so after ten minutes: $*"
    sleep 0.02
  done
}

# eventually COMMAND...: repeats what depends on scheduling until it succeeds, for ten minutes at most. Each try is a subshell, so its
# variables are lost; it must finish what it starts.
eventually()
{
  local end=$((SECONDS + 600))
  until ("$@") >tried 2>&1; do
    ((SECONDS < end)) || { cat tried >&2; fail_ "not once in ten minutes: $*"; }
  done
}

# stops NAME STATUS: the file stop is there, which the program waits for, and it ends.
stops()
{
  touch stop
  exits "$2" finish "$1"
}

# the_file DIRECTORY: the one live file in it.
the_file()
{
  local -a files=("$1"/*.live)
  [[ ${#files[@]} = 1 && -f ${files[0]} ]] || fail_ "not one live file in $1: ${files[*]}"
  echo "${files[0]}"
}

# keep_live [VAR=value...] prog args: run_preloaded, and the live file that it leaves is $file.
keep_live()
{
  rm -rf kept
  run_preloaded CUWARDEN_LIVE=kept "$@"
  file=$(the_file kept)
}

# make_quietly TARGET [VAR=value...]: in the build tree.
make_quietly()
{
  (unset MAKEFLAGS MFLAGS MAKELEVEL; make -s -C "$abs_top_builddir" "$@" >out 2>err) || fail_ "make $1 failed"
}

# unpack DIRECTORY: what a tarball has. (Automake's distdir wants a directory relative to the build's.)
unpack()
{
  make_quietly distdir distdir="${scratch#"$abs_top_builddir"/}/$1"
}

# compile OUTPUT ARGUMENT...: for the driver, with what the victims share.
compile()
{
  # shellcheck disable=SC2086 # the compiler may hold flags
  ${CC:-cc} -g -fno-omit-frame-pointer -D_GNU_SOURCE -isystem "${CUDA_INCLUDE:-/usr/local/cuda/include}" \
    -I "$abs_top_srcdir/tests/e2e/victims" -o "$@" >log 2>&1 || framework_failure_ "$1 does not build: $(cat log)"
}

# plugin FILE FLAG...: of plugin.c. Each has one function, with the name of SYMBOL, that takes BLOCKS blocks of BYTES
# bytes and keeps them; work() calls it, or CALLS where that is set.
plugin()
{
  compile "$1" -shared -fPIC -O1 -fno-optimize-sibling-calls -Wl,-soname,"$1" "$srcdir/e2e/plugin.c" "${@:2}" \
    "$sim_dir/libcuda.so.1"
}

# claims [FILE]: the expressions on standard input hold of this report in JSON, see claims.py; of other JSON
# than reports $claims_of names the script.
claims()
{
  need_program python3
  python3 "$abs_top_srcdir/tests/e2e/${claims_of:-claims.py}" "${1:-report.json}" >&2 || fail_ "${1:-report.json} is wrong"
}

# Puts aside what a run without the library left: out.plain, err.plain, sim.plain, $plain_status_.
keep_plain_()
{
  # A victim that stops halfway would be compared with itself, and its later claims with nothing.
  [ "$status" != 99 ] || fail_ 'the victim does not get to its end'
  plain_status_=$status
  mv out out.plain
  mv err err.plain
  rm -f sim.plain
  [ ! -e sim ] || mv sim sim.plain
}

# The last run, under the library, gave the program what that one gave it.
compare_with_plain_()
{
  [ "$status" = "$plain_status_" ] ||
    fail_ "exit status $status under the library, $plain_status_ without"
  cmp -s out.plain out || {
    diff -u out.plain out | head -n 40 >&2
    fail_ 'standard output differs under the library'
  }
}

# expect_same_as_plain [VAR=value...] prog args
# Runs prog with and without the library: standard output and exit status must not differ. What is
# left is that of the run with it; the other's output is in out.plain and err.plain.
expect_same_as_plain()
{
  run_plain "$@"
  keep_plain_
  run_preloaded "$@"
  compare_with_plain_
}

# expect_silent: the last run wrote nothing on standard error.
expect_silent()
{
  [ ! -s err ] || fail_ 'something was written on standard error'
}

# expect_line REGEX [FILE]: FILE (err) has a line that matches the extended regular expression.
expect_line()
{
  grep -qE -e "$1" -- "${2:-err}" || {
    [ "${2:-err}" = err ] || head -n 60 -- "$2" >&2
    fail_ "no line matches '$1' in ${2:-err}"
  }
}

expect_no_line()
{
  grep -E -e "$1" -- "${2:-err}" >&2
  case $? in
    0) fail_ "a line matches '$1' in ${2:-err}" ;;
    1) ;;
    *) fail_ "there is no ${2:-err} to look for '$1' in" ;;
  esac
}

# expect_lines N REGEX [FILE]: exactly N lines match.
expect_lines()
{
  local count
  count=$(grep -cE -e "$2" -- "${3:-err}")
  [ "$count" = "$1" ] || fail_ "$count lines match '$2' in ${3:-err}, expected $1"
}

# summary_value KEY [FILE]: prints the number that the SUMMARY line gives for it, or nothing.
summary_value()
{
  sed -n -E "s/^(==[0-9]+==|cuwarden:) SUMMARY: (.* )?$1=([0-9]+)( .*)?\$/\\3/p" -- "${2:-err}" | tail -n 1
}

# holds_ NUMBER OPERATOR NUMBER: =, >= or <=.
holds_()
{
  case $2 in
    '=') [ "$1" -eq "$3" ] ;;
    '>=') [ "$1" -ge "$3" ] ;;
    '<=') [ "$1" -le "$3" ] ;;
  esac
}

# expect_summary [FILE] KEY=VALUE...: what the one SUMMARY line of FILE (err) says. Also KEY>=VALUE
# and KEY<=VALUE.
expect_summary()
{
  local file=err fact key operator value found
  case $1 in
    *=*) ;;
    *) file=$1; shift ;;
  esac
  expect_lines 1 '^(==[0-9]+==|cuwarden:) SUMMARY: ' "$file"
  for fact in "$@"; do
    [[ $fact =~ ^([a-z_]+)(=|\>=|\<=)([0-9]+)$ ]] || framework_failure_ "bad expectation '$fact'"
    key=${BASH_REMATCH[1]} operator=${BASH_REMATCH[2]} value=${BASH_REMATCH[3]}
    found=$(summary_value "$key" "$file")
    [ -n "$found" ] || fail_ "the SUMMARY line of $file has no $key"
    holds_ "$found" "$operator" "$value" || fail_ "$key is $found in $file, expected $fact"
  done
}

# check_claims [REPORT]: a victim says on standard output what its report must say, see
# victims/victim.h. Holds that against the text in REPORT (report) and the JSON in REPORT.json.
check_claims()
{
  local report=${1:-report} word rest
  local -a facts
  need_program python3
  [ -s "$report" ] || fail_ "no report in $report"
  while read -r word rest; do
    case $word in
      expect) read -r -a facts <<<"$rest"; expect_summary "$report" "${facts[@]}" ;;
      report) expect_line "$rest" "$report" ;;
      no) expect_no_line "${rest#report }" "$report" ;;
    esac
  done < <(grep -E '^(expect|report|no report) ' out)
  [ ! -s "$report.json" ] || sed -n -E 's/^json //p; /^(pool|strict|deferred) /p' out |
    python3 "$abs_top_srcdir/tests/e2e/claims.py" "$report.json" >claims || {
    head -n 40 claims >&2
    fail_ "the JSON report is wrong"
  }
}

# The kinds and texts of misuse in a report of the simulated driver, sorted.
misuses_()
{
  sed -n -E '/^misuse /{s/0x[0-9a-f]+/ADDRESS/g;p}' "$1" 2>/dev/null | sort
}

# The library adds no misuse of the simulated driver. A second free of a block that the pool keeps
# never reaches it, so some may be missing there.
check_misuses_()
{
  comm -13 <(misuses_ sim.plain) <(misuses_ sim) >added
  [ ! -s added ] || { cat added >&2; fail_ 'the library misuses the driver'; }
  grep -qs 'POOL  FREE_SYNC=' report || cmp -s <(misuses_ sim.plain) <(misuses_ sim) ||
    fail_ 'the driver is misused less, without a pool'
}

# check_victim [VAR=value...] prog args
# As expect_same_as_plain; then holds the report against what the victim says of it. The library
# must add no misuse of the simulated driver either.
check_victim()
{
  rm -f sim
  run_plain CUSIM_REPORT=sim "$@"
  keep_plain_
  with_reports "$@"
  compare_with_plain_
  check_claims report
  check_misuses_
}

# What the library can be set to that no program may notice.
modes='track strict deferred'

# settings_of MODE: as an array in ${settings[@]}.
settings_of()
{
  case $1 in
    track) settings=(CUWARDEN_MODE=track) ;;
    *) settings=(CUWARDEN_MODE=pool "CUWARDEN_FREE_SYNC=$1") ;;
  esac
}

# check_modes [VAR=value...] prog args
# check_victim in each of $modes, against one run without the library. The reports of each stay in
# report.MODE, report.MODE.json and sim.MODE.
check_modes()
{
  local mode
  local -a settings
  rm -f report report.* sim sim.*
  run_plain CUSIM_REPORT=sim "$@"
  keep_plain_
  for mode in $modes; do
    settings_of "$mode"
    with_reports "${settings[@]}" "$@"
    last_run_="$last_run_ (${settings[*]})"
    compare_with_plain_
    check_claims report
    check_misuses_
    mv report "report.$mode"
    mv report.json "report.$mode.json"
    [ ! -e sim ] || mv sim "sim.$mode"
  done
}

# in_modes ANSWERS [VAR=value...] drv_script words
# Runs it under the library in each of $modes: ANSWERS is what its commands are to return, one after
# the other. Holds the reports against its claims, and sees that the driver is not misused and that
# standard error has nothing of the library's. Nothing is compared with a run without the library.
in_modes()
{
  local answers=$1 mode found
  local -a settings
  shift
  for mode in $modes; do
    settings_of "$mode"
    exits 0 with_reports CUWARDEN_DUMP_OOM=off "${settings[@]}" "$@"
    last_run_="$last_run_ (${settings[*]})"
    found=$(sed -n -E 's/^[a-z-]+(:.*)?: (-?[0-9]+)$/\2/p' out | tr '\n' ' ')
    [ "$found" = "$answers${answers:+ }" ] || fail_ "the answers are $found, expected $answers"
    check_claims
    grep -q '^misuse_count 0$' sim || { grep '^misuse' sim >&2; fail_ 'the driver is misused'; }
    expect_no_line '^(==|cuwarden:)'
  done
}

# calls_of FILE: what was called how often, from the simulated driver's report.
calls_of()
{
  sed -n -E 's/^calls ([^ ]+) ([0-9]+)$/\1 \2/p' "$1" | sort
}

# expect_calls FILE SYMBOL<=N...: how often the simulated driver was called; also SYMBOL=N, SYMBOL>=N.
expect_calls()
{
  local file=$1 fact count
  shift
  for fact in "$@"; do
    [[ $fact =~ ^(cu[A-Za-z0-9_]+)(=|\>=|\<=)([0-9]+)$ ]] || framework_failure_ "bad expectation '$fact'"
    count=$(sed -n "s/^calls ${BASH_REMATCH[1]} //p" "$file")
    holds_ "${count:-0}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" ||
      fail_ "${BASH_REMATCH[1]} is called ${count:-0} times in $file, expected $fact"
  done
}
