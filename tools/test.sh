#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh: everything that must hold before a change goes in; below 20 minutes on two cores.
# Three builds, which between them cover both compilers, -O0 to -O3 and the sanitizers, must write
# the same bytes. The last line is "N passed, N failed".
set -u
export XDG_CONFIG_HOME=/none # defaults of the site that the tests run at are not the tests'
cd "$(dirname "$0")/.." || exit 2

# shellcheck source=tools/packages.sh
. tools/packages.sh
# shellcheck source=tools/build.sh
. tools/build.sh

# shellcheck disable=SC2086 # words
packages_need $packages_test

passed=0
failed=0

count() { # RESULT DIR: tests of the last run in DIR with this result
  grep -c "\"result\": \"$1\"" "$2/meson-logs/testlog.json" 2>/dev/null || true
}

add_results() { # DIR
  ok=$(($(count OK "$1") + $(count EXPECTEDFAIL "$1")))
  all=$(count '[A-Z]*' "$1")
  passed=$((passed + ok))
  failed=$((failed + all - ok))
}

single() { # WHAT COMMAND...: one test outside meson
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

suites() { # DIR [MESON_TEST_OPTION]...
  dir=$1
  shift
  rm -f "$dir/meson-logs/testlog.json"
  meson test -C "$dir" --no-rebuild --print-errorlogs "$@" </dev/null
  add_results "$dir"
}

build() { # DIR COMPILER [MESON_OPTION]...
  echo
  echo "== $*"
  before=$failed
  single "$1 is configured" build_setup "$@" -Dwerror=true
  single "$1 is built without a warning" ninja -C "$1"
  [ "$failed" -eq "$before" ]
}

if build build-gcc gcc -Dbuildtype=release; then
  suites build-gcc --suite lint --suite unit --suite prop --suite exec --suite golden \
    --suite whole
fi
if build build-clang clang -Dbuildtype=debug -Dbench=false; then
  suites build-clang --suite unit
fi
export CK_FORK=no AP_QUICK=1 AP_CASES="${AP_CASES:-10}"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Lines, for a report, without the rest of -g, which costs a quarter of the build; and without two kinds of checks, which
# cost as much: what they find, the address sanitizer or the processor does.
if build build-asan gcc -Doptimization=1 "-Dc_args=-g1 -fno-sanitize=null,object-size" \
  -Db_sanitize=address,undefined -Db_lundef=false -Dbench=false; then
  # Frames on the heap, which show a use after return, cost a fifth of the long computations: for unit tests alone.
  ASAN_OPTIONS=detect_leaks=1 suites build-asan --timeout-multiplier 4 --suite prop --suite exec --suite golden \
    --no-suite more
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
  suites build-asan --timeout-multiplier 4 --suite unit --no-suite more
fi

echo
single "all builds write the same bytes, whatever the jobs, locale and folder" \
  sh tools/determinism.sh build-gcc/src/cli/autopar-plan build-clang/src/cli/autopar-plan \
  build-asan/src/cli/autopar-plan

echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
