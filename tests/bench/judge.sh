# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Builds and runs the judge: judge.c over judge_driver.c, in virtual time. To be sourced after contestants.sh,
# by bench/run and by tests/check/judge.test. $library is the preloaded library.

# shellcheck disable=SC2034 # for those who source this
judge_programs='heavy quick train torch'

# build_judge DIR: the driver and the programs.
build_judge()
{
  judge_dir=$1
  mkdir -p "$judge_dir" &&
    contestant_cc -shared -fPIC '-DEXPORT=__attribute__((visibility("default"), weak))' -Wl,-soname,libcuda.so.1 \
      -o "$judge_dir/libcuda.so.1" "$contestants_dir/null_driver.c" "$contestants_dir/judge_driver.c" &&
    contestant_cc -o "$judge_dir/judge" "$contestants_dir/judge.c" "$judge_dir/libcuda.so.1" \
      "-Wl,--disable-new-dtags,-rpath,$judge_dir"
}

# run_judge PROGRAM VARIANT: the line that judge.c prints. The variants: ideal, and native, without the library; strict and
# deferred, with it. A second thread would run in real time, so the library gets none.
run_judge()
{
  case $2 in
    ideal) "$judge_dir/judge" "$1" ideal ;;
    native) "$judge_dir/judge" "$1" ;;
    *)
      env "LD_PRELOAD=$library" "CUWARDEN_FREE_SYNC=$2" CUWARDEN_STACKS=off CUWARDEN_THREAD=off CUWARDEN_LIVE=off \
        CUWARDEN_REPORT=off "$judge_dir/judge" "$1"
      ;;
  esac
}

# judge_figures PROGRAM VARIANT: the time over that of the ideal, the held bytes over the live ones, the driver calls of a
# pair; then ms, held bytes, live bytes, and NAME=CALLS of a pair.
judge_figures()
{
  local ideal line
  ideal=$(run_judge "$1" ideal) && line=$(run_judge "$1" "$2") || return
  awk -v ideal="${ideal%% *}" '{
      printf "%.3f %.3f %.3f %.3f %s %s", $1 / ideal, $2 / $3, $5 / $4, $1 / 1e6, $2, $3
      for (i = 6; i <= NF; i++) { split($i, call, "="); printf " %s=%.3f", call[1], call[2] / $4 }
      print ""
    }' <<<"$line"
}
