# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The tables of bench/run, as Markdown.

# cells NAME TEXT...: each as wide as the name of its column wants it; the columns are $columns and then
# those of $more.
cells()
{
  local column
  for column in "${columns[@]}"; do
    printf ' %*s |' "$((${#label[$column]} > 7 ? ${#label[$column]} : 7))" "$1"
    shift
  done
  for column in "${more[@]}"; do
    printf ' %*s |' "${#column}" "$1"
    shift
  done
  echo
}

# heading FIRST...: the line above a table, FIRST being its columns before $columns.
heading()
{
  local column
  local -a names=()
  printf '|'
  printf ' %s |' "$@"
  for column in "${columns[@]}"; do
    names+=("${label[$column]}")
  done
  cells "${names[@]}" "${more[@]}"
  printf '|'
  printf -- '---|%.0s' "$@" "${names[@]}" "${more[@]}"
  echo
}

# row WORKLOAD CONTESTANT...: measures and prints the cells of $columns, and how STACKS=off stands to
# CUB and to PyTorch.
row()
{
  local workload=$1 contestant
  local -a texts=()
  measure "$@"
  for contestant in "${columns[@]}"; do
    texts+=("$(ns "$contestant" "$workload")")
  done
  cells "${texts[@]}" "$(ratio "$(ns none "$workload")" "$(ns cub "$workload")")" \
    "$(ratio "$(ns none "$workload")" "$(ns torch "$workload")")"
}

# pair_row THREADS LIVE FREES CONTESTANT...
pair_row()
{
  printf '| %7d | %7d | %-5s |' "$1" "$2" "$3"
  row "pattern=$3 threads=$1 live=$2" "${@:4}"
}

