# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Measures the workloads of workload.h and proves that what was to be measured was measured. Part of
# bench/run, which sets $work, $library, $mode and the numbers.

# What the contestants are called, and how the library is set for those that are it.
declare -A label=([plain]='plain' [cub]='CUB' [torch]='PyTorch' [rmm]='RMM' [off]='MODE=off'
  [track]='MODE=track' [none]='STACKS=off' [caller]='STACKS=caller' [full]='STACKS=full'
  [deferred]='FREE_SYNC=deferred' [limited]='LIMIT and MIN_FREE' [before]='before')
declare -A setting=([off]='MODE=off' [track]='MODE=track STACKS=off'
  [none]="MODE=$mode STACKS=off" [caller]="MODE=$mode STACKS=caller" [full]="MODE=$mode STACKS=full"
  [deferred]="MODE=$mode STACKS=off FREE_SYNC=deferred" [before]="MODE=$mode STACKS=off"
  [limited]="MODE=$mode STACKS=off LIMIT=64G MIN_FREE=1G")

# The other allocators. CUB keeps blocks of up to 2 GiB and no larger ones.
# shellcheck disable=SC2034 # for the tables
rivals=(cub torch rmm)
cub_max=$((2 << 30))

# For the start-up: a program that only calls cuInit, and one that starts it often; and two that ask (include/cuwarden), one
# of them on the simulated driver, where a copy takes time.
build_others()
{
  contestant_cc -o "$work/init_only" "$here/init_only.c" "$work/libcuda.so.1" "-Wl,--disable-new-dtags,-rpath,$work" &&
    contestant_cc -o "$work/startup" "$here/startup.c" &&
    contestant_cc -I "$here/../../include" -o "$work/asks" "$here/asks.c" "$work/libcuda.so.1" -ldl "-Wl,--disable-new-dtags,-rpath,$work" &&
    { [ ! -e "$simulated/libcuda.so.1" ] ||
      { contestant_cc -I "$here/../../include" -o "$work/downloads" "$here/downloads.c" "$simulated/libcuda.so.1" -ldl \
        "-Wl,--disable-new-dtags,-rpath,$simulated" &&
        contestant_cc -I "$here/../../include" -o "$work/prefetches" "$here/prefetches.c" "$simulated/libcuda.so.1" -ldl \
          "-Wl,--disable-new-dtags,-rpath,$simulated"; }; }
}

# report_number KEY: what the SUMMARY line of the last report gives for it.
report_number()
{
  sed -n -E "s/^==[0-9]+== SUMMARY: (.* )?$1=([0-9]+)( .*)?\$/\\2/p" "$work/report" 2>/dev/null
}

# json_number KEY: the first number of that name in the last report, or -.
json_number()
{
  local found
  found=$(grep -oE "\"$1\": *[0-9.]+" "$work/report.json" 2>/dev/null | head -n 1)
  found=${found##*[: ]}
  echo "${found:--}"
}

# prove CONTESTANT WORKLOAD PAIRS ALLOCATIONS UPSTREAM: the last run did what is being measured. The
# library's report knows every allocation; a pool that waits at a free serves all but the first of the
# pairs, any other one some; and a cache goes to the driver for at most one in a hundred, beyond what is
# live.
prove()
{
  local contestant=$1 workload=$2 pairs=$3 allocs=$4 upstream=$5 hits least=1
  case $contestant in
    plain | off | cub | torch | rmm)
      [ ! -e "$work/report" ] || give_up "$*: a report where there should be none"
      case "$contestant $workload" in
        plain* | off*) ;;
        *)
          [ "$upstream" -le $((allocs - pairs + pairs / 100 + 100)) ] ||
            give_up "$*: $upstream of $allocs allocations reached the driver: nothing was cached"
          ;;
      esac
      return
      ;;
  esac
  [ "$(report_number allocs)" = "$allocs" ] ||
    give_up "$*: the report does not know of $allocs allocations: $(tail -n 1 "$work/report" 2>&1)"
  [ "$mode" = pool ] && [ "$contestant" != track ] || return 0
  case "$contestant $workload" in
    *kind=async*) return ;; # the driver's pool serves them
    deferred* | *pattern=mix*) ;;
    *) least=$((pairs * 99 / 100)) ;;
  esac
  hits=$(report_number pool_hits)
  [ "${hits:-0}" -ge "$least" ] || give_up "$*: ${hits:-no} hits of the pool, not $least"
}

