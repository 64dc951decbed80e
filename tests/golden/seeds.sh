# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # program and source are of those who source this
# Sourced by seed*.sh, which set program and source: runs of the program on what MindSpore's tutorials
# configure, and what is asked of the plans.
unset RANK_TABLE_FILE
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
asked=0

fail() { # WHAT
  echo "FAILED: $1"
  failed=$((failed + 1))
}

ask() { # WHAT COMMAND...: the command has to succeed
  what=$1
  shift
  asked=$((asked + 1))
  "$@" || fail "$what"
}

# plan LABEL ARGUMENTS...: searches; files LABEL.ckpt, LABEL.stages, LABEL.json (the plan), LABEL.err
plan() {
  label=$1
  shift
  "$program" search "$@" --plan-out "$work/$label.json" -o "$work/$label.ckpt" \
    > "$work/$label.out" 2> "$work/$label.err" < /dev/null && return 0
  fail "$label: ended with $?"
  sed 's/^/  /' "$work/$label.err"
}

# refused CODE TEXT ARGUMENTS...: searches in vain, says the text, writes nothing
refused() {
  code=$1
  text=$2
  shift 2
  asked=$((asked + 1))
  rm -rf "$work/no.ckpt" "$work/no.stages"
  "$program" search "$@" -o "$work/no.ckpt" > "$work/no.out" 2> "$work/no.err" < /dev/null
  is=$?
  [ "$is" -eq "$code" ] || fail "$*: ended with $is, not $code"
  grep -qF -- "$text" "$work/no.err" || { fail "$*: does not say: $text"; sed 's/^/  /' "$work/no.err"; }
  if [ -s "$work/no.out" ] || [ -e "$work/no.ckpt" ] || [ -e "$work/no.stages" ]; then
    fail "$*: wrote something"
  fi
}

said() { # LABEL TEXT: among the messages
  ask "$1: does not say: $2" grep -qF -- "$2" "$work/$1.err"
}

silent() { # LABEL TEXT: not among the messages
  asked=$((asked + 1))
  ! grep -qF -- "$2" "$work/$1.err" || fail "$1: says: $2"
}

# value LABEL KEY [STAGE]: a number of the prediction, of the stage, or else the first of that name
value() {
  if [ $# -eq 3 ]; then
    sed -n "s/^ *{\"stage\": $3, .*\"$2\": \([-+0-9.e]*\).*/\1/p" "$work/$1.json" | head -n 1
  else
    sed -n "s/.*\"$2\": \([-+0-9.e]*\).*/\1/p" "$work/$1.json" | head -n 1
  fi
}

compare() { # A RELATION B: numbers, of any form; ~ but for what rounding makes of sums
  awk -v a="$1" -v b="$3" -v r="$2" 'BEGIN {
    if (a == "" || b == "")
      exit 1
    if (r == "<")
      exit !(a + 0 < b + 0)
    if (r == ">")
      exit !(a + 0 > b + 0)
    if (r == "~")
      exit !((a - b) * (a - b) <= 1e-24 * a * a)
    exit !(r == "=" && a + 0 == b + 0)
  }'
}

# relation LABEL RELATION LABEL KEY [STAGE]: between the numbers of two plans
relation() {
  first=$1 r=$2 second=$3
  shift 3
  ask "$* of $first: $(value "$first" "$@"), of $second: $(value "$second" "$@"); expected $r" \
    compare "$(value "$first" "$@")" "$r" "$(value "$second" "$@")"
}

is() { # LABEL KEY VALUE [STAGE]
  got=$(value "$1" "$2" ${4:+"$4"})
  ask "$2 of $1: $got, expected $3" compare "$got" '=' "$3"
}

cuts() { # LABEL: how every operator is cut
  grep -e '"in_strategy"' "$work/$1.json"
}

same_cuts() { # LABEL LABEL
  cuts "$1" > "$work/cuts"
  ask "cuts of $1 and $2 differ" test "$(cuts "$1")" = "$(cuts "$2")"
}

other_cuts() { # LABEL LABEL
  ask "cuts of $1 and $2 are the same" test "$(cuts "$1")" != "$(cuts "$2")"
}

# collectives LABEL PHASE KIND: how many there are in a micro-batch
collectives() {
  grep -c "\"phase\": \"$2\", \"kind\": \"$3\"" "$work/$1.json"
}

# decoded FILE: lines of ckpt.awk, by protoc
decoded() {
  protoc --proto_path="$source/proto" --decode=mindspore.straspb.ParallelStrategyMap \
    node_strategy.proto < "$1" | awk -f "$source/tests/golden/ckpt.awk"
}

# layouts_hold FILE GRAPH DEVICES STATES: what MindSpore asks of the file holds
layouts_hold() {
  decoded "$1" > "$work/lines"
  awk -v devices="$3" -v states="$4" -f "$source/tests/golden/layouts.awk" "$2" "$work/lines" \
    > "$work/wrong"
  ask "${1##*/}: $(cat "$work/wrong")" test ! -s "$work/wrong"
}

finish() {
  echo "$asked asked, $failed failed"
  [ "$asked" -gt "$1" ] && [ "$failed" -eq 0 ]
}
