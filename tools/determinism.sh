#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# determinism.sh BIN...: every output has the same bytes for each program BIN, for --jobs 1 and 2,
# in a locale with a decimal comma, and from another folder. Prints what differs; 1 when anything
# does.
set -eu

if [ $# -eq 0 ]; then
  echo "usage: determinism.sh BIN..." >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(pwd)

# outputs BIN DIR JOBS: all outputs of a few runs, made in DIR.
outputs() {
  bin=$1
  jobs=$3
  mkdir -p "$2"
  (
    cd "$2"
    plan mix "$root/models/multiple_mix.json" "$root/models/topo/ascend910_8p.json"
    plan gpt "$root/models/gpt3_1.3b.json" --chip ascend910b --device-num 32 \
      --micro-batches 4 --enable-parallel-optimizer
    plan odd "$root/models/multiple_mix.json" --chip a100-80 --device-num 6 \
      --batch 96 --executor generic
    "$bin" solve odd.problem.json --write-lp odd.lp --write-wcsp odd.wcsp >odd.again.json
    plan recursion "$root/models/gpt3_1.3b.json" --chip ascend910c --device-num 24 \
      --micro-batches 4 --enable-parallel-optimizer --search-mode recursive_programming
    plan tight "$root/models/multiple_mix.json" --chip h100-80 --device-num 16 --memory 913MB \
      --search-mode recursive_programming
    plan propagation "$root/models/resnet50.json" "$root/models/topo/ascend910_16p.json" \
      --chip ascend910a --search-mode sharding_propagation
    plan semi "$root/models/wide_deep.json" --chip ascend910b --device-num 16 \
      --parallel-mode semi_auto_parallel
    plan pipeline "$root/models/gpt3_1.3b.json" --chip ascend910b --device-num 32 \
      --pipeline-stages 4 --micro-batches 8 --recompute selective --optimizer adam
    plan route "$root/models/multiple_mix.json" "$root/models/topo/ascend910_8p.json" \
      --executor mindspore-semi-auto
    plan batch "$root/models/resnet50.json" --chip ascend910b --device-num 16 \
      --parallel-mode data_parallel
    plan loaded "$root/models/gpt3_1.3b.json" --chip ascend910b --device-num 32 \
      --strategy-ckpt-load-file gpt.ckpt
    pictures gpt
    pictures propagation
    differences gpt.plan.json loaded.plan.json
    differences mix.ckpt odd.ckpt.json
    differences propagation.plan.json batch.ckpt
  )
}

# plan NAME SEARCH_ARGUMENT...
plan() {
  name=$1
  shift
  "$bin" search "$@" --jobs "$jobs" -o "$name.ckpt" --plan-out "$name.plan.json" \
    --dot-out "$name.dot" --problem-out "$name.problem.json" --bundle "$name.bundle" \
    >"$name.txt" 2>"$name.err"
  "$bin" search "$@" --jobs "$jobs" -o "$name.ckpt.json" --json >"$name.summary.json" \
    2>>"$name.err"
  if [ -e "$name.problem.json" ]; then # some modes make no table
    "$bin" solve "$name.problem.json" >"$name.solution.json"
  fi
}

pictures() { # NAME
  for detail in fold full; do
    "$bin" render "$1.plan.json" --dot-out "$1.$detail.dot" --detail $detail
  done
}

differences() { # OLD NEW
  for form in text json markdown; do
    "$bin" diff "$1" "$2" --format $form >"$1.$2.$form" || [ $? -eq 1 ]
  done
}

status=0
compare() { # WHAT DIR
  if ! diff -rq "$work/reference" "$2"; then
    echo "differs: $1" >&2
    status=1
  fi
  rm -rf "$2"
}

absolute() { # FILE
  case $1 in
  /*) printf '%s' "$1" ;;
  *) printf '%s/%s' "$here" "$1" ;;
  esac
}

first=$(absolute "$1")
outputs "$first" "$work/reference" 1
outputs "$first" "$work/jobs" 2
compare "--jobs 2" "$work/jobs"
for locale in de_DE.UTF-8 de_DE.utf8 tr_TR.UTF-8 tr_TR.utf8; do
  if locale -a 2>/dev/null | grep -qx "$locale"; then
    (export LC_ALL="$locale" && outputs "$first" "$work/locale" 1)
    compare "LC_ALL=$locale" "$work/locale"
  fi
done
outputs "$first" "$work/another folder/below" 2
compare "another folder" "$work/another folder/below"
for bin in "$@"; do
  outputs "$(absolute "$bin")" "$work/build" 2
  compare "$bin" "$work/build"
done
exit $status
