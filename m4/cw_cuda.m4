# SPDX-License-Identifier: MIT
# CW_PATH_CUDA(MINIMUM)
# Finds the CUDA headers and what else of a toolkit is there. Only the headers are required: nothing
# of CUDA is linked. MINIMUM is a CUDA_VERSION, for example 11080.
#
# Sets and substitutes
#   CUDA_INCLUDE   directory of cuda.h
#   CUDA_CPPFLAGS  how to search it, for src/hook and the tests alone
#   SIM_CUDA_INCLUDE  the same for tests/sim: CUDA_INCLUDE, or headers of CUDA 13 if that is older
#   CUDA_LIBDIR    directory of libcudart, or empty
#   NVCC           the compiler, or empty
# and for the summary cw_cuda_version.
AC_DEFUN([CW_PATH_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR],
      [CUDA toolkit, or a directory of its headers @<:@default: look for one@:>@])],
    [], [with_cuda=])
  AC_REQUIRE([AC_PROG_SED])

  AC_MSG_CHECKING([for the CUDA headers])
  CUDA_INCLUDE=
  cw_cuda_root=
  cw_cuda_headers=`cd "$srcdir" && pwd`/.cuda
  AS_CASE([$with_cuda],
    [no], [cw_cuda_tried=],
    [''|yes], [cw_cuda_tried="$CUDA_HOME /usr/local/cuda `ls -d /usr/local/cuda-* 2>/dev/null | sort -r -V | tr '\n' ' '` /opt/cuda /usr $cw_cuda_headers"],
    [cw_cuda_tried=$with_cuda])
  cw_cuda_version_of()
  {
    cw_cuda_number=`$SED -n ['s/^#define[ 	]*CUDA_VERSION[ 	]*\([0-9][0-9]*\).*/\1/p'] "$[]1/cuda.h" | head -n 1`
    echo "${cw_cuda_number:-0}"
  }
  cw_cuda_old=
  for cw_dir in $cw_cuda_tried; do
    for cw_sub in include "targets/$host_cpu-linux/include" .; do
      AS_IF([test -r "$cw_dir/$cw_sub/cuda.h" && test -r "$cw_dir/$cw_sub/cuda_runtime_api.h"], [
        # One that is too old is taken only where no other is found, to be told so.
        AS_IF([test "`cw_cuda_version_of "$cw_dir/$cw_sub"`" -lt "$1"],
          [cw_cuda_old=${cw_cuda_old:-"$cw_dir/$cw_sub"}; continue])
        cw_cuda_root=`cd "$cw_dir" && pwd`
        CUDA_INCLUDE=`cd "$cw_dir/$cw_sub" && pwd`
        break 2
      ])
    done
  done
  AS_IF([test -z "$CUDA_INCLUDE" && test -n "$cw_cuda_old"], [
    AC_MSG_RESULT([$cw_cuda_old])
    AC_MSG_ERROR([$cw_cuda_old/cuda.h is older than CUDA_VERSION $1; name a newer toolkit with --with-cuda=DIR])
  ])
  AS_IF([test -z "$CUDA_INCLUDE"], [
    AC_MSG_RESULT([none])
    AC_MSG_ERROR([no cuda.h and cuda_runtime_api.h in: ${cw_cuda_tried:-(--without-cuda)}
  The way out is one of
    - ./configure --with-cuda=DIR, where DIR/include/cuda.h exists
    - installing the CUDA toolkit (Debian: nvidia-cuda-toolkit)
    - scripts/setup, which fetches the headers alone into .cuda/])
  ])
  AC_MSG_RESULT([$CUDA_INCLUDE])

  # As a system directory: warnings in NVIDIA's headers are not ours. The compiler searches
  # /usr/include by itself, and in its own order.
  AS_IF([test "$CUDA_INCLUDE" = /usr/include],
    [CUDA_CPPFLAGS=],
    [CUDA_CPPFLAGS="-isystem $CUDA_INCLUDE"])

  AC_MSG_CHECKING([which CUDA version these are])
  cw_cuda_number=`cw_cuda_version_of "$CUDA_INCLUDE"`
  cw_cuda_version=`expr $cw_cuda_number / 1000`.`expr $cw_cuda_number % 1000 / 10`
  AC_MSG_RESULT([$cw_cuda_version])

  AC_MSG_CHECKING([whether the CUDA headers compile])
  cw_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cuda.h>
#include <cuda_runtime_api.h>]], [[return CUDA_SUCCESS;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([the headers in $CUDA_INCLUDE do not compile (config.log says why).
  A set put together from wheels also needs crt/host_defines.h; scripts/setup makes a whole one in .cuda/])])
  CPPFLAGS=$cw_save_CPPFLAGS

  # The simulated GPU is written against CUDA 13; programs of any version run on it.
  SIM_CUDA_INCLUDE=$CUDA_INCLUDE
  AS_IF([test "$cw_cuda_number" -lt 13000], [
    for cw_dir in "$cw_cuda_headers"/hdr-13*; do
      AS_IF([test -r "$cw_dir/include/cuda.h"], [SIM_CUDA_INCLUDE=$cw_dir/include])
    done
    AS_IF([test "$SIM_CUDA_INCLUDE" = "$CUDA_INCLUDE"],
      [AC_MSG_WARN([the simulated GPU of make check needs headers of CUDA 13; scripts/setup --headers fetches them])])
  ])

  CUDA_LIBDIR=
  for cw_dir in "$cw_cuda_root/lib64" "$cw_cuda_root/targets/$host_cpu-linux/lib" "$cw_cuda_root/lib" \
      "/usr/lib/$host_cpu-linux-gnu"; do
    AS_IF([ls "$cw_dir"/libcudart.so.* >/dev/null 2>&1], [CUDA_LIBDIR=$cw_dir; break])
  done
  AC_PATH_PROG([NVCC], [nvcc], [], [$cw_cuda_root/bin$PATH_SEPARATOR$PATH])
  # One that does not run (a wrapper whose toolkit has gone) is none.
  AS_IF([test -n "$NVCC" && ! "$NVCC" --version >/dev/null 2>&1], [NVCC=])

  AC_SUBST([CUDA_INCLUDE])
  AC_SUBST([SIM_CUDA_INCLUDE])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBDIR])
])
