#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What cuwarden costs on a GPU: `make bench-gpu`, and the rows bench:PART of scripts/gpu-check. Builds the
# programs, and has bench.py measure; skipped (77) without a GPU.
#
#   bench.sh             all parts and the tables of programs/cost.c, as Markdown; also tests/bench/gpu.md in
#                        the build tree, and gpu.json beside it
#   bench.sh PART        one of pairs, first, asks, heavy and torch_train; its rows to BENCH_OUT (bench.PART)
#
#   BENCH_SECONDS=60     how long a part may take, its building included
#   GPU_CHECK_DRIVER_DIR the directory of another libcuda.so.1; figures over the simulated one say nothing
. "${srcdir:=$(dirname "$0")/..}/gpu/init.sh"
. "$srcdir/bench/contestants.sh"

: "${PYTHON:=python3}" "${BENCH_SECONDS:=60}"
[[ $BENCH_SECONDS =~ ^[1-9][0-9]{0,5}$ ]] || framework_failure_ "BENCH_SECONDS: '$BENCH_SECONDS' is no number of seconds"
need_driver
command -v "$PYTHON" >/dev/null || skip_ "$PYTHON is not installed"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE PYTHON

# The headers of configure, or of the toolkit.
: "${NVCC:=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}"
[ -n "${CUDA_INCLUDE:-}" ] || CUDA_INCLUDE=$(dirname "$NVCC")/../include
export CUDA_INCLUDE

simulated=()
if is_simulated; then
  simulated=(--simulated)
  CUDART=$(find "$driver_dir" -maxdepth 1 -name 'libcudart.so.[0-9]*' | head -n 1)
  export CUDART
fi

without=() # options of bench.py
read -r _ driver _ <gpu
[ "$driver" -ge 12050 ] || without+=(--without 'deferred=the driver has no events of a context, they came with CUDA 12.5')

# Contestants of others that cannot be built or do not run here are left out, with the reason.
build_pairs()
{
  local name
  build_contestants "$PWD/programs" real 2>err || fail_ "pairs.c does not compile: $(first_error err)"
  for name in cub torch rmm; do
    if [ -z "${no[$name]:-}" ]; then
      run_plain timeout 60 "${program[$name]}" loops=1 pairs=1
      [ "$status" = 0 ] || no+=(["$name"]="does not run: $(head -n 1 err)")
    fi
    [ -z "${no[$name]:-}" ] || without+=(--without "$name=${no[$name]}")
  done
}

# measure PART FILE: bench.py's exit status in $status, its output in $part.out
measure()
{
  local part=$1 file=$2 begin=$SECONDS seconds name
  mkdir -p programs
  for name in first watch; do
    [ -x "programs/$name" ] || { build_plain_program "$name" && mv "$name" programs; }
  done
  case $part in
    pairs) build_pairs ;;
    asks)
      { build_null_driver stub && contestant_cc -I "$srcdir/../include" -o programs/asks "$srcdir/bench/asks.c" stub/libcuda.so.1 -ldl; } \
        2>err || fail_ "asks.c does not compile: $(first_error err)"
      ;;
    heavy)
      need_real_gpu
      build_program heavy static
      mv heavy-static programs/heavy
      ;;
  esac
  seconds=$((BENCH_SECONDS - (SECONDS - begin)))
  "$PYTHON" "$srcdir/gpu/bench.py" "$part" --programs "$PWD/programs" --library "$library" --out "$file" \
    --seconds "$((seconds > 1 ? seconds : 1))" ${driver_dir:+--driver "$driver_dir"} "${simulated[@]}" "${without[@]}" \
    >"$part.out" 2>err </dev/null
  status=$?
  cat "$part.out"
  case $status in
    0 | 1 | 77) ;;
    *) fail_ "bench.py ended with $status: $(tail -n 1 err)" ;;
  esac
}

case $# in
  0) ;;
  1)
    case $1 in
      pairs | first | asks | heavy | torch_train) ;;
      *) framework_failure_ "there is no part $1: pairs, first, asks, heavy or torch_train" ;;
    esac
    measure "$1" "${BENCH_OUT:-$abs_top_builddir/bench.$1}"
    exit "$status"
    ;;
  *) framework_failure_ 'one part, or none' ;;
esac

out=$abs_top_builddir/tests/bench
mkdir -p "$out" || framework_failure_ "cannot make $out"
build_plain_program cost
failed=
for part in pairs first asks heavy torch_train; do
  printf '%s: ' "$part" >&2
  # What is missing for a part ends the part, not all of them.
  (measure "$part" "$PWD/rows.$part"; exit "$status") >said
  status=$?
  tail -n 1 said >&2
  [ "$status" = 0 ] || [ "$status" = 77 ] || failed="$failed $part"
done
{
  printf '[\n'
  "$PYTHON" "$srcdir/gpu/bench_tables.py" json rows.*
  printf ']\n'
} >"$out/gpu.json"
{
  printf '%s, %s\n\n' "$(date -u +%Y-%m-%d)" "$(cut -d ' ' -f 3- gpu)"
  "$PYTHON" "$srcdir/gpu/bench_tables.py" markdown rows.*
  for what in blocking events; do
    [ "$what" = events ] || printf '\n## Do the driver'"'"'s own calls wait for a kernel?\n\n'
    [ "$what" = blocking ] || printf '\n## Events of a context\n\n'
    run_plain ./cost "$what"
    expect_status 0
    cat out
  done
} >tables
cat tables
cp tables "$out/gpu.md"
echo
echo "the same: $out/gpu.md; for programs: $out/gpu.json"
[ -z "$failed" ] || fail_ "no figures of$failed"
