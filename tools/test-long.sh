#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test-long.sh: what takes hours: the property tests with 100,000 cases each (AP_CASES), checkpoints
# and pipelines of every bundled model evaluated, plans held against all grids and hybrids and published plans,
# a profile calibrated twice, reports in a browser, whole runs under valgrind, damaged inputs for a program with
# sanitizers, and 1,000,000 runs (AP_FUZZ_RUNS) of libFuzzer for each target of tests/fuzz. The
# last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2

# shellcheck source=tools/packages.sh
. tools/packages.sh
# shellcheck source=tools/build.sh
. tools/build.sh

# shellcheck disable=SC2086 # words
packages_need $packages_long

mutants=${AP_MUTANTS:-2000} # of each file
fuzz_runs=${AP_FUZZ_RUNS:-1000000}
fuzz_targets='chip ckpt config dump graph hosts launch log measured model onnx pipeline plan problem rank_table server'
passed=0
failed=0

single() { # WHAT COMMAND...
  what=$1
  shift
  if build_quietly "$@"; then
    echo "ok: $what"
    passed=$((passed + 1))
  else
    echo "FAILED: $what"
    failed=$((failed + 1))
  fi
}

# watched ARGUMENT...: a run under valgrind, with the status that it would have without.
watched() {
  valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    build-gcc/src/cli/autopar-plan "$@"
}

watched_runs() {
  watched search models/multiple_mix.json models/topo/ascend910_8p.json -o "$work/mix.ckpt" \
    --plan-out "$work/mix.plan.json" --problem-out "$work/mix.problem.json" \
    --dot-out "$work/mix.svg" &&
    watched evaluate models/multiple_mix.json models/topo/ascend910_8p.json \
      --strategy "$work/mix.ckpt" &&
    watched render "$work/mix.plan.json" --dot-out "$work/again.dot" &&
    watched render "$work/mix.plan.json" --against "$work/mix.plan.json" --report "$work/mix.html" &&
    watched convert "$work/mix.ckpt" "$work/mix.json" --graph models/multiple_mix.json &&
    watched solve "$work/mix.problem.json" --write-lp "$work/mix.lp" &&
    watched check "$work"/*.json "$work/mix.ckpt" &&
    watched diff "$work/mix.plan.json" "$work/mix.ckpt" &&
    watched search models/gpt3_13b_flash.json --device-num 64 --chip ascend910b --memory 30GB \
      --micro-batches 8 --enable-parallel-optimizer --jobs 2 --json
}

# A profile with more than fifty shipped rows is fitted twice, to the last bit.
calibrated_twice() {
  for run in 1 2; do
    AUTOPAR_BUILD=build-gcc tools/calibrate data/fidelity.csv --software llm-foundry-fsdp --free launch_s \
      --leave-one-out --output "$work/fitted.$run.json" >"$work/fitted.$run.md" || return 1
  done
  cmp "$work/fitted.1.md" "$work/fitted.2.md" && cmp "$work/fitted.1.json" "$work/fitted.2.json"
}

# survives FILE COMMAND...: the program runs COMMAND on damaged copies of FILE and must each time
# end as documented.
survives() {
  file=$1
  shift
  seed=1
  bad=0
  while [ "$seed" -le "$mutants" ]; do
    build-asan/tools/mutate "$seed" <"$file" >"$work/${file##*/}"
    build-asan/src/cli/autopar-plan "$@" "$work/${file##*/}" >"$work/out" 2>&1
    case $? in
    0 | 1 | 2 | 3 | 4 | 5 | 7) ;;
    *)
      echo "seed $seed of $file:"
      tail -5 "$work/out"
      bad=1
      ;;
    esac
    seed=$((seed + 1))
  done
  return $bad
}

