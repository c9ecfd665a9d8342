# shellcheck shell=bash
# shellcheck disable=SC2034 # program, version and no are for those who source this
# SPDX-License-Identifier: MIT
# Builds the programs of the benchmarks that take and free memory. To be sourced:
#
#   build_contestants WORKDIR null|real
#
# sets program[NAME] to the path of a program that takes the words of workload.h, version[NAME] to what is in
# it, and no[NAME] to the reason why one is left out, one line. The names: driver (pairs.c), cub, torch, rmm. Fails, with the compiler's
# words on stderr, only when there is no driver program.
#
# null: they run over a driver, or a runtime, that costs nothing and lies in WORKDIR, whatever
# LD_LIBRARY_PATH says. real: over the libcuda.so.1 and libcudart.so that are found when they are started.
#
# CC, CXX      compilers (cc, g++)
# CUDA_INCLUDE the CUDA headers; without them there is the driver program alone
# PYTHON       knows where PyTorch and RMM are installed (python3); neither is loaded into it
# CUDART       real: the file libcudart.so.N to run over, in place of the one that a contestant brings or
#              that lies beside the headers

contestants_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
declare -gA program version no

# first_error FILE: what a compiler or linker complained of first.
first_error()
{
  grep -m 1 -E '(error|undefined|cannot find)' "$1" || head -n 1 "$1"
}

