# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Environments of packages from PyPI, after e2e/init.sh: each line of frameworks/packages is installed once, below the build
# directory. FRAMEWORKS names those that are wanted, or all that the test has rows for.

environments=$abs_top_builddir/tests/frameworks/lib

# has_environment NAME: it is installed as the table has it; else $why.
has_environment()
{
  local packages stamp=$environments/$1/installed
  packages=$(sed -n "s/^$1 //p" "$srcdir/frameworks/packages")
  [ -n "$packages" ] || framework_failure_ "frameworks/packages has no $1"
  [ "$(cat "$stamp" 2>/dev/null)" != "$packages" ] || return 0
  rm -rf "${environments:?}/$1"
  # shellcheck disable=SC2086 # a list of packages
  { "$PYTHON" -m venv "$environments/$1" && "$environments/$1/bin/python" -m pip install -q --disable-pip-version-check --prefer-binary \
    --timeout 10 --retries 1 $packages; } >install.log 2>&1 </dev/null || { why=$(grep . install.log | tail -n 1); return 1; }
  # NVIDIA's runtime does not start over the simulated driver.
  find "$environments/$1" -name libcudart.so.13 -exec ln -sf "$sim_dir/libcudart.so.13" {} \;
  echo "$packages" >"$stamp"
}

# find_environments ROWS: those of $FRAMEWORKS that can be had and that rows begin with, in ${ready[@]}.
find_environments()
{
  local name names
  names=$(awk 'NF { print $1 }' <<<"$1" | sort -u)
  ready=()
  for name in $names; do
    [[ " $FRAMEWORKS " = *" $name "* || $FRAMEWORKS = all ]] || continue
    if has_environment "$name"; then ready+=("$name"); else left_out "$name" "$why"; fi
  done
  [ "${#ready[@]}" != 0 ] || skip_ "none of '$FRAMEWORKS' can be had here: ${why:-see tests/frameworks/packages}"
  # Caches of the frameworks stay here, unlike that of pip, and the programs leave no bytecode beside them.
  export HOME=$scratch XDG_CACHE_HOME=$scratch/cache PYTHONDONTWRITEBYTECODE=1
}
