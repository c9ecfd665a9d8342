#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the traces of this directory again: record.sh [NAME...], in a tree that has been built (README.md).
#
#   PYTHON=python3   the one that has PyTorch for CUDA 13, and numba-cuda
#   SECONDS_EACH=60  how long each program runs
#   OUT=DIR          where they go (this directory)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
: "${abs_top_builddir:=$top/build/test}" "${PYTHON:=python3}" "${SECONDS_EACH:=60}" "${OUT:=$here}"
library=$abs_top_builddir/src/.libs/libcuwarden.so
sim=$abs_top_builddir/tests/sim/lib
include=$(sed -n 's/^CUDA_INCLUDE = //p' "$abs_top_builddir/Makefile")
export PYTHONDONTWRITEBYTECODE=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1
for file in "$library" "$sim/libcudart.so.13"; do
  [ -r "$file" ] || { echo "record.sh: no $file: build the tree, and set abs_top_builddir" >&2; exit 1; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

declare -A commands=(
  [conv_train]="$PYTHON $here/torch_conv.py train"
  [conv_infer]="$PYTHON $here/torch_conv.py infer"
  [text_train]="$PYTHON $here/torch_text.py train"
  [text_generate]="$PYTHON $here/torch_text.py generate"
  [numba_solver]="$PYTHON $here/numba_solver.py"
  [numba_images]="$PYTHON $here/numba_images.py"
  [cupy_like]="$PYTHON $here/cupy_like.py"
  [server]="$scratch/server"
  [particles]="$scratch/particles"
  [videos]="sh $here/videos.sh"
)

# build NAME: what must be compiled for it.
build()
{
  case $1 in
    server) ${CC:-cc} -O2 -o "$scratch/server" "$here/server.c" -isystem "$include" "$sim/libcudart.so.13" -lm -pthread ;;
    particles) nvcc -O2 -cudart none -o "$scratch/particles" "$here/particles.cu" -L"$sim" -lcudart ;;
  esac
}

mapfile -t names < <(printf '%s\n' "${!commands[@]}" | sort)
[ $# -gt 0 ] || set -- "${names[@]}"
for name in "$@"; do
  [ -n "${commands[$name]:-}" ] || { echo "record.sh: there is no $name" >&2; exit 1; }
  build "$name"
  # shellcheck disable=SC2086 # a command and its words
  env LD_LIBRARY_PATH="$sim" LD_PRELOAD="$library:$sim/libcudart.so.13" CUSIM_DEVICES=1 CUSIM_MEMORY=80G \
    CUWARDEN_MODE=track CUWARDEN_STACKS=off CUWARDEN_LIVE=off CUWARDEN_GROWTH=off \
    CUWARDEN_REPORT="$scratch/report" CUWARDEN_TRACE="$scratch/$name.csv" ${commands[$name]} "$SECONDS_EACH"
  "${PYTHON}" "$here/pack.py" "$scratch/$name.csv" "$OUT/$name.csv.gz"
  echo "$name: $(zcat "$OUT/$name.csv.gz" | wc -l) lines, $(stat -c %s "$OUT/$name.csv.gz") bytes"
done
