#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: routes.sh PROGRAM SOURCE_ROOT [ROUTE...]: all of them
# The plan that a search for a route writes is the plan that runs: its checkpoint, in either form, evaluated
# for that route, has the same strategies and figures to the last digit. The plan lists the operators that the
# route decides otherwise than the free optimum, and what they cost adds up. Another executor completes the
# same checkpoint otherwise.
set -u
# shellcheck disable=SC2034 # seeds.sh runs it
program=$1
source=$2
shift 2
# shellcheck source=tests/golden/seeds.sh
. "$source/tests/golden/seeds.sh"
# shellcheck disable=SC2046 # names
[ $# -gt 0 ] || set -- $("$program" search - --executor '' 2>&1 |
  sed -n 's/.*; expected one of //p' | tr -d , | tr ' ' '\n' | grep '^mindspore-') # those that load a checkpoint
models='multiple_mix bert_large gpt3_1.3b'

figures() { # LABEL
  sed -n '/^ "search": {/,/^ }/{/"objective_s"/p;}
    /^ "prediction": {/,/^ }/{/"step_time_s"/p;/"total_bytes"/p;}' "$work/$1.json"
}

# operators LABEL: a line for each: whether the checkpoint holds it, name, strategy, parts of its factors
operators() {
  awk '/^ "operators": \[/ { on = 1 }
    on && /^   "name": / { line = $0; sub(/^   "name": /, "", line) }
    on && /^   "in_checkpoint": / { held = $2 == "true," ? "held" : "open" }
    on && /^   "in_strategy": / { sub(/^   "in_strategy": /, ""); line = line " " $0 }
    on && /^    \{"factor": / { sub(/^.*"parts": /, ""); sub(/,.*/, ""); line = line " " $0 }
    on && /^   "recompute": / { print held, line }' "$work/$1.json"
}

object() { # LABEL OBJECT KEY
  sed -n "/^ \"$2\": {/,/^ }/s/^  \"$3\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$work/$1.json"
}

nearly() { # A B: within rounding of the larger
  awk -v a="$1" -v b="$2" 'BEGIN {
    if (a == "" || b == "")
      exit 1
    d = a - b
    exit !(d * d <= 1e-22 * (a * a + b * b) + 1e-40)
  }'
}

# evaluated LABEL STRATEGY ARGUMENTS...: evaluates; file LABEL.json (the plan)
evaluated() {
  label=$1
  strategy=$2
  shift 2
  asked=$((asked + 1))
  "$program" evaluate "$@" --strategy "$strategy" --plan-out "$work/$label.json" -q \
    2> "$work/$label.err" < /dev/null && return 0
  fail "$label: ended with $?"
  sed 's/^/  /' "$work/$label.err"
}

same_plan() { # LABEL LABEL
  ask "$1 and $2: other figures" test "$(figures "$1")" = "$(figures "$2")"
  operators "$1" > "$work/first"
  operators "$2" > "$work/second"
  ask "$1 and $2: other strategies" cmp -s "$work/first" "$work/second"
}

same_held() { # LABEL LABEL: what the checkpoint holds
  operators "$1" | grep '^held' > "$work/first"
  operators "$2" | grep '^held' > "$work/second"
  ask "$1 and $2: the checkpoint is not kept" cmp -s "$work/first" "$work/second"
}

