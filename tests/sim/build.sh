#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the simulated GPU: build.sh CUDA_INCLUDE OUTDIR
#
# Leaves libcuda.so.1, libcuda.so, old/libcuda.so.1 (a driver of CUDA 11.4), new/libcuda.so.1 (one of
# 13.5), libnvidia-ml.so.1, cupti/libcupti.so.13, libcudart.so.13, libcudart.so and
# libcudart_static.a in OUTDIR. CC, CFLAGS, LDFLAGS and AR are honoured. An object is rebuilt when its
# source, any header or this script is newer.
set -eu

die() { echo "build.sh: $*" >&2; exit 1; }

[ $# -eq 2 ] || die "usage: build.sh CUDA_INCLUDE OUTDIR"
include=$1 out=$2
src=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}" "${AR:=ar}" "${CFLAGS:=-O2 -g}" "${LDFLAGS:=}"
[ -f "$include/cuda.h" ] || die "no cuda.h in $include"
mkdir -p "$out/obj" "$out/obj-rt" "$out/obj-nvml" "$out/obj-cupti" "$out/cupti" ||
    die "cannot write to $out"

flags="-std=gnu11 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wno-deprecated-declarations -D_GNU_SOURCE"
with="$CC $CFLAGS $flags $include"
[ "$(cat "$out/flags" 2>/dev/null)" = "$with" ] || rm -f "$out"/obj*/*.o
echo "$with" >"$out/flags"

# is_stale SOURCE_NAME OBJECT; rt_work.c is there because another source includes it
is_stale() {
    [ -n "$(find "$src" -maxdepth 1 -newer "$2" \( -name "$1" -o -name '*.h' -o -name '*.def' \
        -o -name build.sh -o -name rt_work.c \))" ]
}

# compile SOURCE OBJECT EXTRA...
compile() {
    source=$1 object=$2
    shift 2
    [ ! -f "$object" ] || is_stale "$(basename "$source")" "$object" || return 0
    # shellcheck disable=SC2086
    $CC $flags $CFLAGS -isystem "$include" "$@" -c "$source" -o "$object" ||
        die "cannot compile $source"
}

# Objects compile in the background, two at a time.
compile_all() {
    dir=$1
    shift
    pattern=$1
    shift
    previous=
    for source in "$src"/$pattern; do
        compile "$source" "$out/$dir/$(basename "$source" .c).o" "$@" &
        [ -z "$previous" ] || wait "$previous" || exit 1
        previous=$!
    done
    wait "$previous" || exit 1
}

# link OUTPUT SONAME OBJECTS...
link() {
    output=$1 soname=$2
    shift 2
    # shellcheck disable=SC2086
    $CC $CFLAGS $LDFLAGS -shared -Wl,-soname,"$soname" -Wl,-z,nodelete -Wl,-z,noexecstack \
        -Wl,-Bsymbolic -o "$output.tmp" "$@" -ldl -lpthread || die "cannot link $output"
    mv "$output.tmp" "$output"
}

compile_all obj 'sim_*.c'
link "$out/libcuda.so.1" libcuda.so.1 "$out"/obj/*.o
ln -sf libcuda.so.1 "$out/libcuda.so"

compile_all obj-nvml 'nvml*.c'
link "$out/libnvidia-ml.so.1" libnvidia-ml.so.1 "$out"/obj-nvml/*.o "$out"/obj/sim_world.o \
    "$out"/obj/sim_share.o

# In a directory of its own: programs find it only where a test says so.
compile_all obj-cupti 'cupti*.c' -fvisibility=default
link "$out/cupti/libcupti.so.13" libcupti.so.13 "$out"/obj-cupti/*.o

# The same as a driver of another version.
variant() { # NAME VERSION
    mkdir -p "$out/$1" "$out/obj-$1"
    for object in "$out"/obj/*.o; do
        name=$(basename "$object" .o)
        case $name in
        sim_table | sim_config | sim_resolve)
            compile "$src/$name.c" "$out/obj-$1/$name.o" -DCUSIM_VERSION="$2"
            ;;
        *)
            ln -sf "../obj/$name.o" "$out/obj-$1/$name.o"
            ;;
        esac
    done
    link "$out/$1/libcuda.so.1" libcuda.so.1 "$out/obj-$1"/*.o
}
variant old 11040
variant new 13050

if ls "$src"/rt_*.c >/dev/null 2>&1; then
    compile_all obj-rt 'rt_*.c' -fvisibility=default
    link "$out/libcudart.so.13" libcudart.so.13 "$out"/obj-rt/*.o \
        -Wl,--version-script,"$src/libcudart.map"
    ln -sf libcudart.so.13 "$out/libcudart.so"
    rm -f "$out/libcudart_static.a"
    $AR rcs "$out/libcudart_static.a" "$out"/obj-rt/*.o || die "cannot archive"
fi
