#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: shell.sh SOURCE_ROOT
# Shell scripts are clean for shellcheck.
set -eu
cd "$1"
# SC2016: awk and sed programs hold $ inside single quotes
find bench tools tests .ci -name '*.sh' -o -path '.ci/run' | LC_ALL=C sort |
  xargs shellcheck -x -e SC2016
