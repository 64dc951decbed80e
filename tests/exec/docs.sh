#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: docs.sh PROGRAM SOURCE_ROOT
# docs/operators.md is what PROGRAM, operators_doc, prints. AP_UPDATE=1 rewrites it.
set -eu
program=$1
kept=$2/docs/operators.md
work=$(mktemp)
trap 'rm -f "$work"' EXIT

"$program" >"$work"
if [ -n "${AP_UPDATE:-}" ]; then
  cp "$work" "$kept"
fi
diff -u "$kept" "$work"
