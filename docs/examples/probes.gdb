# SPDX-License-Identifier: MIT
# Each allocation of 1 MiB and more on a device, with the stack that made it, without any kernel support:
#   gdb -batch -ex 'set environment LD_PRELOAD /usr/local/lib/cuwarden/libcuwarden.so' -x probes.gdb --args prog
set startup-with-shell off
set breakpoint pending on
set pagination off
break -probe-stap cuwarden:alloc if $_probe_arg1 >= 1048576 && $_probe_arg3 != 255
commands
silent
printf "%lu bytes at 0x%lx on device %u\n", $_probe_arg1, $_probe_arg0, $_probe_arg3
backtrace 16
continue
end
run
