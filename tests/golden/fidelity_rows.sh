#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: fidelity_rows.sh FIDELITY SOURCE_ROOT
# docs/fidelity.md, its picture and src/hw/measured.def are what the bench makes of the shipped rows, all of which it can express.
# AP_UPDATE=1 makes them anew.
set -eu
fidelity=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$fidelity" "$source/data/fidelity.csv" --csv rows.csv --markdown fidelity.md --svg fidelity.svg --errors measured.def >out
if grep 'cannot be expressed' out; then
  echo 'a shipped row is not predicted'
  exit 1
fi
if [ -n "${AP_UPDATE:-}" ]; then
  cp fidelity.md fidelity.svg "$source/docs/"
  cp measured.def "$source/src/hw/" # built into the program: make it anew, and what says errors
fi
cmp fidelity.md "$source/docs/fidelity.md"
cmp fidelity.svg "$source/docs/fidelity.svg"
cmp measured.def "$source/src/hw/measured.def"
