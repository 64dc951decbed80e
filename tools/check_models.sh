#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_models.sh PROGRAM MODELS: are the files in MODELS what tools/models.sh makes today?
set -eu

program=$1
models=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

sh "$(dirname "$0")/models.sh" "$program" "$dir"
status=0
for made in "$dir"/*.json; do
  if ! cmp "$made" "$models/$(basename "$made")"; then
    status=1
  fi
done
for kept in "$models"/*.json; do
  if [ ! -e "$dir/$(basename "$kept")" ]; then
    echo "$kept: no recipe in tools/models.sh" >&2
    status=1
  fi
done
exit $status
