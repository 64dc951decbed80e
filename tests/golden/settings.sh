#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: settings.sh PROGRAM SOURCE_ROOT [SETTING...]
# What every setting of search and evaluate changes. settings.tsv says it and how its rows read: two runs
# must differ in just what their row says, in the direction it says. All rows of a setting together must
# show what `list settings` claims, and nothing more; every such setting has a row. With SETTINGs, only
# theirs are tried, and what differs is printed.
set -u
unset RANK_TABLE_FILE AUTOPAR_PLAN_MODELS
export LC_ALL=C
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
here=$source/tests/golden
shift 2
only=$*
tab=$(printf '\t')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
: > shown
failed=0
ran=0

fail() { # WHAT
  echo "FAILED: $setting ($scenario) $options: $a to $b: $1"
  failed=$((failed + 1))
}

# "name claim,claim" of every setting that search or evaluate takes; without claims "nothing"
claims() {
  "$program" list settings --json | awk -F '"' '
    $2 == "name" { name = $4 }
    $2 == "commands" { planners = /"search"|"evaluate"/ }
    $2 == "influences" && planners {
      gsub(/^.*\[|\].*$|[" ]/, "")
      print name, $0 == "" ? "nothing" : $0
    }'
}

# Every file that a run may write, but that of the tested setting; less where files hold figures.
outputs() { # COMMAND FULL
  if [ "$setting" = stage_devices ]; then # whose plans no checkpoint holds
    echo --plan-out=plan.json --stage-config-out=stages.json
    return
  fi
  [ "$1" = evaluate ] || set -- "$@" strategy_ckpt_save_file=net.ckpt
  [ "$1 $2" != 'search yes' ] || set -- "$@" problem_out=problem.json
  [ "$2" = no ] || set -- "$@" trace_out=trace.json dot_out=net.dot
  set -- "$@" plan_out=plan.json stage_config_out=stages.json group_ckpt_save_file=groups.pb
  shift 2
  for file; do
    [ "${file%%=*}" = "$setting" ] || printf -- '--%s ' "$(printf '%s' "$file" | tr _ -)"
  done
}

# The run with this value (-: not given) is in the folder $at, its plan in $at.plan and so on.
run() { # VALUE FULL
  # shellcheck disable=SC2086 # words
  set -- "$1" "$2" $base $options
  value=$1
  full=$2
  command=$3
  graph=$4
  shift 4
  # shellcheck disable=SC2046 # words
  set -- "$command" "../$graph" "$@" $(outputs "$command" "$full")
  more=${value#* }
  [ "$more" != "$value" ] || more=
  # shellcheck disable=SC2086 # words
  [ "$value" = - ] || set -- "$@" "--$(printf '%s' "$setting" | tr _ -)=${value%% *}" $more
  at=$(printf '%s ' "$@" | cksum | tr ' ' -)
  [ ! -d "$at" ] || return 0
  mkdir "$at"
  (cd "$at" && exec "$program" "$@" > ../out 2> ../err < /dev/null)
  code=$?
  echo $code > "$at.code"
  if [ $code -ne 0 ] && [ $code -ne 8 ]; then
    [ "$differs" = refused ] || fail "ended with $code: $(cat err)"
    return 0
  fi
  awk -v out="$at" -f "$here/settings.awk" "$at/plan.json"
  mv "$at/plan.json" "$at.json"
}

measure() { # A B: prints what differs
  case $(cat "$1.code")-$(cat "$2.code") in
  [08]-[08]) ;;
  [08]-* | *-[08])
    echo refused
    return
    ;;
  *)
    echo neither
    return
    ;;
  esac
  set -- "$1" "$2" ''
  for side in plan cost memory; do
    cmp -s "$1.$side" "$2.$side" || set -- "$1" "$2" "$3,$side"
  done
  { cmp -s "$1.extra" "$2.extra" && diff -r "$1" "$2" > /dev/null; } || set -- "$1" "$2" "$3,files"
  [ -n "$3" ] || cmp -s "$1.all" "$2.all" || set -- "$1" "$2" ,rest
  echo "${3:+${3#,}}"
}

