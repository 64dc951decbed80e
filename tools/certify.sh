#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# certify.sh PLANNER [SECONDS]: the tables of docs/certified.md: what --certify says of each bundled
# model on 8, 64 and 1,024 devices when it may take so long (60). Status 1 where the two engines
# contradict each other.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: certify.sh PLANNER [SECONDS]" >&2
  exit 2
fi
planner=$1
seconds=${2:-60}
models=$(dirname "$0")/../models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
failed=0

# timed SEARCH_ARGUMENT...: sets code, took (seconds) and line, the plan in one line.
timed() {
  code=0
  /usr/bin/time -q -o "$work/time" -f %e "$planner" search --json "$@" >"$work/plan" \
    2>"$work/err" || code=$?
  took=$(tail -n 1 "$work/time")
  line=$(tr -d '\n' <"$work/plan")
}

# value KEY: the first such number or word in line.
value() {
  printf '%s\n' "$line" | sed 's/.*"search": //' | grep -o "\"$1\": [^,}]*" |
    sed -n '1s/.*: "*\([^"]*\)"*/\1/p'
}

# below: by how much less than the objective the certificate's bound is.
below() {
  line="${line#*\"certificate\"}"
  awk -v cost="$1" -v bound="$(value lower_bound_s)" \
    'BEGIN { printf "bound %.2g %% below", 100 * (cost - bound) / cost }'
}

cell() { # SEARCH_ARGUMENT...
  timed "$@"
  first=$took
  gap=
  if [ "$code" -eq 0 ] && [ "$(value gap)" != 0 ]; then
    gap=$(value gap | awk '{ printf ", gap %.2g %%", 100 * $1 }')
  fi
  limit=$(awk -v first="$first" -v more="$seconds" 'BEGIN { printf "%.2f", 2 * first + more }')
  timed "$@" --certify --time-limit "$limit"
  case $code in
  0 | 8)
    case $line in
    *'"status": "agrees"'*) verdict="agrees in" ;;
    *'"certificate"'*) verdict="**$(below "$(value objective_s)")** after" ;;
    *) verdict="**no answer** after" ;;
    esac
    ;;
  5)
    verdict="nothing fits, **open** after"
    if grep -q 'too, proves that nothing fits' "$work/err"; then
      verdict="nothing fits, agrees in"
    fi
    ;;
  *)
    verdict="**exit $code** after"
    cat "$work/err" >&2
    failed=1
    ;;
  esac
  awk -v first="$first" -v both="$took" -v gap="$gap" -v verdict="$verdict" '
    function seconds(s) { return sprintf(s < 10 ? "%.2g s" : "%.0f s", s > 0.01 ? s : 0.01) }
    BEGIN { printf " %s%s; %s %s |", seconds(first), gap, verdict, seconds(both - first) }'
}

table() { # [SEARCH_ARGUMENT]...
  printf '| model | 8 | 64 | 1,024 |\n| --- | --- | --- | --- |\n'
  for model in multiple_mix resnet50 resnet50_imagenet wide_deep wide_deep_large bert_large vit_l \
    gpt3_1.3b gpt3_13b gpt3_13b_flash gpt3_175b llama2_7b llama2_70b mixtral_8x7b; do
    # shellcheck disable=SC2016 # backquotes of Markdown
    printf '| `%s` |' $model
    for devices in 8 64 1024; do
      cell "$models/$model.json" --device-num $devices --devices-per-server 8 --chip ascend910b \
        --enable-parallel-optimizer "$@"
    done
    printf '\n'
  done
}

table --micro-batches 8 --memory 9999GB
echo
table --micro-batches 8
[ $failed -eq 0 ]
