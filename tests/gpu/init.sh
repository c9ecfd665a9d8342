# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What every gpu/*.test starts with:
#
#   #!/usr/bin/env bash
#   . "${srcdir:=$(dirname "$0")/..}/gpu/init.sh"
#
#   need_real_gpu
#
# On top of e2e/init.sh; over the machine's own driver, or the one in GPU_CHECK_DRIVER_DIR. $NVCC names the
# compiler. The programs are in gpu/programs.

. "$srcdir/e2e/init.sh"

programs=$srcdir/gpu/programs

# Stacks as in the source, names in the symbol table.
host_flags=-Wall,-Wextra,-O1,-fno-omit-frame-pointer,-fno-optimize-sibling-calls

# Sets $NVCC and $toolkit, its "MAJOR MINOR".
need_nvcc()
{
  : "${NVCC:=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}"
  "$NVCC" --version >nvcc.version 2>&1 || skip_ 'no nvcc that runs (set NVCC)'
  toolkit=$("$NVCC" --version | sed -n -E 's/.*release ([0-9]+)\.([0-9]+).*/\1 \2/p')
  [ -n "$toolkit" ] || framework_failure_ "$NVCC --version names no release"
}

# For programs that need no nvcc. GPU_CHECK_DRIVER_DIR names the directory of another libcuda.so.1, and
# that may be the simulated one; else the test is skipped without a real GPU. Sets $driver_library, the
# driver's file, which need not be where linkers look.
need_driver()
{
  local capability driver gpu_name simulated=
  driver_dir=${GPU_CHECK_DRIVER_DIR:-}
  [ -z "$driver_dir" ] || simulated=simulated
  # shellcheck disable=SC2086 # CC may hold flags
  ${CC:-cc} -o probe "$programs/probe.c" -ldl 2>err || framework_failure_ "probe: $(head -n 3 err)"
  env ${driver_dir:+"LD_LIBRARY_PATH=$driver_dir"} ./probe $simulated >gpu 2>driver.file </dev/null ||
    skip_ "no GPU: $(tail -n 1 gpu)"
  driver_library=$(tail -n 1 driver.file)
  [ -e "$driver_library" ] || driver_library=-l:libcuda.so.1 # LIBRARY_PATH may know
  read -r capability driver gpu_name <gpu
  echo "on $gpu_name ($capability), driver for CUDA $driver"
}

# build_plain_program NAME [FLAG...]: ./NAME from programs/NAME.c, with the C compiler alone.
build_plain_program()
{
  local name=$1
  shift
  # shellcheck disable=SC2086 # CC may hold flags
  ${CC:-cc} -std=gnu11 -g -O1 -Wall -Wextra -fno-omit-frame-pointer -D_GNU_SOURCE -o "$name" "$@" \
    "$programs/$name.c" -ldl >build.log 2>&1 ||
    { head -n 40 build.log >&2; fail_ "$name.c does not compile"; }
  ! grep -E '(warning|note):' build.log >&2 || warned_ "$name.c"
}

# A warning in ours is one too many; but gpu-check, which sets GPU_PROGRAMS, meets compilers that nobody has tried,
# and is about the driver.
warned_()
{
  [ -n "${GPU_PROGRAMS:-}" ] || fail_ "$1 compiles with warnings"
  echo "on this compiler: warnings in $1" >&2
}

# Sets $include, the headers of configure, or of the toolkit.
need_headers()
{
  : "${NVCC:=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}"
  include=${CUDA_INCLUDE:-$(dirname "$NVCC")/../include}
  [ -e "$include/cuda.h" ] || skip_ 'no cuda.h (set CUDA_INCLUDE)'
}

# build_victim NAME [FLAG...]: ./real_NAME from e2e/victims, after need_headers; NAME is that of the source, but rts_ for
# the static runtime. Programs for a runtime need find_runtime_.
build_victim()
{
  local source=$srcdir/e2e/victims/$1.c
  local -a parts=()
  case $1 in
    drv_*) parts=("$driver_library") ;;
    rt_*) parts=("-L$runtime_dir" -lcudart "-Wl,-rpath,$runtime_dir") ;;
    rts_*) source=$srcdir/e2e/victims/rt_${1#rts_}.c parts=("$runtime_dir/libcudart_static.a" -lrt) ;;
  esac
  # shellcheck disable=SC2086 # CC may hold flags
  ${CC:-cc} -std=gnu11 -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -D_GNU_SOURCE "${@:2}" \
    -pthread -isystem "$include" -I"$srcdir/sim" -o "real_$1" "$source" "${parts[@]}" -ldl \
    -Xlinker --allow-shlib-undefined >"build-$1" 2>&1 || {
    head -n 40 "build-$1" >&2
    fail_ "$1 does not compile"
  }
}