# What is listed is what differs, is so in the plan, and adds up to the loss.
check_listed() { # LABEL FREE
  awk '/^ "route": \{/ { on = 1 } /^ \}/ { on = 0 } on && /^   \{"name": /' "$work/$1.json" > "$work/listed"
  ask "$1: differing_operators" test "$(object "$1" route differing_operators)" -eq \
    "$(wc -l < "$work/listed")"
  operators "$1" | sed 's/^[a-z]* //' > "$work/is"
  operators "$2" | sed 's/^[a-z]* //' > "$work/free"
  diff "$work/is" "$work/free" | sed -n 's/^< \("[^"]*"\), .*/\1/p' > "$work/first"
  sed 's/^   {"name": \("[^"]*"\),.*/\1/' "$work/listed" > "$work/second"
  ask "$1: other operators are listed than differ" cmp "$work/first" "$work/second"
  sed 's/^   {"name": \("[^"]*"\), "in_strategy": \(.*\), "free_in_strategy".*/\1, \2/' "$work/listed" \
    > "$work/first"
  awk '{ match($0, /.*\]/); line = substr($0, 1, RLENGTH) } NR == FNR { is[line]; next }
    !(line in is)' "$work/is" "$work/first" > "$work/second"
  ask "$1: listed with another strategy: $(cat "$work/second")" test ! -s "$work/second"
  sum=$(sed 's/.*"operator_s": \([^,]*\), "redistribution_s": \([^}]*\)}.*/\1 \2/' "$work/listed" |
    awk '{ s += $1 + $2 } END { printf "%.17g", s }')
  ask "$1: the loss $(object "$1" route loss_s) is not $sum" nearly "$(object "$1" route loss_s)" "$sum"
  ask "$1: free objective" test "$(object "$1" route free_objective_s)" = "$(object "$2" search objective_s)"
  ask "$1: free step time" test "$(object "$1" route free_step_time_s)" = \
    "$(object "$2" prediction step_time_s)"
}

# searched ROUTE ARGUMENTS...: files of label `route`; `free` is that of the same without
searched() {
  route=$1
  shift
  plan route "$@" --executor "$route" || return
  ask "$route: executor" test "$(object route route executor)" = "$route"
  check_listed route free
  asked=$((asked + 1))
  if compare "$(object route search objective_s)" '<' "$(object free search lower_bound_s)"; then
    fail "$route: better than the free optimum can be"
  fi
  "$program" convert "$work/route.ckpt" "$work/route.strategy.json" --graph "$1" -q ||
    fail "$route: convert"
  evaluated again "$work/route.ckpt" "$@" --executor "$route"
  same_plan route again
  evaluated again "$work/route.strategy.json" "$@" --executor "$route"
  same_plan route again
}

for model in $models; do
  for devices in 8 16; do
    arguments="$source/models/$model.json --chip ascend910b --memory 100TB --device-num $devices"
    # shellcheck disable=SC2086 # words
    plan free $arguments --executor mindspore --no-out-strategy
    for route; do
      # shellcheck disable=SC2086
      searched "$route" $arguments
      for other in mindspore "$@"; do
        [ "$other" != "$route" ] || continue
        # shellcheck disable=SC2086
        evaluated other "$work/route.ckpt" $arguments --executor "$other"
        same_held route other
        operators other > "$work/second"
        operators route | cmp -s - "$work/second" || differ="${differ:-} $route/$other"
      done
    done
  done
done
# Where memory is short, the additive problem's plans do not fit once they are completed: others are found that
# do, and are not much slower than the free optimum.
arguments="$source/models/gpt3_1.3b.json --chip ascend910b1 --device-num 16"
# shellcheck disable=SC2086
plan free $arguments --executor mindspore --no-out-strategy
for route; do
  # shellcheck disable=SC2086
  searched "$route" $arguments
  ask "$route: far slower than the free optimum" compare "$(object route prediction step_time_s)" '<' \
    "$(object free prediction step_time_s | awk -v route="$route" \
      '{ print $1 * (route == "mindspore-sharding-propagation" ? 1.05 : 1.2) }')"
done

# A search that is stopped ends with a plan as the route completes it.
arguments="$source/models/gpt3_13b.json --chip ascend910b1 --device-num 64"
for route; do
  # shellcheck disable=SC2086
  "$program" search $arguments --executor "$route" --time-limit 0.3 --plan-out "$work/route.json" \
    -o "$work/route.ckpt" > "$work/route.out" 2> "$work/route.err" < /dev/null
  ask "$route: stopped with another code than 8" test $? -eq 8
  # shellcheck disable=SC2086
  evaluated again "$work/route.ckpt" $arguments --executor "$route"
  same_plan route again
done

for route; do
  ask "$route completes no plan otherwise than others: $differ" test "${differ#*" $route/mindspore"}" != "$differ"
done

finish 80
