#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# certify.sh PLANNER [SECONDS [MODEL...]]: the tables of docs/certified.md: what --certify says of each bundled
# model, or of these, on 8, 64 and 1,024 devices when it may take so long (60); then of each plan whose step gap is
# above 2, 5 or 10 % there, what its step waits for; and how `plan` proves what it decides (tools/decided.py). Status 1
# where the two engines contradict each other.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: certify.sh PLANNER [SECONDS [MODEL...]]" >&2
  exit 2
fi
planner=$1
seconds=${2:-60}
shift
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- multiple_mix resnet50 resnet50_imagenet wide_deep wide_deep_large bert_large vit_l \
  gpt3_1.3b gpt3_13b gpt3_13b_flash gpt3_175b llama2_7b llama2_70b mixtral_8x7b
tools=$(dirname "$0")
models=$tools/../models
all=$*
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

# step_gap MODEL DEVICES: a row of $work/gaps if the plan's gap is large, and one of $work/plans.
step_gap() {
  case $2 in
  8) most=2 ;;
  64) most=5 ;;
  *) most=10 ;;
  esac
  row=$(python3 "$tools/step_gap.py" "$work/plan.json" $most)
  # shellcheck disable=SC2016 # backquotes of Markdown
  [ -z "$row" ] || printf '| `%s` | %d | %s\n' "$1" "$2" "$row" >>"$work/gaps"
  echo "$2 $most ${row:+above}" >>"$work/plans"
}

# step_gaps: the table of the large gaps, and how many plans there are.
step_gaps() {
  printf '\n| model | devices | step | bound | gap | the step waits for |\n'
  printf '| --- | ---: | ---: | ---: | ---: | --- |\n'
  cat "$work/gaps"
  awk '{ n[$1]++; most[$1] = $2; if ($3 == "") good[$1]++ }
    END {
      printf "\nOf the plans"
      for (d = 8; d <= 1024; d *= 2)
        if (n[d]) printf "%s on %d devices %d of %d are within %d %%", sep, d, good[d], n[d], most[d], sep = ";"
      print "."
    }' "$work/plans"
}

cell() { # MODEL DEVICES SEARCH_ARGUMENT...
  model=$1
  devices=$2
  shift 2
  set -- "$models/$model.json" --device-num "$devices" "$@"
  timed "$@"
  first=$took
  gap=
  if [ "$code" -eq 0 ] && [ "$(value gap)" != 0 ]; then
    gap=$(value gap | awk '{ printf ", gap %.2g %%", 100 * $1 }')
  fi
  limit=$(awk -v first="$first" -v more="$seconds" 'BEGIN { printf "%.2f", 2 * first + more }')
  timed "$@" --certify --time-limit "$limit" --plan-out "$work/plan.json"
  case $code in
  0 | 8)
    step_gap "$model" "$devices"
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
  : >"$work/gaps"
  : >"$work/plans"
  for model in $all; do
    # shellcheck disable=SC2016 # backquotes of Markdown
    printf '| `%s` |' "$model"
    for devices in 8 64 1024; do
      cell "$model" $devices --devices-per-server 8 --chip ascend910b --enable-parallel-optimizer "$@"
    done
    printf '\n'
  done
  step_gaps
}

table --micro-batches 8 --memory 9999GB
echo
table --micro-batches 8
# shellcheck disable=SC2086 # words
python3 "$tools/decided.py" "$planner" gaps $all
[ $failed -eq 0 ]