# For programs from nvcc. Without GPU_CHECK_DRIVER_DIR the test is skipped where no real GPU runs them: a
# toolkit wants a driver of its own major version or newer, and builds for the devices that it lists.
# Where that directory has a runtime beside its driver, programs are linked with it: over the simulated
# GPU kernels are functions of the host (programs/kernel.h). Sets $arch, the sm_NN to build for, and
# $runtime_dir, where the runtime lies.
need_real_gpu()
{
  local capability driver gpu_name
  need_nvcc
  need_driver
  read -r capability driver gpu_name <gpu
  arch=sm_${capability/./}
  [ $((driver / 1000)) -ge "${toolkit% *}" ] ||
    skip_ "the driver is for CUDA $((driver / 1000)), older than $NVCC of ${toolkit/ /.}"
  "$NVCC" --list-gpu-code 2>/dev/null | grep -qx "$arch" ||
    skip_ "$NVCC of ${toolkit/ /.} cannot build for $gpu_name ($arch)"
  ! is_simulated || [ -e "$driver_dir/libcudart.so.${toolkit% *}" ] ||
    skip_ "the simulated driver in $driver_dir has no runtime for $NVCC of ${toolkit/ /.}"
  find_runtime_ || framework_failure_ "no libcudart.so and libcudart_static.a beside $NVCC"
}

# Beside the driver, else beside nvcc; NVIDIA's runtime does not run on the simulated driver.
find_runtime_()
{
  local dir root
  local -a dirs=(${driver_dir:+"$driver_dir"})
  root=$(dirname "$(dirname "$(readlink -f "$(command -v "$NVCC")")")")
  is_simulated || dirs+=("${CUDA_LIBDIR:-}" "$root/lib64" "$root/targets/$(uname -m)-linux/lib" "$root/lib"
    /usr/local/cuda/lib64 "/usr/lib/$(uname -m)-linux-gnu")
  for dir in ${dirs[@]+"${dirs[@]}"}; do
    [ -e "$dir/libcudart.so" ] && [ -e "$dir/libcudart_static.a" ] && { runtime_dir=$dir; return; }
  done
  return 1
}

# Whether controls of the simulated driver mean something; CUSIM_ variables may be given to any.
is_simulated()
{
  [ -n "$driver_dir" ] && grep -qs cusim_calls "$driver_dir/libcuda.so.1"
}

# compile_program NAME FLAVOUR OBJECT: from programs/NAME.cu for each of $arch, or from NAME.cpp, which has
# no kernels. FLAVOUR is empty, or per-thread: then stream 0 is each thread's own.
compile_program()
{
  local name=$1 source=$programs/$1.cu architecture
  local -a flags=()
  [ -e "$source" ] || source=$programs/$name.cpp
  [ -z "$2" ] || flags+=(--default-stream "$2")
  for architecture in $arch; do
    flags+=(-gencode "arch=compute_${architecture#sm_},code=$architecture")
  done
  "$NVCC" -std=c++17 -g "${flags[@]}" -Xcompiler "$host_flags" -c -o "$3" "$source" >"$3.log" 2>&1 || {
    head -n 40 "$3.log" >&2
    fail_ "$(basename "$source") does not compile"
  }
  # nvcc speaks of old targets on its own.
  ! grep -E 'programs/.*(warning|note)' "$3.log" >&2 || warned_ "$(basename "$source")"
}

# link_program OBJECT RUNTIME OUT: RUNTIME is shared, static, or none, which leaves the driver alone. A
# simulated driver is searched for where the program runs.
link_program()
{
  local -a parts=("$1")
  case $2 in
    shared) parts+=("-L$runtime_dir" -lcudart) ;;
    static) parts+=("$runtime_dir/libcudart_static.a") ;;
  esac
  [ "$2" != shared ] || [ "$runtime_dir" = "$driver_dir" ] || parts+=(-Xlinker "-rpath=$runtime_dir")
  link_with_driver_ "$3" "${parts[@]}" >"$3.log" 2>&1 || {
    head -n 40 "$3.log" >&2
    fail_ "$3 does not link"
  }
}

