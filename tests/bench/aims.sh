# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The last tables of bench/run: what a process pays for its start, and the figures against what is wanted
# of them.

start_up()
{
  local name=$1 program=$2 medians
  medians=$("$work/startup" "$runs" "$library" "$program" 2>"$errors") ||
    give_up "start-up of $program"
  awk -v name="$name" -v medians="$medians" -v json="$json" 'BEGIN {
      split(medians, ms, " ")
      printf "| %-8s | %8.3f | %14.3f | %16.3f |\n", name, ms[1], ms[2] - ms[1], ms[3] - ms[1]
      printf "{\"what\": \"start\", \"program\": \"%s\", \"plain_ms\": %.3f, " \
        "\"off_added_ms\": %.3f, \"default_added_ms\": %.3f}\n", \
        name, ms[1], ms[2] - ms[1], ms[3] - ms[1] >>json
    }'
}

start_table()
{
  echo '| start-up | plain ms | added MODE=off | added by default |'
  echo '|---|---|---|---|'
  start_up true /bin/true
  start_up cuInit "$work/init_only"
}

# ---- the aims ----

# bookkeeping: bytes resident per live block that are there only with the library.
bookkeeping()
{
  local workload="pattern=last threads=1 live=$live_max" resident plain
  read -r _ resident _ <<<"${others[none $workload]:-}"
  read -r _ plain _ <<<"${others[plain $workload]:-}"
  awk -v a="$resident" -v b="$plain" -v n="$live_max" \
    'BEGIN { if (a == "" || b == "") print "-"; else printf "%.1f\n", (a - b) / n }'
}

# aim NAME FIGURE at-most|at-least LIMIT
aim()
{
  awk -v name="$1" -v figure="${2:--}" -v sense="$3" -v limit="$4" -v json="$json" 'BEGIN {
      if (figure == "-") verdict = "not measured"
      else verdict = (sense == "at-most" ? figure <= limit : figure >= limit) ? "PASS" : "short of it"
      sub("-", " ", sense)
      printf "| %-48s | %7s | %-8s %5s | %-12s |\n", name, figure, sense, limit, verdict
      if (figure != "-")
        printf "{\"what\": \"aim\", \"name\": \"%s\", \"figure\": %s, \"%s\": %s, \"reached\": %s}\n", \
          name, figure, sense, limit, verdict == "PASS" ? "true" : "false" >>json
    }'
}

# difference A B: A - B, or - where one of them is missing
difference()
{
  awk -v a="$1" -v b="$2" 'BEGIN { if (a == "-" || b == "-") print "-"; else printf "%.1f\n", a - b }'
}

aims_table()
{
  local pair='pattern=last threads=1' mix workload efficiency
  echo '| aim                                              |  figure | wanted         | verdict      |'
  echo '|---|---|---|---|'
  aim 'pair over CUB, 0 live' "$(ratio "$(ns none "$pair live=0")" "$(ns cub "$pair live=0")")" at-most 0.6
  aim 'pair over CUB, 100000 live' \
    "$(ratio "$(ns none "$pair live=100000")" "$(ns cub "$pair live=100000")")" at-most 0.4
  aim "pair, $live_max live over 0 live" \
    "$(ratio "$(ns none "$pair live=$live_max")" "$(ns none "$pair live=0")")" at-most 1.3
  aim 'dearest size over 4 KiB' "$(ratio "$(dearest none)" "$(ns none 'pattern=last bytes=4096')")" at-most 1.3
  aim 'pairs/s of 2 threads over 1, 0 live' "$(scaling none)" at-least 1.6
  aim 'pair with full stacks over CUB, 0 live' \
    "$(ratio "$(ns full "$pair live=0")" "$(ns cub "$pair live=0")")" at-most 3
  aim 'LIMIT and MIN_FREE add to a pair, ns' "$(difference "$(ns limited 'pattern=last')" "$(ns none 'pattern=last')")" at-most 5
  aim "bytes of bookkeeping per live block" "$(bookkeeping)" at-most 128
  for mix in $mixes; do
    workload="pattern=mix low=${mix%:*} high=${mix#*:}"
    read -r _ _ _ _ efficiency _ <<<"${others[none $workload]:--}"
    aim "mix of ${mix/:/..} over CUB" "$(ratio "$(ns none "$workload")" "$(ns cub "$workload")")" at-most 0.4
    aim "efficiency in it" "${efficiency:--}" at-least 0.95
  done
  trace_aims
  asks_aims
  downloads_aims
  prefetches_aims
  echo
  echo "pairs/s of 2 threads over 1 of the others: plain $(scaling plain), CUB $(scaling cub)," \
    "PyTorch $(scaling torch), RMM $(scaling rmm)"
}

