#!/bin/sh
# SPDX-License-Identifier: MIT
# Stands in for nvidia-cuda-mps-control over the simulated driver: a server that has one client and never ends it; the simulated
# driver has it by CUSIM_FAIL that it was ended. What it was told is in $MPS_STANDIN_LOG.
set -u
[ "${MPS_STANDIN_DEFECT:-}" != dead ] || { echo 'Cannot create the socket' >&2; exit 1; }
if [ "${1:-}" = -f ]; then
  touch "$CUDA_MPS_PIPE_DIRECTORY/up"
  until [ -e "$CUDA_MPS_PIPE_DIRECTORY/down" ] || [ ! -d "$CUDA_MPS_PIPE_DIRECTORY" ]; do
    sleep 0.05
  done
  exit 0
fi
[ -e "$CUDA_MPS_PIPE_DIRECTORY/up" ] || exit 1
read -r command
echo "$command" >>"$MPS_STANDIN_LOG"
case $command in
  get_default_active_thread_percentage) echo 100.0 ;;
  get_server_list) [ "${MPS_STANDIN_DEFECT:-}" = idle ] || echo 4242 ;;
  'get_client_list 4242') echo 4243 ;;
  'terminate_client 4242 4243') ;;
  quit) touch "$CUDA_MPS_PIPE_DIRECTORY/down" ;;
  *) echo "mps_standin.sh: there is no command '$command'" >&2; exit 1 ;;
esac