# one_run CONTESTANT WORKLOAD: prints ns per pair, allocations that reached the driver, bytes
# resident, the median; and of the library's report hits, efficiency and fragmentation.
one_run()
{
  local contestant=$1 workload=$2 file=${program[driver]} pairs=$iters ns allocs upstream resident median word
  local library=$library
  local -a environment=() words=()
  read -r -a words <<<"$workload"
  rm -f "$work/report" "$work/report.json"
  case $contestant in
    plain) ;;
    cub | torch | rmm) file=${program[$contestant]} ;;
    *)
      [ "$contestant" != before ] || library=$BEFORE
      environment=("LD_PRELOAD=$library" "CUWARDEN_REPORT=$work/report" CUWARDEN_FORMAT=both)
      for word in ${setting[$contestant]}; do
        environment+=("CUWARDEN_$word")
      done
      ;;
  esac
  [ "$contestant" != full ] || pairs=$(((iters + 3) / 4))
  env "${environment[@]}" "$file" "${words[@]}" "loops=$loops" "pairs=$pairs" \
    >"$work/result" 2>"$errors" </dev/null || give_up "${file##*/} $workload for $contestant failed"
  read -r ns allocs upstream resident median _ <"$work/result"
  prove "$contestant" "$workload" "$(pairs_of "$workload" $((pairs * loops)))" "$allocs" "$upstream"
  echo "$ns $upstream $resident $median $(report_number pool_hits | grep . || echo -)" \
    "$(json_number efficiency) $(json_number fragmentation)"
}

# word_of KEY WORKLOAD [DEFAULT]: the value of KEY=VALUE.
word_of()
{
  local word
  for word in $2; do
    [ "${word%%=*}" != "$1" ] || { echo "${word#*=}"; return; }
  done
  echo "${3:-}"
}

# pairs_of WORKLOAD PAIRS: PAIRS of all its threads together.
pairs_of()
{
  echo $(($(word_of threads "$1" 1) * $2))
}

# is_left_out CONTESTANT WORKLOAD
is_left_out()
{
  [ -z "${no[$1]:-}" ] || return 0
  case $1 in
    track) [ "$mode" = track ] ;;
    before) [ -z "${BEFORE:-}" ] ;;
    deferred) [ "$mode" != pool ] ;;
    cub) [ "$(word_of bytes "$2" 0)" -gt "$cub_max" ] ;;
    *) return 1 ;;
  esac
}

# measure WORKLOAD CONTESTANT...: the rounds go over all contestants in turn. Leaves the least ns in
# best[CONTESTANT WORKLOAD] and the rest of one_run's in others[...].
declare -A best others
measure()
{
  local workload=$1 contestant round ns key rest
  shift
  for ((round = 0; round < rounds; round++)); do
    for contestant in "$@"; do
      ! is_left_out "$contestant" "$workload" || continue
      key="$contestant $workload"
      rest=$(one_run "$contestant" "$workload") || exit 1
      ns=${rest%% *}
      best[$key]=$(awk -v a="${best[$key]:-}" -v b="$ns" 'BEGIN { print a == "" || b < a ? b : a }')
      others[$key]=${rest#* }
    done
  done
  for contestant in "$@"; do
    [ -z "${best[$contestant $workload]:-}" ] || write_json "$contestant" "$workload"
  done
}

# write_json CONTESTANT WORKLOAD: one object, in which bytes, threads, streams and live are always there.
write_json()
{
  awk -v label="${label[$1]}" -v stacks="$(word_of STACKS "${setting[$1]:-}")" \
    -v workload="bytes=4096 threads=1 streams=1 live=0 $2" -v ns="${best[$1 $2]}" -v others="${others[$1 $2]}" \
    -v plain="${best[plain $2]:-}" -v cub="${best[cub $2]:-}" -v torch="${best[torch $2]:-}" \
    -v rmm="${best[rmm $2]:-}" -v mode="$mode" 'BEGIN {
      split("upstream resident median hits efficiency fragmentation", name, " ")
      split(others, value, " ")
      count = split(workload, word, " ")
      printf "{\"what\": \"pair\", \"contestant\": \"%s\", \"mode\": \"%s\"", label, mode
      if (stacks != "") printf ", \"stacks\": \"%s\"", stacks
      for (i = 1; i <= count; i++) {
        split(word[i], part, "=")
        if (!(part[1] in of)) order[++words] = part[1]
        of[part[1]] = part[2]
      }
      if (of["pattern"] == "mix") of["bytes"] = ""
      for (i = 1; i <= words; i++) {
        text = of[order[i]]
        if (text != "") printf text ~ /^[0-9]+$/ ? ", \"%s\": %s" : ", \"%s\": \"%s\"", order[i], text
      }
      printf ", \"ns\": %s", ns
      if (plain != "") printf ", \"added_ns\": %.2f, \"over_plain\": %.3f", ns - plain, ns / plain
      if (cub != "") printf ", \"over_cub\": %.3f", ns / cub
      if (torch != "") printf ", \"over_torch\": %.3f", ns / torch
      if (rmm != "") printf ", \"over_rmm\": %.3f", ns / rmm
      for (i = 1; i <= 6; i++)
        if (value[i] != "-") printf ", \"%s\": %s", name[i], value[i]
      print "}"
    }' >>"$json"
}

# ns CONTESTANT WORKLOAD: as measured, or -.
ns()
{
  echo "${best[$*]:--}"
}

# ratio A B: A/B, or - where one of them was not measured.
ratio()
{
  awk -v a="${1:--}" -v b="${2:--}" \
    'BEGIN { if (a == "-" || b == "-" || b == 0) print "-"; else printf "%.2f\n", a / b }'
}
