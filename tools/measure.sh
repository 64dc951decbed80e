#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# measure.sh: how the source is laid out, in figures: files, functions, own headers, circles of calls.
exec python3 "$(dirname "$0")/measure.py" "$(dirname "$0")/.." "$@"
