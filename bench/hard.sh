#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hard.sh BUILD [SECONDS]: tables that are too wide for elimination, or nearly: what `solve` proves of them, its
# CPU time and memory, beside integer_programming alone and, where it is installed, toulbar2, each stopped after
# SECONDS (20). At the end: how many each has proven, and what toulbar2 proves that `solve` does not. BUILD is a
# release build with -Dbench=true. CPU times include reading: JSON here, toulbar2's own format there.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: hard.sh BUILD [SECONDS]" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
seconds=${2:-20}
planner=$build/src/cli/autopar-plan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rival=
if command -v toulbar2 >/dev/null; then
  rival=yes
else
  echo "toulbar2 is not installed: without it" >&2
fi

# run LIMIT COMMAND...: its output in $work/out; "seconds MiB" of it and its children in $work/spent.
run() {
  limit=$1
  shift
  /usr/bin/time -q -o "$work/time" -f '%U %S %M' timeout "$limit" "$@" >"$work/out" 2>/dev/null || :
  tail -n 1 "$work/time" | awk '{ printf "%.2f %d", $1 + $2, $3 / 1024 }' >"$work/spent"
}

# told NAME: what `solve` said: proven, or its gap.
told() {
  sed 's/[{},]/\n/g' "$work/out" | awk -F: '
    { gsub(/"/, "") }
    $1 == "status" { status = $2 }
    $1 == "objective" { cost = $2 }
    $1 == "lower_bound" && bound == "" { bound = $2 }
    END {
      if (status == "optimal") print "proven"
      else if (status != "feasible" || bound <= 0) print "open"
      else printf "gap %.2f%%\n", 100 * (cost / bound - 1)
    }'
}

column() {
  read -r cpu mib <"$work/spent" || :
  printf '  %-11s %7s s %4s MiB' "$1" "$cpu" "$mib"
}

# hard ARGUMENT...: of make_problem.
hard() {
  "$build/bench/make_problem" "$@" >"$work/p.json"
  printf '%-40s' "$*"
  for mode in auto integer_programming; do
    run $((seconds * 4)) "$planner" solve "$work/p.json" -q --time-limit "$seconds" --search-mode "$mode"
    word=$(told)
    column "$word"
    [ "$mode" = auto ] && ours=$word
    if [ "$word" = proven ]; then echo "$mode" >>"$work/proven"; fi
  done
  case " $* " in
  *" memory "*) ;; # the format has no limit of memory
  *)
    if [ "$rival" ]; then
      "$planner" solve "$work/p.json" -q --write-wcsp "$work/p.wcsp" --gap 1000 >/dev/null 2>&1 || :
      run "$seconds" toulbar2 "$work/p.wcsp"
      word=open
      if grep -q 'Optimum:' "$work/out"; then
        word=proven
        echo toulbar2 >>"$work/proven"
        [ "$ours" = proven ] || echo "$*" >>"$work/lost"
      fi
      column "$word"
    fi
    ;;
  esac
  echo
}

: >"$work/proven"
: >"$work/lost"
printf '%-40s  %-31s %-31s %s\n' table auto integer_programming "${rival:+toulbar2}"
hard grid 20 10 10
hard grid 10 10 10
hard regular 40 4 12 seed=3
hard grid 8 8 10
hard grid 20 10 10 layout
hard grid 12 12 8 forbidden=30
hard grid 10 10 3 layout forbidden=10 seed=352
hard grid 8 8 5 levels seed=831
hard grid 10 10 8 levels
hard grid 10 10 6 edges
hard grid 20 10 10 edges planted
hard torus 8 8 6
hard torus 6 6 8 levels seed=92
hard regular 100 4 20
hard regular 60 3 10 layout
hard regular 30 6 3 levels seed=918
hard regular 60 4 10 edges planted
hard clique 12 1 8 edges
hard clique 10 1 16 levels seed=237
hard clique 10 1 25 levels seed=562
hard clique 20 1 6 edges planted
hard dag 12 6 12
hard dag 12 6 12 layout
hard dag 30 8 16 layout seed=3
hard dag 8 5 10 levels seed=221
hard dag 8 5 10 levels seed=627
hard dag 20 8 10 edges planted forbidden=40
hard grid 10 10 10 memory
hard regular 40 4 10 memory
hard dag 12 6 8 memory
echo
for name in auto integer_programming ${rival:+toulbar2}; do
  echo "$name: $(grep -c "^$name\$" "$work/proven" || :) proven"
done
sed 's/^/only toulbar2: /' "$work/lost"
