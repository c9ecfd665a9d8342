#!/bin/sh
# SPDX-License-Identifier: MIT
# Sends frames through the simulated GPU with an unmodified ffmpeg: ffmpeg.sh OUTDIR
#
# OUTDIR is what build.sh was given. Prints TAP. The frames that come back must be the frames that
# went up, bit for bit; the report must show that they really went there, without misuse or leak.
set -eu

[ $# -eq 1 ] || { echo "usage: ffmpeg.sh OUTDIR" >&2; exit 1; }
out=$(cd "$1" && pwd)
command -v ffmpeg >/dev/null || { echo "1..0 # SKIP no ffmpeg"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
n=0 failed=0

ok() { # SENTENCE COMMAND...
    sentence=$1 n=$((n + 1))
    shift
    if "$@"; then echo "ok $n - $sentence"; else echo "not ok $n - $sentence"; failed=1; fi
}

frames() { # FORMAT FILTERS FILE OPTIONS...
    vf="format=$1$2" file=$3
    shift 3
    ffmpeg -nostdin -v error "$@" -f lavfi -i testsrc2=size=322x242:rate=10:duration=2 \
        -vf "$vf" -f framemd5 -y "$file"
}

# shellcheck disable=SC2317 # called through ok
has() { grep -q "$1" "$scratch/report"; }

export LD_LIBRARY_PATH="$out${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for format in yuv420p nv12 yuv444p p010le bgr0; do
    frames "$format" "" "$scratch/plain" || exit 1
    for delay in 0 300; do
        CUSIM_DELAY_US=$delay CUSIM_REPORT="$scratch/report" \
            frames "$format" ",hwupload_cuda,hwdownload,format=$format" "$scratch/gpu" \
            -init_hw_device cuda=gpu -filter_hw_device gpu || true
        ok "$format frames come back as they were, delay $delay us" \
            cmp -s "$scratch/plain" "$scratch/gpu"
        ok "they have been on the GPU" has "^calls cuMemcpy2DAsync_v2"
        ok "nothing was misused" has "^misuse_count 0$"
        ok "nothing was leaked" has "^live device device 0 blocks 0 "
    done
done
echo "1..$n"
exit "$failed"