# The default on traces of programs, the worst of them: hits and efficiency on a device with room, fragmentation and hits on
# one of 1.6 times the peak. Less than 32 MiB held in vain is not counted as fragmentation.
trace_aims()
{
  local worst=${figure_of[hits_in]:--}
  aim "traces: hits of possible, worst $worst" "${figure_of[hits]:--}" at-least 0.995
  worst=${figure_of[efficiency_in]:--}
  aim "traces: efficiency, worst $worst" "${figure_of[efficiency]:--}" at-least 0.95
  worst=${figure_of[fragmentation_in]:--}
  aim "tight traces: fragmentation, worst $worst" "${figure_of[fragmentation]:--}" at-most 0.2
  worst=${figure_of[tight_hits_in]:--}
  aim "tight traces: hits of possible, worst $worst" "${figure_of[tight_hits]:--}" at-least 0.95
}

# What a program asks for, by include/cuwarden.
asks_aims()
{
  local push pop mark statistics ensure resize best
  read -r push pop mark statistics ensure resize < <(LD_PRELOAD=$library CUWARDEN_LIVE=off CUWARDEN_REPORT=off "$work/asks" \
    2>"$errors" | awk '{ printf "%s ", $2 } END { print "" }')
  [ -n "$resize" ] || give_up 'what a program pays for asking'
  aim 'a tag is pushed, ns' "$push" at-most 10
  aim 'a tag is popped, ns' "$pop" at-most 10
  aim 'a mark, ns' "$mark" at-most 1000
  aim 'a buffer that has room, ns' "$ensure" at-most 10
  aim 'a buffer that grows by a copy, beside the copy, ns' "$resize" at-most 1000000
  aim 'statistics of a device, one call site, ns' "$statistics" at-most 1000
  best=$(best_device)
  aim 'a pair on the best device over a pair' "${best:--}" at-most 1.05
}

# The median of seven runs.
best_device()
{
  for _ in {1..7}; do
    LD_PRELOAD=$library CUWARDEN_STACKS=off CUWARDEN_LIVE=off CUWARDEN_REPORT=off "$work/asks" all 2>"$errors" |
      awk '$1 == "pair" { pair = $2 } $1 == "device_alloc_pair" { printf "%.3f\n", $2 / pair }'
  done | sort -n | sed -n 4p
}

# Frames of 1 MiB of a device each of whose operations takes 2 ms, on the simulated driver; the host works for as long.
downloads_aims()
{
  local waits=- blocked=- after=- apart=-
  [ ! -x "$work/downloads" ] ||
    read -r waits blocked after apart _ < <(CUSIM_DELAY_US=2000 LD_PRELOAD=$library CUWARDEN_LIVE=off CUWARDEN_REPORT=off \
      "$work/downloads" 2000 2>"$errors") || give_up 'what a download takes'
  aim 'a download blocks its caller so many times less' "$(ratio "$waits" "$blocked")" at-least 2.8
  aim 'three stages apart: of what can overlap' \
    "$(awk -v one="$after" -v other="$apart" 'BEGIN { if (one == "-") print one; else printf "%.2f\n", (1 - other / one) * 1.5 }')" at-least 0.9
}

# A file of 256 MiB in the page cache, in chunks of 4 MiB, each of which takes the simulated device 2 ms besides.
prefetches_aims()
{
  local plain=- ahead=-
  [ ! -x "$work/prefetches" ] ||
    read -r plain ahead _ < <(CUSIM_DELAY_US=2000 LD_PRELOAD=$library CUWARDEN_LIVE=off CUWARDEN_REPORT=off \
      "$work/prefetches" "$work/prefetched" 256 2>"$errors") || give_up 'what a prefetch takes'
  aim 'a prefetch over read and a pageable copy' "$(ratio "$ahead" "$plain")" at-most 0.9
}

# dearest CONTESTANT: ns of its slowest size.
dearest()
{
  local size
  for size in $sizes; do
    ns "$1" "pattern=last bytes=$size"
  done | sort -n | tail -n 1
}

# scaling CONTESTANT: pairs per second of two threads together over those of one.
scaling()
{
  local one two
  one=$(ns "$1" 'pattern=last threads=1 live=0')
  two=$(ns "$1" 'pattern=last threads=2 live=0')
  [ "$one" = - ] || [ "$two" = - ] || one=$(awk -v ns="$one" 'BEGIN { print 2 * ns }')
  ratio "$one" "$two"
}
