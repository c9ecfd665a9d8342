# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Part of compose_ of e2e/init.sh: $EMULATOR, a command line of qemu-user, runs programs of another processor. Its environment is
# theirs, but for what the loader of this processor would follow; qemu's own option splits values at commas.
read -r -a emulator_ <<<"$EMULATOR"
environment_=()
for setting_ in ${settings[@]+"${settings[@]}"}; do
  case $setting_ in
    LD_*) emulator_+=(-E "$setting_") ;;
    *) environment_+=("$setting_") ;;
  esac
done
command_=(env ${environment_[@]+"${environment_[@]}"} "${emulator_[@]}" "${command_[@]:${#settings[@]}+1}")