# PyTorch's and RMM's allocators, whose cost hardly depends on what is live, take part where nothing is and
# where most of $live_list is.
pairs_table()
{
  local threads live most=${live_list##* }
  local -a columns=(plain "${rivals[@]}" off track before none caller full) more=('over CUB' 'over PyTorch') against
  echo "Pairs of 4 KiB, ns; STACKS is for MODE=$mode; over CUB, over PyTorch: STACKS=off."
  echo
  heading threads '   live' frees
  for threads in $threads_list; do
    pair_row "$threads" 0 last plain "${rivals[@]}" off track before none caller full
    for live in $live_list; do
      against=(cub)
      [ "$live" != "$most" ] || against=("${rivals[@]}")
      [ "$live" = 0 ] || pair_row "$threads" "$live" last plain "${against[@]}" off track before none caller
    done
    [ "$live_max" = 0 ] || pair_row "$threads" "$live_max" last plain cub none
  done
  for live in $live_list $live_max; do
    against=(cub)
    [ "$live" != "$most" ] || against=("${rivals[@]}")
    [ "$live" = 0 ] || pair_row 1 "$live" any plain "${against[@]}" none
  done
}

sizes_table()
{
  local size
  local -a columns=(plain "${rivals[@]}" before none deferred) more=('over CUB' 'over PyTorch')
  echo "Pairs by size with MODE=$mode, STACKS=off, one thread, ns. CUB keeps no block above 2 GiB."
  echo
  heading '     size'
  for size in $sizes; do
    printf '| %9s |' "$(numfmt --to=iec-i --suffix=B "$size" | sed -E 's/([KMGT]?i?B)$/ \1/')"
    row "pattern=last bytes=$size" plain "${rivals[@]}" before none deferred
  done
}

# Streams of their own, which allocators that know of streams keep blocks for apart.
streams_table()
{
  local threads streams
  local -a columns=(plain "${rivals[@]}" none) more=('over CUB' 'over PyTorch')
  echo "Pairs of 4 KiB by threads and streams of each with MODE=$mode, STACKS=off, ns of one thread."
  echo
  heading threads streams
  for threads in $threads_list; do
    for streams in 1 $streams_list; do
      printf '| %7d | %7d |' "$threads" "$streams"
      row "pattern=last threads=$threads streams=$streams" plain "${rivals[@]}" none
    done
  done
}

# other_row NAME WORKLOAD CONTESTANT [BESIDE]: the contestant, and in turn another one to compare with.
other_row()
{
  local name=$1 workload=$2 contestant=$3 plain
  measure "$workload" plain "$contestant" "${@:4}"
  plain=${best[plain $workload]}
  awk -v name="$name" -v plain="$plain" -v ns="${best[$contestant $workload]}" \
    'BEGIN { printf "| %-46s | %5s | %8s | %8.1f |\n", name, plain, ns, ns - plain }'
}

others_table()
{
  local depth
  echo "Other pairs with MODE=$mode, one thread, ns."
  echo
  echo '| pair                                           | plain | cuwarden |    added |'
  echo '|---|---|---|---|'
  for depth in 8 24; do
    other_row "STACKS=full, $depth more frames" "pattern=last depth=$depth" full
  done
  if [ "$mode" = pool ]; then
    other_row 'FREE_SYNC=deferred' 'pattern=last' deferred
    other_row 'FREE_SYNC=deferred, synchronised every 100' 'pattern=last sync=100' deferred
  fi
  other_row 'LIMIT=64G, MIN_FREE=1G' 'pattern=last' limited none
  other_row 'pinned (cuMemHostAlloc, cuMemFreeHost)' 'kind=pinned pattern=last' none
  other_row 'pitched (cuMemAllocPitch)' 'kind=pitched pattern=last' none
  other_row "the driver's pool (cuMemAllocAsync)" 'kind=asyncmax pattern=last' none
}

mix_table()
{
  local mix workload contestant name upstream hits efficiency fragmentation
  echo 'One of 64 blocks freed and one of a random size taken, ns. Upstream: allocations that reached'
  echo "the driver in all of them. cuwarden: MODE=$mode, STACKS=off."
  echo
  echo '| bytes          | contestant | pair   | over CUB | upstream | hits    | efficiency | fragmentation |'
  echo '|---|---|---|---|---|---|---|---|'
  for mix in $mixes; do
    workload="pattern=mix low=${mix%:*} high=${mix#*:}"
    measure "$workload" plain "${rivals[@]}" before none
    for contestant in plain "${rivals[@]}" before none; do
      [ -n "${best[$contestant $workload]:-}" ] || continue
      read -r upstream _ _ hits efficiency fragmentation <<<"${others[$contestant $workload]}"
      name=${label[$contestant]}
      [ "$contestant" != none ] || name=cuwarden
      printf '| %-14s | %-10s | %6s | %8s | %8s | %7s | %10s | %13s |\n' "${mix/:/..}" \
        "$name" "${best[$contestant $workload]}" \
        "$(ratio "${best[$contestant $workload]}" "${best[cub $workload]:-}")" \
        "$upstream" "$hits" "$efficiency" "$fragmentation"
    done
  done
}

# What programs do, and what each policy makes of it. Leaves the figures for the aims in figure_of.
declare -A figure_of=()
traces_table()
{
  local line
  if ! command -v python3 >/dev/null; then
    echo 'The traces are not replayed: no python3.'
    return
  fi
  # shellcheck disable=SC2154,SC2086 # set by bench/run; a list of files
  TORCH=${program[torch]:-} RMM=${program[rmm]:-} python3 "$here/trace_tables.py" \
    "$abs_top_builddir/src/cuwarden" "$work" "$json" $traces 2>"$errors" || give_up 'a trace is not replayed'
  while read -r line; do
    # shellcheck disable=SC2034 # for aims.sh
    figure_of[${line%%=*}]=${line#*=}
  done <"$work/traces.figures"
}

# In virtual time: the same at any load.
judge_table()
{
  local program variant line
  echo "Virtual time on an H100's costs (judge_driver.c), MODE=pool, STACKS=off, a repeat: the program as it is with an"
  echo 'allocator that costs nothing (ideal), with the driver alone, and with the pool; calls of the driver for a pair.'
  echo
  echo '| program | variant  |       ms | over ideal | held MiB | over live | calls | alloc | free  | id     | record | query  |'
  echo '|---|---|---|---|---|---|---|---|---|---|---|---|'
  for program in $judge_programs; do
    for variant in ideal native strict deferred; do
      line=$(judge_figures "$program" "$variant" 2>"$errors") || give_up "judge $program $variant failed"
      awk -v program="$program" -v variant="$variant" -v json="$json" '{
          printf "{\"what\": \"judge\", \"program\": \"%s\", \"variant\": \"%s\", \"ms\": %s, \"over_ideal\": %s, " \
            "\"held_bytes\": %s, \"live_bytes\": %s, \"calls\": %s", program, variant, $4, $1, $5, $6, $3 >>json
          for (i = 7; i <= NF; i++) {
            split($i, call, "=")
            of[call[1]] = call[2]
            printf ", \"%s\": %s", call[1], call[2] >>json
          }
          print "}" >>json
          printf "| %-7s | %-8s | %8.3f | %10s | %8.0f | %9s | %5.2f | %5.2f | %5.2f | %6.2f | %6.2f | %6.2f |\n", program, \
            variant, $4, $1, $5 / 1048576, $2, $3, of["cuMemAlloc_v2"], of["cuMemFree_v2"], of["cuCtxGetId"], \
            of["cuCtxRecordEvent"], of["cuEventQuery"]
        }' <<<"$line"
    done
  done
}
