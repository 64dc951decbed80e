#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scale.sh BUILD [cases|curves|counts|phases]: how time and memory of whole runs grow, on two cores.
#   cases   cases with an aim each: median and least time of five runs, most memory
#   curves  operators and devices by powers of ten and eight, and the exponents between them
#   counts  instructions (millions) by phase, which no other load disturbs; needs valgrind
#   phases  seconds and MiB held by phase, as --verbose tells them; the inner steps of the search
# Without the second argument: cases and curves. BUILD is a release build with -Dbench=true. Files are
# written to memory where the system has /dev/shm: a disk's time is not ours.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: scale.sh BUILD [cases|curves|counts|phases]" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
what=${2:-all}
cd "$(dirname "$0")/.."
planner=$build/src/cli/autopar-plan
work=$(mktemp -d)
out=$work
if [ -w /dev/shm ]; then
  out=$(mktemp -d -p /dev/shm)
fi
trap 'rm -rf "$work" "$out"' EXIT
unset RANK_TABLE_FILE
cores=
if command -v taskset >/dev/null; then
  cores="taskset -c 0,1"
fi

# graph NAME SHAPE COUNT [different]: $work/NAME.json, made once.
graph() {
  name=$1
  shift
  [ -e "$work/$name.json" ] || "$build/bench/make_graph" "$@" >"$work/$name.json"
}

# problem NAME ARGUMENT...: the same for a table of costs.
problem() {
  name=$1
  shift
  [ -e "$work/$name.json" ] || "$build/bench/bench_solve" "$@" --write >"$work/$name.json"
}

# measure SAMPLES REPEATS ARGUMENT...: "status seconds peak_kib" of each sample into $work/samples; a
# sample repeats its run, for the clock has but hundredths. A run that ends early with a plan (8)
# counts; any other failure is told.
measure() {
  runs=$1
  repeats=$2
  shift 2
  : >"$work/samples"
  while [ "$runs" -gt 0 ]; do
    runs=$((runs - 1))
    status=0
    # shellcheck disable=SC2016,SC2086 # for the inner shell; words
    $cores /usr/bin/time -q -o "$work/time" -f '%e %M' timeout 600 sh -c '
      repeats=$1
      shift
      while [ "$repeats" -gt 0 ]; do
        "$@" -q >/dev/null || exit
        repeats=$((repeats - 1))
      done' sh "$repeats" "$planner" "$@" 2>"$work/messages" || status=$?
    tail -n 1 "$work/time" | awk -v status="$status" -v repeats="$repeats" \
      '{ print status, $1 / repeats, $2 }' >>"$work/samples"
    case $status in
    0 | 8) ;;
    *)
      head -n 3 "$work/messages" >&2
      return 0
      ;;
    esac
  done
}

# aim SECONDS MIB TEXT ARGUMENT...: a line of the table of aims; MIB 0: none is set.
aim() {
  seconds=$1
  mib=$2
  text=$3
  shift 3
  repeats=$(awk -v s="$seconds" 'BEGIN { print s < 0.1 ? 20 : 1 }')
  measure 5 "$repeats" "$@"
  sort -k 2n "$work/samples" | awk -v s="$seconds" -v m="$mib" -v text="$text" '
    { status = status > $1 ? status : $1; t[NR] = $2; if ($3 > most) most = $3 }
    END {
      median = t[int((NR + 1) / 2)]; most /= 1024
      met = status == 0 && median <= s && (!m || most <= m)
      printf "%-62s %7.3f s %8.3f %8.3f s %6d MiB  %s\n", text, s, median, t[1], most,
        status ? "exit " status : met ? "met" : "missed"
    }'
}

machine="--devices-per-server 8 --chip ascend910b --memory 100TB"

search() {
  seconds=$1
  mib=$2
  text=$3
  name=$4
  devices=$5
  shift 5
  # shellcheck disable=SC2086 # words
  aim "$seconds" "$mib" "$text" search "$work/$name.json" --device-num "$devices" $machine "$@"
}

