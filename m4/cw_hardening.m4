dnl SPDX-License-Identifier: MIT
dnl CW_HARDENING
dnl
dnl --disable-hardening; else, of these, what compiler and linker take:
dnl
dnl   HARDENING_CPPFLAGS  of the command: _FORTIFY_SOURCE, where CFLAGS optimise (glibc warns otherwise). Not of the
dnl                       library: its functions are glibc's own, and a program on musl could not start with it
dnl   HARDENING_CFLAGS    position-independent code, marks for indirect branches, a stack protector for
dnl                       functions with buffers: for all with an array, as in the command, a pair of
dnl                       calls would take 7 % more instructions
dnl   HARDENING_CLI_CFLAGS  what the command has beside that
dnl   HARDENING_LDFLAGS   of the command: position-independent, bound at start, tables read-only
dnl
dnl Sanitizers have checks of their own, which _FORTIFY_SOURCE hides from them.

dnl cw_try_flag(VARIABLE, FLAG, PROGRAM): adds the flag if compiling and linking with it says nothing.
AC_DEFUN([CW_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $2])
  cw_save_CFLAGS=$CFLAGS cw_save_werror=$ac_c_werror_flag
  CFLAGS="$CFLAGS $2" ac_c_werror_flag=yes
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <string.h>]], [[char text[8]; memset(text, 0, sizeof(text)); return text[0];]])],
    [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
  CFLAGS=$cw_save_CFLAGS ac_c_werror_flag=$cw_save_werror
])

AC_DEFUN([CW_HARDENING], [
  AC_ARG_ENABLE([hardening],
    [AS_HELP_STRING([--disable-hardening], [compile without stack protector, _FORTIFY_SOURCE and the like])])
  HARDENING_CPPFLAGS= HARDENING_CFLAGS= HARDENING_CLI_CFLAGS= HARDENING_LDFLAGS=
  AS_IF([test "$enable_hardening" != no], [
    CW_TRY_FLAG([HARDENING_CFLAGS], [-fPIE])
    CW_TRY_FLAG([HARDENING_CFLAGS], [-fstack-protector])
    CW_TRY_FLAG([HARDENING_CLI_CFLAGS], [-fstack-protector-strong])
    CW_TRY_FLAG([HARDENING_CFLAGS], [-fcf-protection])
    CW_TRY_FLAG([HARDENING_CFLAGS], [-mbranch-protection=bti])
    CW_TRY_FLAG([HARDENING_LDFLAGS], [-pie])
    CW_TRY_FLAG([HARDENING_LDFLAGS], [-Wl,-z,relro])
    CW_TRY_FLAG([HARDENING_LDFLAGS], [-Wl,-z,now])
    AS_CASE([" $CPPFLAGS $CFLAGS "],
      [*-fsanitize*|*_FORTIFY_SOURCE*], [],
      [CW_TRY_FLAG([HARDENING_CPPFLAGS], [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3])])
  ])
  AC_SUBST([HARDENING_CPPFLAGS])
  AC_SUBST([HARDENING_CFLAGS])
  AC_SUBST([HARDENING_CLI_CFLAGS])
  AC_SUBST([HARDENING_LDFLAGS])
])