# Prints those of the trends, such as optimizer_bytes<, that are not so from A to B.
broken() { # A B TREND...
  awk -v trends="$*" '
    FNR == NR { a[$1] = $2; next }
    { b[$1] = $2 }
    END {
      n = split(trends, trend, " ")
      for (i = 3; i <= n; i++) {
        name = trend[i]
        sign = substr(name, length(name))
        name = substr(name, 1, length(name) - 1)
        if (!(name in a) || !(name in b) ||
          !(sign == "<" ? b[name] < a[name] : sign == ">" ? b[name] > a[name] : b[name] == a[name]))
          printf "%s: %s to %s; ", trend[i], a[name], b[name]
      }
    }' "$1.figures" "$2.figures"
}

try() {
  full=no
  [ "$differs" != nothing ] || full=yes
  run "$a" "$full"
  from=$at
  run "$b" "$full"
  ran=$((ran + 1))
  found=$(measure "$from" "$at")
  [ -z "$only" ] || echo "$setting ($scenario) $options: $a to $b: ${found:-nothing}"
  [ "${found:-nothing}" = "$differs" ] || fail "${found:-nothing} differ, $differs expected"
  # shellcheck disable=SC2086 # words
  wrong=$([ "$found" = refused ] || broken "$from" "$at" $trends)
  [ -z "$wrong" ] || fail "not so: $wrong"
  echo "$setting ${found:-nothing}" >> shown
}

cp "$source/models/multiple_mix.json" mix.json
sed 's/"type": "ReLU",/& "recompute": true,/' mix.json > again.json
"$program" model gpt3 --model-name gpt --layers 4 --hidden 256 --heads 8 --sequence 128 --vocabulary 1024 --batch 64 \
  --attention small --dtype float16 > gpt.json
"$program" model mixtral --layers 1 --hidden 1024 --heads 8 --kv-heads 8 --inner 4096 --experts 8 --active 2 \
  --capacity 0 --kernels fused --sequence 1024 --batch 16 --vocabulary 1024 > experts.json
cp "$here"/settings/* .
# settings that need what this program was built without
missing=$("$program" list settings --json | awk -F '"' '
  $2 == "name" { name = $4 }
  $2 == "help" && /built without/ { printf " %s ", name }')

made() { # CHECKPOINT OPTION...: of multiple_mix
  file=$1
  shift
  "$program" search mix.json --device-num=8 --chip=ascend910a -q -o "$file" "$@" || exit 2
}
made mix.ckpt
made mix2.ckpt --hybrid=dp=2,tp=4
while IFS=$tab read -r setting scenario options a b differs trends; do
  case $setting in
  '' | \#*) continue ;;
  =*)
    printf '%s\n' "$scenario" > "scenario$setting"
    continue
    ;;
  esac
  case " $only " in
  '  ' | *" $setting "*) ;;
  *) continue ;;
  esac
  case "$scenario $missing" in
  =* | *" $setting "*) echo "$setting untried" >> shown ;;
  *)
    base=$(cat "scenario=$scenario")
    [ "$options" != - ] || options=
    try
    ;;
  esac
done < "$here/settings.tsv"

claims > claimed
awk -v all="$([ -n "$only" ] || echo yes)" '
  function has(list, what) { return ("," list ",") ~ ("," what ",") }
  FNR == NR { claim[$1] = $2; next }
  { rows[$1]++ }
  !($1 in claim) { print "FAILED: " $1 " is no setting of search or evaluate"; next }
  $2 == "untried" { untried[$1] = 1; next }
  { shown[$1] = shown[$1] "," $2 }
  # another plan has other prices, needs and files, and other prices and needs may give another plan
  claim[$1] == "nothing" && $2 != "nothing" { print "FAILED: " $1 " claims to change nothing" }
  has($2, "plan") || $2 == "refused" { next }
  {
    n = split($2, part, ",")
    for (i = 1; i <= n; i++)
      if (part[i] != "nothing" && !has(claim[$1], part[i]))
        print "FAILED: " $1 " changes " part[i] ", but claims " claim[$1]
  }
  END {
    for (i in claim) {
      n = split(claim[i], part, ",")
      if (!(i in rows) && all)
        print "FAILED: " i " has no row"
      for (j = 1; j <= n && i in rows && !(i in untried); j++)
        if (!has(shown[i], part[j]) && !(part[j] == "plan" && has(shown[i], "refused")))
          print "FAILED: " i " claims " part[j] ", but no row shows it"
    }
  }' claimed shown | sort -u > disagree
cat disagree
failed=$((failed + $(wc -l < disagree)))
echo "$ran rows, $failed failures"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
