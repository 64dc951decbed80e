#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: strategies.sh PROGRAM SOURCE_ROOT
# The plans of the bundled models are those in strategies/. AP_UPDATE=1 rewrites these: read the
# difference as the review of a plan.
set -eu
program=$1
source=$2
kept=$source/strategies
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sh "$source/tools/strategies.sh" "$program" "$work"
if [ -n "${AP_UPDATE:-}" ]; then
  rm -f "$kept"/*.txt
  cp "$work"/*.txt "$kept"
fi
diff -u -x README.md "$kept" "$work"