# link_with_driver_ OUT PART...: with the toolkit's stub of the driver, or with the driver, where there is no stub.
link_with_driver_()
{
  local out=$1
  local -a libraries=(-lpthread -ldl -lrt)
  shift
  "$NVCC" -cudart none -o "$out" "$@" ${driver_dir:+"-L$driver_dir"} -lcuda "${libraries[@]}" ||
    "$NVCC" -cudart none -o "$out" "$@" "$driver_library" -Xlinker --allow-shlib-undefined "${libraries[@]}"
}

# build_program NAME RUNTIME [FLAVOUR]: ./NAME-RUNTIME[-FLAVOUR], or the one in the directory GPU_PROGRAMS,
# where compile.test leaves them all.
build_program()
{
  local name=$1 runtime=$2 flavour=${3:-} object program
  object=$name${flavour:+-$flavour}.o
  program=$name-$runtime${flavour:+-$flavour}
  [ -z "${GPU_PROGRAMS:-}" ] || [ ! -x "$GPU_PROGRAMS/$program" ] || { ln -sf "$GPU_PROGRAMS/$program" .; return; }
  [ -e "$object" ] || compile_program "$name" "$flavour" "$object"
  link_program "$object" "$runtime" "$program"
}

# keep_plain_, of a program that got to its end: with $wanted_status, or, where that is not set, with another status than
# those of a program whose calls all fail. That one would be the same under the library, and compare nothing.
keep_ended_()
{
  local wanted=${wanted_status:-}
  if [ -z "$wanted" ]; then
    case $status in 1 | 98 | 124) wanted='another' ;; esac
  fi
  [ "${wanted:-$status}" = "$status" ] ||
    fail_ "the victim does not get to its end: exit status $status, expected $wanted"
  keep_plain_
}

# check_program [VAR=value...] prog args: stdout and exit status are those of a run without the
# library; the report says what the program says it must; and of every device that was used it is
# known what is not attributed. A simulated driver must not be misused more than without the library.
check_program()
{
  need_program python3
  rm -f report report.json sim
  run_plain CUSIM_REPORT=sim "$@"
  keep_ended_
  run_preloaded CUSIM_REPORT=sim CUWARDEN_REPORT=report CUWARDEN_FORMAT=both "$@"
  compare_with_plain_
  check_misuses_
  expect_no_line '(^|: )[1-9][0-9]* elements are wrong|rows are wrong' out
  check_claims report
  echo "$*: as expected"
}

# check_program_in_modes [VAR=value...] prog args: the same in each of $modes, against one run without the
# library.
check_program_in_modes()
{
  local mode
  local -a settings
  need_program python3
  rm -f sim
  run_plain CUSIM_REPORT=sim "$@"
  keep_ended_
  for mode in $modes; do
    settings_of "$mode"
    rm -f report report.json sim
    run_preloaded CUSIM_REPORT=sim CUWARDEN_REPORT=report CUWARDEN_FORMAT=both "${settings[@]}" "$@"
    last_run_="$last_run_ (${settings[*]})"
    compare_with_plain_
    check_misuses_
    expect_no_line '(^|: )[1-9][0-9]* elements are wrong|rows are wrong' out
    check_claims report
  done
  echo "$*: as expected in each mode"
}

# check_prompt_program prog args: what a program says behind the word "prompt" holds where the device is never busy:
# with strict frees over the simulated GPU, whose work is done at once without CUSIM_LAZY. So a library that serves
# nothing is not taken for one on a busy machine. On one with too much to do the threads that do the work may come
# 20 ms late, and then a free does not wait: one run of twenty has to show it.
check_prompt_program()
{
  local left=20
  is_simulated || return 0
  until [ "$left" = 0 ]; do
    check_program CUWARDEN_MODE=pool CUWARDEN_FREE_SYNC=strict "$@"
    grep -q '^prompt ' out || framework_failure_ "$1 says nothing of a prompt device"
    ! sed -n 's/^prompt //p' out | python3 "$abs_top_srcdir/tests/e2e/claims.py" report.json >claims || return 0
    left=$((left - 1))
  done
  head -n 20 claims >&2
  fail_ 'the pool does not serve on a prompt device'
}

# The program synchronises, so that there were occasions to sample.
expect_unattributed()
{
  python3 "$abs_top_srcdir/tests/e2e/claims.py" report.json >claims <<'END' ||
r["devices"] and all(type(d.get("unattributed")) is int for d in r["devices"])
all(d["driver_used"] >= d["unattributed"] > 0 for d in r["devices"])
END
    { head -n 20 claims >&2; fail_ 'unattributed is no number'; }
  # The last column of the table under DEVICES, for humans.
  expect_line '^==[0-9]+==   0 .* [0-9.]+ ([KMGT]i)?B$' report
}
