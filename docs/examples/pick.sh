#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits until a GPU has room, and starts a program on it:
#
#   pick.sh 14G ./train --epochs=3
#
# Only a GPU without room is waited for (exit status 3 of pick); what is wrong otherwise ends it.
set -u
need=$1
shift
while :; do
    gpu=$(cuwarden pick --need="$need" 2>&1) && break
    status=$?
    if [ "$status" -ne 3 ]; then
        echo "$gpu" >&2
        exit "$status"
    fi
    sleep "${PICK_INTERVAL:-30}"
done
# A warning may stand before the UUID.
CUDA_VISIBLE_DEVICES=$(printf '%s\n' "$gpu" | tail -n 1) exec cuwarden run -- "$@"
