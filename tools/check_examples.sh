#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_examples.sh PLANNER MAN: the files shown in the manual pages are ones that the program takes.
set -eu

planner=$1
man=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for page in graph problem rank-table strategy; do
  # The last literal block of a page is a whole file.
  awk '/^\.Bd -literal/ { on = 1; text = ""; next } /^\.Ed/ { on = 0 } on { text = text $0 "\n" }
    END { printf "%s", text }' "$man/autopar-$page.5" >"$dir/$page.json"
  "$planner" check --strict "$dir/$page.json"
done
"$planner" search "$dir/graph.json" "$dir/rank-table.json" --chip a100-80 -q
"$planner" solve "$dir/problem.json" | grep -F '"objective":2.5,'
"$planner" solve "$dir/problem.json" | grep -F '"choice":[1,0]'
