# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The Pythons at hand, after e2e/init.sh.

# find_pythons MINOR...: a line in the file pythons for each CPython 3.MINOR at hand, and /usr/bin's,
# and a word of those that are not. Every interpreter once, by what it says it is itself: the names
# on PATH may be scripts of pyenv. Debian's newest ones are fetched. Skips the test where there is
# none.
find_pythons()
{
  local minor program any why
  : >pythons
  add_python_ /usr/bin/python3
  for minor; do
    any='' why=''
    for program in "$(command -v "python3.$minor")" \
        "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor."*/bin/"python3.$minor"; do
      ! add_python_ "$program" || any=1
    done
    [ -n "$any" ] || [ "$minor" -lt 14 ] || ! fetch_python_ "python-3.$minor" || any=1
    [ -n "$any" ] || left_out "CPython 3.$minor" "${why:-it is not installed}"
  done
  [ -s pythons ] || skip_ 'no python3 is installed'
}

add_python_()
{
  local program
  [ -x "$1" ] || return 1
  program=$("$1" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null) || return 1
  grep -qxF -- "$program" pythons || echo "$program" >>pythons
}

# It comes with the C library that it needs.
fetch_python_()
{
  local at name=${1/-/} libraries
  fetched "$1" || return 1
  libraries=$at/usr/lib/x86_64-linux-gnu
  cat >"$name" <<END
#!/bin/sh
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" \\
  --argv0 "$at/usr/bin/$name" "$at/usr/bin/$name" "\$@"
END
  chmod +x "$name"
  "./$name" -c 'import ctypes' 2>/dev/null && echo "$PWD/$name" >>pythons
}

# libpython_of PYTHON: prints the path of the libpython that it comes with, or nothing.
libpython_of()
{
  "$1" -c 'import os, sysconfig
value = sysconfig.get_config_var
for name in (value("INSTSONAME"), "libpython%s.so.1.0" % value("VERSION")):
    for folder in (value("LIBDIR"), os.path.join(value("LIBDIR"), value("MULTIARCH") or "")):
        path = os.path.join(folder, name or "")
        if ".so" in path and os.path.isfile(path):
            print(path)
            raise SystemExit'
}
