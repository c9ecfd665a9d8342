#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stands in for compute-sanitizer over the simulated driver: takes the options that gpu/sanitizer.test
# gives, runs the program with STANDIN_WATCH preloaded behind what is, and ends as it ends. A defect of
# STANDIN_DEFECT that begins with "both-" is one only where another library is preloaded too.
set -u
log=
while [ $# -gt 0 ]; do
  case $1 in
    --version) echo 'Version 0.0 (stand-in)'; exit 0 ;;
    --tool | --leak-check | --show-backtrace | --print-limit) shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    -*) echo "sanitizer_standin.sh: there is no option $1" >&2; exit 2 ;;
    *) break ;;
  esac
done
[ -n "$log" ] || { echo 'sanitizer_standin.sh: no --log-file' >&2; exit 2; }
defect=${STANDIN_DEFECT:-}
case $defect in
  both-*) [ -n "${LD_PRELOAD:-}" ] && defect=${defect#both-} || defect= ;;
esac
echo '========= COMPUTE-SANITIZER' >"$log"
if [ "$defect" = deaf ]; then
  echo '========= Error: Target application terminated before first instrumented API call' >>"$log"
  exit 255
fi
# Of a device that it is too old or too new for; the program does not run.
if [ "$defect" = device ]; then
  echo '========= Error: Device not supported. Please refer to the "Supported Devices" section of the documentation' >>"$log"
  exit 1
fi
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$STANDIN_WATCH STANDIN_LOG=$log STANDIN_DEFECT=$defect "$@"
status=$?
[ "$defect" != status ] || status=$((status + 1))
exit "$status"