# contestant_cc WORDS...
# shellcheck disable=SC2086 # CC may hold flags
contestant_cc()
{
  ${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -pthread "$@"
}

# build_cxx NAME WORDS...: program[NAME], or no[NAME].
build_cxx()
{
  local name=$1 where=$contestants_work/$1_pairs source=$contestants_dir/$1_pairs.cpp
  shift
  # shellcheck disable=SC2086 # CXX may hold flags
  if ${CXX:-g++} -O2 -DNDEBUG -Wall -Wextra -pthread "${contestants_define[@]}" -o "$where" "$source" "$@" \
    >"$where.log" 2>&1; then
    program[$name]=$where
  else
    no[$name]="$(basename "$source") does not compile: $(first_error "$where.log")"
  fi
}

# package_dir MODULE: where Python would find it, without loading it; fails when it would not.
package_dir()
{
  "${PYTHON:-python3}" - "$1" 2>/dev/null <<'END'
import importlib.util
import sys
found = importlib.util.find_spec(sys.argv[1])
print(found.submodule_search_locations[0])
END
}

# needs_cxx NAME: without a C++ compiler and the headers there is none.
needs_cxx()
{
  local cxx=${CXX:-g++}
  if ! command -v "${cxx%% *}" >/dev/null; then
    no[$1]="no ${cxx%% *}"
  elif [ ! -r "${CUDA_INCLUDE:-}/cuda_runtime_api.h" ]; then
    no[$1]="no cuda_runtime_api.h in ${CUDA_INCLUDE:-the CUDA headers}"
  else
    return 0
  fi
  return 1
}

# cudart_number FILE: the N of the libcudart.so.N that it needs, or none.
cudart_number()
{
  LC_ALL=C readelf -d "$1" | sed -n 's/.*(NEEDED).*\[libcudart\.so\.\([0-9]*\)\].*/\1/p'
}

header_number()
{
  sed -n 's/^#define CUDART_VERSION *\([0-9]*\)[0-9]\{3\}$/\1/p' "$CUDA_INCLUDE/cuda_runtime_api.h"
}

# find_cudart NUMBER [DIR...]: the first libcudart.so.NUMBER, or of any number, in the directories and beside
# the headers.
find_cudart()
{
  local number=$1 dir file
  shift
  if [ -n "${CUDART:-}" ]; then
    [ -r "$CUDART" ] && [[ ${CUDART##*/} = libcudart.so."$number"* ]] && echo "$CUDART"
    return
  fi
  for dir in "$@" "$CUDA_INCLUDE/../lib64" "$CUDA_INCLUDE/../lib" "$CUDA_INCLUDE/../targets/$(uname -m)-linux/lib"; do
    # shellcheck disable=SC2231 # a pattern
    for file in "$dir"/libcudart.so.${number:-[0-9]}*; do
      [ ! -r "$file" ] || { echo "$file"; return; }
    done
  done
  return 1
}

# build_null_cudart: the runtime that costs nothing as the libcudart.so.N of the headers. Such a library
# must be there before the one that a contestant brings would be loaded, so programs are linked with it
# first.
build_null_cudart()
{
  local number
  number=$(header_number)
  null_cudart=$contestants_work/libcudart.so.$number
  printf 'libcudart.so.%s {\n  global: cuda*; null_*;\n  local: *;\n};\n' "$number" >"$contestants_work/libcudart.map"
  contestant_cc -shared -fPIC -isystem "$CUDA_INCLUDE" -Wl,-soname,"libcudart.so.$number" \
    -Wl,--version-script,"$contestants_work/libcudart.map" -o "$null_cudart" "$contestants_dir/null_runtime.c" \
    2>"$contestants_work/libcudart.log"
}

# runtime_words NAME NUMBER [DIR...]: sets $runtime, how to link with the runtime that NAME stands on, of
# that number, or any; or no[NAME]. DIR is where it brings one of its own.
runtime_words()
{
  local name=$1 number=$2 file first=''
  shift 2
  if [ "$contestants_over" = null ]; then
    if ! build_null_cudart; then
      no[$name]="null_runtime.c does not compile: $(first_error "$contestants_work/libcudart.log")"
      return 1
    fi
    file=$null_cudart
    first=--disable-new-dtags,
  elif file=$(find_cudart "$number" "$@"); then
    file=$(cd "$(dirname "$file")" && pwd)/${file##*/}
  else
    no[$name]="no libcudart.so.${number:-N} beside $CUDA_INCLUDE (set CUDART to its file)"
    return 1
  fi
  runtime=("-Wl,--no-as-needed" "$file" "-Wl,$first-rpath,$(dirname "$file")")
}

# CUB comes with the toolkit; since CUDA 13 in a directory of its own.
build_cub()
{
  local header=cub/util_allocator.cuh
  needs_cxx cub || return 0
  local -a where=(-std=c++17 -isystem "$CUDA_INCLUDE" -isystem "$CUDA_INCLUDE/cccl") runtime
  if [ ! -r "$CUDA_INCLUDE/cccl/$header" ] && [ ! -r "$CUDA_INCLUDE/$header" ]; then
    no[cub]="no $header under $CUDA_INCLUDE"
    return
  fi
  version[cub]=$(awk '$1 == "#define" && $2 == "CUB_VERSION" { print int($3 / 100000) "." int($3 / 100) % 1000 "." $3 % 100 }' \
    "$CUDA_INCLUDE"/{cccl/,}cub/version.cuh 2>/dev/null)
  if [ "$contestants_over" = real ]; then
    ! runtime_words cub '' || build_cxx cub "${where[@]}" "${runtime[@]}"
  elif contestant_cc -isystem "$CUDA_INCLUDE" -c -o "$contestants_work/null_runtime.o" \
    "$contestants_dir/null_runtime.c" 2>"$contestants_work/null_runtime.log"; then
    build_cxx cub "${where[@]}" "$contestants_work/null_runtime.o"
  else
    no[cub]="null_runtime.c does not compile: $(first_error "$contestants_work/null_runtime.log")"
  fi
}

build_torch()
{
  local dir wanted
  local -a runtime
  needs_cxx torch || return 0
  if ! dir=$(package_dir torch); then
    no[torch]="no PyTorch for ${PYTHON:-python3}"
    return
  elif [ ! -r "$dir/lib/libc10_cuda.so" ]; then
    no[torch]="the PyTorch in $dir is without CUDA"
    return
  fi
  version[torch]=$(sed -n -E "s/^__version__ *= *'([^']*)'.*/\\1/p" "$dir/version.py" 2>/dev/null)
  wanted=$(cudart_number "$dir/lib/libc10_cuda.so")
  if [ "$contestants_over" = null ] && [ "$wanted" != "$(header_number)" ]; then
    no[torch]="the PyTorch in $dir is for CUDA ${wanted:-?}, the headers are of $(header_number)"
    return
  fi
  runtime_words torch "$wanted" "$dir"/../nvidia/cu*/lib "$dir"/../nvidia/cuda_runtime/lib "$dir/lib" || return 0
  build_cxx torch -std=c++20 -isystem "$dir/include" -isystem "$CUDA_INCLUDE" "${runtime[@]}" \
    -L"$dir/lib" -lc10_cuda -lc10 -Wl,-rpath,"$dir/lib" -Wl,--allow-shlib-undefined
}

# RMM's own copy of CCCL comes before the toolkit's.
build_rmm()
{
  local dir logger
  local -a runtime
  needs_cxx rmm || return 0
  if ! dir=$(package_dir librmm) || ! logger=$(package_dir rapids_logger); then
    no[rmm]="no RMM for ${PYTHON:-python3}"
    return
  elif [ ! -r "$dir/include/rmm/mr/pool_memory_resource.hpp" ]; then
    no[rmm]="the RMM in $dir is older than 26.10, or came without its headers"
    return
  fi
  version[rmm]=$(cat "$dir/VERSION" 2>/dev/null)
  runtime_words rmm '' "$dir"/../nvidia/cu*/lib "$dir"/../nvidia/cuda_runtime/lib || return 0
  build_cxx rmm -std=c++20 -isystem "$dir/include/rapids" -isystem "$dir/include" -isystem "$logger/include" \
    -isystem "$CUDA_INCLUDE" "${runtime[@]}" "$dir/lib64/librmm.so" "$logger/lib64/librapids_logger.so" \
    -Wl,-rpath,"$dir/lib64:$logger/lib64" -Wl,--allow-shlib-undefined
}

# build_null_driver DIR: the driver that costs nothing; a program that is linked to it finds whichever is there when it starts.
build_null_driver()
{
  mkdir -p "$1" &&
    contestant_cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$1/libcuda.so.1" "$contestants_dir/null_driver.c"
}

build_contestants()
{
  local stub
  local -a place=()
  contestants_over=$2
  program=() version=() no=() contestants_define=()
  mkdir -p "$1" || return
  contestants_work=$(cd "$1" && pwd) || return
  stub=$contestants_work
  if [ "$contestants_over" = null ]; then
    contestants_define=(-DNULL_DRIVER)
    place=("-Wl,--disable-new-dtags,-rpath,$contestants_work")
  else # for the linker alone: no program would look for a library there
    stub=$contestants_work/stub
  fi
  build_null_driver "$stub" &&
    contestant_cc "${contestants_define[@]}" -o "$contestants_work/pairs" "$contestants_dir/pairs.c" \
      "$stub/libcuda.so.1" "${place[@]}" -lm || return
  program[driver]=$contestants_work/pairs
  build_cub
  build_torch
  build_rmm
}