# fuzz NAME [SAMPLES]...: what it finds is left in build-fuzz, to become a file of tests/fuzz/corpus/NAME. Leaks are for
# programs that end to tell: the spare chunks of an arena are listed in mapped memory, where the sanitizer does not look.
fuzz() {
  name=$1
  shift
  mkdir -p "build-fuzz/corpus/$name"
  build-fuzz/tests/fuzz/fuzz_"$name" -seed=1 -runs="$fuzz_runs" -timeout=10 -rss_limit_mb=4096 \
    -detect_leaks=0 -max_len=24000 -len_control=0 -artifact_prefix="$PWD/build-fuzz/$name-" \
    "$PWD/build-fuzz/corpus/$name" "$PWD/tests/fuzz/corpus/$name" "$@"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

single "build-gcc is configured" build_setup build-gcc gcc -Dbuildtype=release -Dwerror=true
single "build-gcc is built" ninja -C build-gcc
single "build-asan is configured" build_setup build-asan gcc -Dbuildtype=debugoptimized \
  -Db_sanitize=address,undefined -Db_lundef=false -Dbench=false -Dwerror=true
single "build-asan is built" ninja -C build-asan

single "whole runs under valgrind" watched_runs
rm "$work"/*
single "a profile calibrated twice" calibrated_twice
single "reports in a browser" python3 tests/golden/report_browser.py build-gcc/src/cli/autopar-plan .
single "files for frameworks, of 1,000 random plans" env AP_CASES=1000 \
  python3 tests/golden/launch_random.py build-gcc/src/cli/autopar-plan .
export AP_CASES="${AP_CASES:-100000}"
for devices in 8 16 64; do
  single "checkpoints stand for their plans on $devices devices" \
    sh tests/golden/exact.sh build-gcc/src/cli/autopar-plan . "$devices"
done
single "pipelines of every model" sh tools/pipelines.sh build-gcc/src/cli/autopar-plan
single "the fastest that is known is written" sh tools/never-worse.sh build-gcc/src/cli/autopar-plan
single "the fastest of forty small runs" sh tools/never-worse.sh build-gcc/src/cli/autopar-plan sample
single "hybrids of the named grid" sh tools/grid.sh build-gcc/src/cli/autopar-plan build-gcc/bench/grid all
single "what is decided for 1,000 small graphs" env AP_CASES=1000 AP_MOST=5000 \
  python3 tests/golden/decided_whole.py build-gcc/src/cli/autopar-plan
single "all bundled models renamed and reordered" \
  python3 tests/golden/reordered.py build-gcc/src/cli/autopar-plan models
single "plans that people published" env AP_CASES=20 \
  python3 tests/golden/published.py build-gcc/src/cli/autopar-plan . all
for seed in 1 2 3 4 5; do
  single "changed plans are noticed, seed $seed" env AP_SEED="$seed" AP_CASES=1 AP_SHARE=1 \
    python3 tests/golden/plan_faults.py build-gcc/src/cli/autopar-plan .
done
single "$AP_CASES cases of each property" meson test -C build-gcc --no-rebuild \
  --print-errorlogs --timeout-multiplier 0 --suite prop --suite exec

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
single "what tools/test.sh leaves out with sanitizers" env AP_CASES=25 CK_FORK=no meson test -C build-asan \
  --no-rebuild --print-errorlogs --timeout-multiplier 8 --suite more --suite prop --suite exec --suite golden
single "pipelines of small models with sanitizers" sh tools/pipelines.sh \
  build-asan/src/cli/autopar-plan multiple_mix wide_deep
build-asan/src/cli/autopar-plan search models/multiple_mix.json models/topo/ascend910_8p.json -q \
  -o "$work/mix.ckpt" --plan-out "$work/mix.plan.json" --problem-out "$work/mix.problem.json"
mkdir "$work/kept"
mv "$work"/mix.* "$work/kept"
for file in models/multiple_mix.json models/topo/ascend910_8p.json models/topo/ascend910_16p.json \
  chips/ascend910b3.json "$work/kept/mix.ckpt" "$work/kept/mix.plan.json"; do
  single "$mutants damaged copies of ${file##*/}, checked" survives "$file" check
done
single "$mutants damaged dumps, imported" survives \
  tests/dumps/mlp_step_auto_parallel_begin_0031.ir import
single "$mutants damaged graphs, searched" survives models/multiple_mix.json search \
  --device-num 8 --chip ascend910a
single "$mutants damaged plans, compared" survives "$work/kept/mix.plan.json" diff \
  tests/golden/cli/diff/old.json
single "$mutants damaged plans, reported" survives "$work/kept/mix.plan.json" render --report "$work/kept/page.html"
single "$mutants damaged problems, solved" survives "$work/kept/mix.problem.json" solve

# The packages of Debian, and another processor. Both are left out where they cannot be had.
if [ "$(id -u)" -eq 0 ]; then
  single "packages are built, installed, used and purged" sh tools/deb.sh
fi
if apt-cache policy libcjson-dev:arm64 2>/dev/null | grep -q 'Candidate: [0-9]'; then
  single "plans are the same bytes on arm64" sh tools/arm64.sh
fi

if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
  clang -fsanitize=fuzzer -x c - -o "$work/fuzz" 2>/dev/null; then
  single "build-fuzz is configured" build_setup build-fuzz clang -Dbuildtype=debugoptimized -Dfuzz=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dbench=false -Dwerror=true
  for name in $fuzz_targets; do
    samples=
    case $name in
    dump) samples=$PWD/tests/dumps ;;
    hosts) samples=$PWD/tests/topologies/hosts ;;
    onnx) samples=$PWD/tests/onnx ;;
    rank_table) samples=$PWD/tests/bad/rank_table ;;
    server) samples=$PWD/tests/topologies/servers ;;
    esac
    single "fuzz_$name is built" ninja -C build-fuzz "tests/fuzz/fuzz_$name"
    # shellcheck disable=SC2086 # none, or one word
    single "$fuzz_runs runs of libFuzzer on the target $name" fuzz "$name" $samples
  done
else
  echo "left out: libFuzzer, which this clang lacks"
fi

echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
