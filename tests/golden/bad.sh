#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: bad.sh PROGRAM SOURCE_ROOT
# Whole runs over tests/bad/KIND/CHECK[-N][.VARIANT].json: the check that the file is named after must
# speak, naming the file and the place. A run that ends in an error prints nothing on standard output
# and leaves no file; its exit code is that of a malformed file, a wrong file or a limit. Where the
# check only warns, --strict makes the same of it. Faults of --batch and --micro-batches (batch-scale,
# batch-parts) are left to the unit tests.
set -u
unset RANK_TABLE_FILE
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
ran=0

fail() { # WHAT
  echo "FAILED: $kind/$name: $1"
  sed 's/^/  /' "$work/err"
  failed=$((failed + 1))
}

run() { # [OPTION]: searches with the bad file in its place
  rm -rf "$work/out"
  mkdir "$work/out"
  [ "$check" != operator-assumed ] || set -- --unknown-operators batch-parallel "$@"
  [ "$check" != batch-mixed ] || set -- --micro-batches 2 "$@"
  if [ "$kind" = graph ]; then
    set -- "$bad" --device-num 8 --chip a100-80 "$@"
  else
    grep -q '"chip_info"' "$bad" || set -- --chip ascend910a "$@"
    set -- "$source/models/multiple_mix.json" "$bad" "$@"
  fi
  "$program" search "$@" -o "$work/out/net.ckpt" --plan-out "$work/out/plan.json" --quiet=false \
    --max-errors 1000 > "$work/stdout" 2> "$work/err" < /dev/null
  code=$?
}

nothing_written() {
  [ -z "$(ls -A "$work/out")" ] || fail 'left a file'
  [ ! -s "$work/stdout" ] || fail 'printed to standard output'
}

one() {
  check=$(printf '%s' "${name%.json}" | sed 's/\..*//; s/-[0-9]*$//')
  [ "$check" != batch-scale ] && [ "$check" != batch-parts ] || return 0
  ran=$((ran + 1))
  run
  line="$name: .*\\[$check\\]\$|$name:[0-9].*\\[$check\\]\$"
  if grep -qE "^autopar-plan: error: .*($line)" "$work/err"; then
    case $code in
    3 | 4 | 7) nothing_written ;;
    *) fail "ended with $code" ;;
    esac
  elif grep -qE "^autopar-plan: warning: .*($line)" "$work/err"; then
    [ "$code" -ge 70 ] && fail "ended with $code"
    run --strict
    [ "$code" -eq 4 ] || fail "ended with $code under --strict"
    nothing_written
  elif ! grep -qE "^autopar-plan: note: .*($line)" "$work/err"; then
    fail "[$check] did not speak"
  fi
}

for kind in graph rank_table; do
  for bad in "$source/tests/bad/$kind"/*.json; do
    name=$(basename "$bad")
    one
  done
done
echo "$ran bad files, $failed failures"
[ "$ran" -gt 100 ] && [ "$failed" -eq 0 ]