cases() {
  printf '%-62s %9s %8s %10s\n' case aim median least
  for n in 100 1000 10000 100000; do
    graph "chain$n" chain "$n"
  done
  for n in 24 96 1000 8334; do
    graph "layers$n" transformer "$n"
  done
  search 0.02 50 "chain of 1,000, 8 devices" chain1000 8
  search 0.05 0 "chain of 100, 1,024 devices" chain100 1024
  search 0.3 0 "chain of 10,000, 1,024 devices" chain10000 1024
  search 0.15 0 "chain of 10,000, 1,024 devices, recursive_programming" chain10000 1024 \
    --search-mode recursive_programming
  search 0.005 0 "transformer of 24 layers, 8 devices" layers24 8
  search 0.01 0 "transformer of 96 layers, 8 devices" layers96 8
  search 0.06 0 "transformer of 1,000 layers, 8 devices" layers1000 8
  search 20 4096 "chain of 100,000, 65,536 devices, checkpoint and plan" chain100000 65536 \
    -o "$out/net.ckpt" --plan-out "$out/plan.json"
  search 20 4096 "the same of layers, recursive_programming" layers8334 65536 \
    --search-mode recursive_programming -o "$out/net.ckpt" --plan-out "$out/plan.json"
  for c in "transformer 24 25" "transformer 96 25" "chain 100 66"; do
    # shellcheck disable=SC2086 # words
    problem "$(echo "$c" | tr ' ' _)" $c
  done
  problem limit4 transformer 4 25 limit
  problem limit96 transformer 96 25 limit
  rival "solve 337 nodes x 25" transformer_24_25
  rival "solve 1,345 nodes x 25" transformer_96_25
  rival "solve chain of 100 x 66" chain_100_66
  aim 0.05 0 "solve 57 nodes x 25, memory limit" solve "$work/limit4.json"
  aim 0.5 0 "solve 1,345 nodes x 25, memory limit" solve "$work/limit96.json"
}

# rival TEXT NAME: the aim is the time of toulbar2 on the same problem.
rival() {
  seconds=0
  if command -v toulbar2 >/dev/null; then
    "$planner" solve "$work/$2.json" -q --write-wcsp "$work/rival.wcsp" >/dev/null
    # shellcheck disable=SC2086 # words
    $cores /usr/bin/time -q -o "$work/time" -f %e toulbar2 "$work/rival.wcsp" >/dev/null 2>&1 || :
    seconds=$(tail -n 1 "$work/time")
  fi
  aim "$seconds" 0 "$1 (aim: toulbar2)" solve "$work/$2.json"
}

# point COUNT ARGUMENT...: one point of a curve, "count seconds MiB" into $work/points as well.
point() {
  count=$1
  shift
  measure 3 1 "$@"
  sort -k 2n "$work/samples" | awk -v n="$count" '
    NR == 1 { s = $2; m = $3 / 1024; status = $1 }
    END { printf "%9d %9.2f %8d%s\n", n, s, m, status ? "  exit " status : "" }' |
    tee -a "$work/points"
}

