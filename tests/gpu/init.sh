# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What every gpu/*.test starts with:
#
#   #!/usr/bin/env bash
#   . "${srcdir:=$(dirname "$0")/..}/gpu/init.sh"
#
#   need_real_gpu
#
# On top of e2e/init.sh; over the machine's own driver. $NVCC names the compiler. The programs are in
# gpu/programs.

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
# that may be the simulated one; else the test is skipped without a real GPU.
need_driver()
{
  local capability driver gpu_name simulated=
  driver_dir=${GPU_CHECK_DRIVER_DIR:-}
  [ -z "$driver_dir" ] || simulated=simulated
  # shellcheck disable=SC2086 # CC may hold flags
  ${CC:-cc} -o probe "$programs/probe.c" -ldl 2>err || framework_failure_ "probe: $(head -n 3 err)"
  env ${driver_dir:+"LD_LIBRARY_PATH=$driver_dir"} ./probe $simulated >gpu 2>/dev/null </dev/null ||
    skip_ "no GPU: $(tail -n 1 gpu)"
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
  ! grep -E '(warning|note):' build.log >&2 || fail_ "$name.c compiles with warnings"
}

# The test is skipped without nvcc and without a real GPU that its programs run on: a toolkit wants a
# driver of its own major version or newer, and builds for the devices that it lists. Sets $arch, the
# sm_NN to build for.
need_real_gpu()
{
  local capability driver gpu_name
  need_nvcc
  # shellcheck disable=SC2086 # CC may hold flags
  ${CC:-cc} -o probe "$programs/probe.c" -ldl 2>err || framework_failure_ "probe: $(head -n 3 err)"
  ./probe >gpu 2>/dev/null </dev/null || skip_ "no GPU: $(tail -n 1 gpu)"
  read -r capability driver gpu_name <gpu
  arch=sm_${capability/./}
  [ $((driver / 1000)) -ge "${toolkit% *}" ] ||
    skip_ "the driver is for CUDA $((driver / 1000)), older than $NVCC of ${toolkit/ /.}"
  "$NVCC" --list-gpu-code 2>/dev/null | grep -qx "$arch" ||
    skip_ "$NVCC of ${toolkit/ /.} cannot build for $gpu_name ($arch)"
  echo "on $gpu_name ($arch), driver for CUDA $driver, nvcc ${toolkit/ /.}"
}

# build_program NAME RUNTIME [FLAG...]: ./NAME-RUNTIME from programs/NAME.cu. RUNTIME is shared,
# static, or none: then the source is C++ for the driver alone.
build_program()
{
  local name=$1 runtime=$2 architectures
  local -a flags=(-cudart "$runtime")
  shift 2
  case $runtime in
    shared) flags+=(-DSHARED_CUDART -Xlinker "-rpath=$(runtime_dir)") ;;
    static) ;;
    none) flags+=(-x c++) ;;
  esac
  for architectures in $arch; do
    flags+=(-gencode "arch=compute_${architectures#sm_},code=$architectures")
  done
  "$NVCC" -g "${flags[@]}" "$@" -Xcompiler "$host_flags" -o "$name-$runtime" \
    "$programs/$name.cu" -lcuda -lpthread -ldl >build.log 2>&1 || {
    head -n 40 build.log >&2
    fail_ "$name.cu does not compile with the $runtime runtime"
  }
  # A warning in ours is one too many. nvcc speaks of old targets on its own.
  ! grep -E 'programs/.*(warning|note)' build.log >&2 || fail_ "$name.cu compiles with warnings"
}

# Where the shared runtime of this nvcc lies.
runtime_dir()
{
  local dir root
  root=$(dirname "$(dirname "$(readlink -f "$NVCC")")")
  for dir in "${CUDA_LIBDIR:-}" "$root/lib64" "$root/targets/$(uname -m)-linux/lib"; do
    [ ! -e "$dir/libcudart.so" ] || { echo "$dir"; return; }
  done
  framework_failure_ "no libcudart.so beside $NVCC"
}

# check_program [VAR=value...] prog args: stdout and exit status are those of a run without the
# library; the report says what the program says it must; and of every device that was used it is
# known what is not attributed.
check_program()
{
  need_program python3
  rm -f report report.json
  expect_same_as_plain CUWARDEN_REPORT=report CUWARDEN_FORMAT=both "$@"
  [ "$status" != 99 ] || fail_ 'the program itself fails, without the library too'
  expect_no_line '(^|: )[1-9][0-9]* elements are wrong|rows are wrong' out
  check_claims report
  echo "$*: as expected"
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
