#!/bin/sh
# SPDX-License-Identifier: MIT
# A channel through an unmodified ffmpeg: videos.sh SECONDS. A programme and its breaks, which come in smaller sizes,
# follow each other as they would be sent, at 25 pictures a second; each goes to the GPU, is deinterlaced, made smaller
# to three sizes, and comes back. Where the size changes ffmpeg builds its filters anew, and with them their pictures.
set -eu

seconds=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

programme=1920x1080
breaks='1280x720 720x576 1280x720'
for size in $programme $breaks; do
  [ -e "$scratch/$size.ts" ] || env -u LD_PRELOAD ffmpeg -nostdin -v error -f lavfi \
    -i "testsrc2=size=$size:rate=25:duration=3" -c:v mpeg2video -q:v 12 "$scratch/$size.ts"
done
left=$seconds
while [ "$left" -gt 0 ]; do
  for size in $breaks; do
    for part in $programme $programme $programme $size; do
      cat "$scratch/$part.ts"
      left=$((left - 3))
      [ "$left" -gt 0 ] || break 2
    done
  done
done >"$scratch/channel.ts"

ladder='[0:v]format=nv12,hwupload,yadif_cuda,split=3[a][b][c]'
ladder="$ladder;[a]scale_cuda=1280:720,hwdownload,format=nv12[large]"
ladder="$ladder;[b]scale_cuda=854:480,hwdownload,format=nv12[middle]"
ladder="$ladder;[c]scale_cuda=426:240,hwdownload,format=nv12[small]"
ffmpeg -nostdin -v error -re -init_hw_device cuda=gpu:0 -filter_hw_device gpu -i "$scratch/channel.ts" \
  -filter_complex "$ladder" -map '[large]' -f null - -map '[middle]' -f null - -map '[small]' -f null -