# The slope of log time against log count, least squares, over counts from $1 to $2.
slope() {
  awk -v from="$1" -v to="$2" '
    $1 >= from && $1 <= to && $2 > 0 && !$4 {
      x = log($1); y = log($2); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
    END { if (n > 1) printf "exponent %.2f from %d to %d\n", (n * sxy - sx * sy) / (n * sxx - sx * sx), from, to }' \
    "$work/points"
}

curve() {
  printf '\n%s\n%9s %9s %8s\n' "$1" "$2" seconds MiB
  : >"$work/points"
}

big="--max-input 1GB -o $out/net.ckpt --plan-out $out/plan.json"

curves() {
  curve "chain, equal layers, 8 devices, checkpoint and plan" operators
  for n in 100 1000 10000 100000 1000000; do
    graph "chain$n" chain "$n"
    # shellcheck disable=SC2086 # words
    point "$n" search "$work/chain$n.json" --device-num 8 $machine $big
  done
  slope 1000 100000
  curve "transformer, equal layers, 8 devices, checkpoint and plan" operators
  for n in 8 83 833 8334; do
    graph "layers$n" transformer "$n"
    # shellcheck disable=SC2086 # words
    point $((n * 12)) search "$work/layers$n.json" --device-num 8 $machine $big
  done
  slope 900 100100
  curve "transformer, no two layers equal, 8 devices, checkpoint and plan" operators
  for n in 8 83 833 8334; do
    graph "differ$n" transformer "$n" different
    # shellcheck disable=SC2086 # words
    point $((n * 12)) search "$work/differ$n.json" --device-num 8 $machine $big
  done
  slope 900 100100
  for mode in dynamic_programming recursive_programming; do
    curve "chain of 1,000, $mode" devices
    for n in 8 64 512 4096 32768 65536; do
      # shellcheck disable=SC2086 # words
      point "$n" search "$work/chain1000.json" --device-num "$n" $machine --search-mode $mode
    done
    slope 8 65536
  done
}

# counts of one run: functions whose instructions, those called included, are a phase.
count() {
  text=$1
  shift
  valgrind -q --tool=callgrind --callgrind-out-file="$work/callgrind" "$planner" "$@" -q --jobs 1 \
    -o "$out/net.ckpt" --plan-out "$out/plan.json" >/dev/null 2>&1
  callgrind_annotate --inclusive=yes --threshold=100 "$work/callgrind" | sed 's/,//g' |
    awk -v text="$text" '
      /PROGRAM TOTALS/ { total = $1 }
      { for (i = 2; i <= NF; i++) { sub(/^.*:/, "", $i); if (!($i in seen)) seen[$i] = $1 } }
      function m(name) {
        if (!(name in seen)) {
          print "scale.sh: no function " name > "/dev/stderr"
          bad = 1
        }
        return seen[name] / 1e6
      }
      END {
        printf "%-26s %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f\n", text,
          total / 1e6, m("ap_json_parse"), m("ap_graph_load"), m("ap_table_make"),
          m("ap_dp_solve"), m("ap_recursive_plan"), m("ap_plan_sketch"), m("ap_verify"),
          m("ap_emit_plan_json")
        exit bad
      }'
}

counts() {
  printf '%-26s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n' "instructions, millions" all JSON graph \
    table engine recurse plans verify writing
  for n in 100 1000 10000; do
    graph "chain$n" chain "$n"
    # shellcheck disable=SC2086 # words
    count "chain of $n, 8" search "$work/chain$n.json" --device-num 8 $machine
  done
  # shellcheck disable=SC2086 # words
  count "chain of 1000, 1024" search "$work/chain1000.json" --device-num 1024 $machine
  for n in 24 96 1000; do
    graph "layers$n" transformer "$n"
    # shellcheck disable=SC2086 # words
    count "transformer of $n, 8" search "$work/layers$n.json" --device-num 8 $machine
  done
  graph differ96 transformer 96 different
  # shellcheck disable=SC2086 # words
  count "96 layers, different, 8" search "$work/differ96.json" --device-num 8 $machine
}

# phase TEXT ARGUMENT...: the phases of one run, those of one name together, and its work.
phase() {
  echo "$1"
  shift
  status=0
  # shellcheck disable=SC2086 # words
  $cores "$planner" "$@" -v --max-input 1GB -o "$out/net.ckpt" --plan-out "$out/plan.json" \
    >/dev/null 2>"$work/messages" || status=$?
  sed -nE 's/^autopar-plan: (.*): ([0-9.]+) ([mun]?)s, ([0-9.]+) ([KMG]?)i?B held$/\2 \3 \4 \5 \1/p' \
    "$work/messages" | sed -E 's/^([0-9.]+)  /\1 - /; s/^([0-9.]+ . [0-9.]+)  /\1 - /' | awk '
    BEGIN { unit["-"] = 1; unit["m"] = 1e-3; unit["u"] = 1e-6; unit["n"] = 1e-9
      size["-"] = 1 / 1048576; size["K"] = 1 / 1024; size["M"] = 1; size["G"] = 1024 }
    { s = $1 * unit[$2]; held = $3 * size[$4]; $1 = $2 = $3 = $4 = ""; sub(/^ */, "")
      if (!($0 in seconds)) name[++n] = $0
      seconds[$0] += s; all += s
      if (held > most[$0]) most[$0] = held; if (held > peak) peak = held }
    END {
      for (i = 1; i <= n; i++) printf "  %-44s %9.3f s %7d MiB\n", name[i], seconds[name[i]], most[name[i]]
      printf "  %-44s %9.3f s %7d MiB\n", "all", all, peak }'
  sed -n 's/^  "work": \([0-9]*\),*$/  work \1/p' "$out/plan.json"
  [ "$status" -eq 0 ] || echo "  exit $status"
}

phases() {
  graph chain10000 chain 10000
  graph layers1000 transformer 1000
  graph differ96 transformer 96 different
  # shellcheck disable=SC2086 # words
  {
    phase "chain of 10,000, 1,024 devices" search "$work/chain10000.json" --device-num 1024 $machine
    phase "transformer of 1,000 layers, 8 devices" search "$work/layers1000.json" \
      --device-num 8 $machine
    phase "96 different layers, 8 devices" search "$work/differ96.json" --device-num 8 $machine
    phase "GPT-3 175B, 1,024 devices, 80 GB" search models/gpt3_175b.json --device-num 1024 \
      --devices-per-server 8 --chip a100-80 --batch 1536 --micro-batches 12 \
      --enable-parallel-optimizer
  }
}

sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c
case $what in
cases | curves | counts | phases) $what ;;
all)
  cases
  curves
  ;;
*)
  echo "scale.sh: $what: cases, curves, counts or phases is expected" >&2
  exit 2
  ;;
esac
