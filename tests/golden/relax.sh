#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: relax.sh PROGRAM SOURCE_ROOT
# Where nothing fits the messages name what is short, the largest operators, and what would fit. Each of
# these is taken at its word: with it a plan is found, which needs no more than the limit.
set -u
# shellcheck disable=SC2034 # seeds.sh runs it
program=$1
source=$2
# shellcheck source=tests/golden/seeds.sh
. "$source/tests/golden/seeds.sh"

ways() { # what was said to fit, as options
  sed -n 's/^autopar-plan: note: \(.*\) would fit: a plan of .* \[memory-relax\]$/\1/p
    s/^autopar-plan: note: \([0-9]*\) devices\{0,1\} would do: a plan of .* \[memory-relax\]$/--device-num \1/p' \
    "$work/no.err"
}

hopeless() { # LIMIT_IN_MIB DEVICES MODEL EXPECTED_WAY
  limit=$1 devices=$2 graph=$source/models/$3.json
  refused 5 ' are short [memory]' "$graph" --chip ascend910a --memory "${limit}MB" --device-num "$devices"
  ask "$3: no largest operators" grep -q 'of operators "[^"]*" [0-9.]* [KMG]iB.* \[memory-largest\]$' \
    "$work/no.err"
  ask "$3: an operator twice" test -z "$(sed -n 's/.*; of operators \(.*\) \[memory-largest\]$/\1/p' "$work/no.err" |
    grep -o '"[^"]*"' | sort | uniq -d)"
  ways > "$work/ways"
  ask "$3: no way $4" grep -qx -e "$4" "$work/ways"
  while read -r way; do
    case $way in
    --device-num*) set -- ;;
    *) set -- --device-num "$devices" ;;
    esac
    # shellcheck disable=SC2086 # words
    plan fits "$graph" --chip ascend910a --memory "${limit}MB" "$@" $way
    ask "$way: too much" test "$(value fits total_bytes)" -le $((limit << 20))
  done < "$work/ways"
}

hopeless 913 8 multiple_mix '--device-num 1'
hopeless 2048 8 resnet50 '--micro-batches [0-9]*'
hopeless 30720 8 bert_large '--recompute selective'
hopeless 30720 8 vit_l '--recompute full'
hopeless 5120 8 wide_deep_large '--device-num 16'

# What is given, and not searched, says the same of its own memory.
for mode in '--parallel-mode data_parallel' '--hybrid dp=8'; do
  # shellcheck disable=SC2086
  refused 5 ' are short [memory]' "$source/models/bert_large.json" --chip ascend910a --device-num 8 $mode
  ask "$mode: no largest operators" grep -q ' \[memory-largest\]$' "$work/no.err"
done

# As few devices as it says are enough.
"$program" search "$source/models/bert_large.json" --chip ascend910a --min-devices > "$work/least"
least=$(sed -n 's/^\([0-9]*\) devices .*/\1/p' "$work/least")
ask 'a number of devices' test "${least:-0}" -gt 1
plan least "$source/models/bert_large.json" --chip ascend910a --device-num "$least"
fewer=$(sed -n 's/^\([0-9]*\) do not do: .*/\1/p' "$work/least")
refused 5 ' are short [memory]' "$source/models/bert_large.json" --chip ascend910a --device-num "$fewer"

finish 30
