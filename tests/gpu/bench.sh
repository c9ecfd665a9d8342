#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What allocations cost on a real GPU: `make bench-gpu`. Prints tables in Markdown, which go to
# tests/bench/gpu.md in the build tree too. Takes a minute or two; skipped (77) without a GPU.
#
#   MODE=pool   the mode of the library that is measured
. "${srcdir:=$(dirname "$0")/..}/gpu/init.sh"

mode=${MODE:-pool}
need_real_gpu
build_program cost static
table=$abs_top_builddir/tests/bench/gpu.md
mkdir -p "$(dirname "$table")" || framework_failure_ "cannot make $(dirname "$table")"

# How a pair is asked for, and with which settings of the library; none is without it.
columns=(malloc async strict strict-full deferred)
declare -A heading=([malloc]='cudaMalloc, cudaFree' [async]='cudaMallocAsync, cudaFreeAsync'
  [strict]='strict' [strict-full]='strict, STACKS=full' [deferred]='deferred')
declare -A setting=([malloc]='' [async]='' [strict]='FREE_SYNC=strict STACKS=off'
  [strict-full]='FREE_SYNC=strict STACKS=full' [deferred]='FREE_SYNC=deferred STACKS=off')

# measure_pairs COLUMN [used]: rows "BYTES MICROSECONDS" in out. A pool that served nothing was not
# measured.
measure_pairs()
{
  local column=$1 api=malloc word
  local -a settings=()
  [ "$column" != async ] || api=async
  if [ -z "${setting[$column]}" ]; then
    run_plain ./cost-static pairs "$api" "${@:2}"
  else
    for word in "MODE=$mode" ${setting[$column]} "REPORT=$scratch/report"; do
      settings+=("CUWARDEN_$word")
    done
    rm -f report
    run_preloaded "${settings[@]}" ./cost-static pairs "$api" "${@:2}"
    [ "$status" != 0 ] || [ "$mode" != pool ] || expect_summary report 'pool_hits>=1'
  fi
  expect_status 0
}

size_text()
{
  numfmt --to=iec-i --suffix=B --format=%.0f "$1" | sed -E 's/([KMG]i)B/ \1B/'
}

# pairs_table [used]: a row for each size, a column for each way to ask.
pairs_table()
{
  local column bytes cell
  for column in "${columns[@]}"; do
    measure_pairs "$column" "$@"
    cp out "pairs.$column"
  done
  printf '| size |'
  for column in "${columns[@]}"; do
    printf ' %s |' "${heading[$column]}"
  done
  printf '\n|---|'
  printf -- '---|%.0s' "${columns[@]}"
  echo
  while read -r bytes _; do
    printf '| %s |' "$(size_text "$bytes")"
    for column in "${columns[@]}"; do
      cell=$(awk -v bytes="$bytes" '$1 == bytes { print $2 }' "pairs.$column")
      printf ' %s |' "${cell:--}"
    done
    echo
  done <pairs.malloc
}

run_rows()
{
  run_plain ./cost-static "$@"
  expect_status 0
  cat out
}

{
  printf '%s, ' "$(date -u +%Y-%m-%d)"
  run_rows device
  echo
  echo "## One allocation and its free, us"
  echo
  echo "The first two without the library, cudaMallocAsync with a release threshold that keeps all; the"
  echo "others are cudaMalloc and cudaFree under CUWARDEN_MODE=$mode. The best of 5 loops."
  echo
  pairs_table
  echo
  echo 'With a memset of 4 KiB in a non-blocking stream in between:'
  echo
  pairs_table used
  echo
  echo "## Do the driver's own calls wait for a kernel?"
  echo
  run_rows blocking
  echo
  echo '## Events of a context'
  echo
  run_rows events
} >tables
cat tables
cp tables "$table"
echo
echo "the same: $table"
