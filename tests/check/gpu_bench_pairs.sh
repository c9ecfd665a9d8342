#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gpu_bench.test: stands for the program that measures pairs.
[ "$FAKE" != fails ] || { echo 'the device is on fire' >&2; exit 3; }
numbers='90 10 - 1000 100 90 110'
{
  echo "$numbers"
  for word; do
    [ "$word" != -- ] || echo "$numbers"
  done
} | case $FAKE in
  good) cat ;;
  short) sed 1d ;;
  word) sed '3s/.*/90 10 - 1000 unknown 90 110/' ;;
  zero) sed '3s/.*/90 10 - 1000 0 0 0/' ;;
  empty) sed '3s/.*//' ;;
  none) sed 's/.*/-/' ;;
esac
