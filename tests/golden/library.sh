#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: library.sh PROGRAM BUILD_ROOT SOURCE_ROOT COMPILER...
# What `meson install` leaves is a library that programs are built with: examples/plan.c has at most 60 lines,
# prints the step time that the program predicts, and leaves no memory behind; two threads that plan two models
# at once give the bytes of the program. The library exports autopar_ names only.
set -eu
unset RANK_TABLE_FILE AUTOPAR_PLAN_MODELS
export LC_ALL=C
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
build=$(cd "$2" && pwd)
source=$(cd "$3" && pwd)
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { # WHAT
  echo "FAILED: $1"
  exit 1
}

meson install -C "$build" --no-rebuild --quiet --destdir "$work/root" || fail "meson install"
pc=$(find root -name autopar.pc)
[ -n "$pc" ] || fail "no autopar.pc"
PKG_CONFIG_PATH=$work/$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$work/root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
library=$(dirname "$(find "$work/root" -name libautopar.so)")
LD_LIBRARY_PATH=$library
export LD_LIBRARY_PATH
others=$(nm -D --defined-only "$library/libautopar.so" | awk '$3 !~ /^(autopar_|__|_)/ { print $3 }')
[ -z "$others" ] || fail "exported, too: $others"

[ "$(wc -l < "$source/examples/plan.c")" -le 60 ] || fail "examples/plan.c has more than 60 lines"
for client in examples/plan.c tests/golden/library_threads.c; do
  # shellcheck disable=SC2046 # words
  "$@" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror "$source/$client" \
    $(pkg-config --cflags --libs autopar) -pthread -o "$(basename "$client" .c)" || fail "$client is not built"
done

reference() { # GRAPH NUMBER
  "$program" search "$source/models/$1.json" --device-num 8 --chip ascend910b -o "$2.ckpt" --plan-out "$2.plan.json" \
    --dot-out "$2.dot" > all.txt || fail "search $1"
  # What `plan` would gain is told by the program alone, in the last line.
  sed -e '/^$/{N;/\nplan: /d' -e '}' all.txt > "$2.txt"
  rm all.txt
}
mkdir by_program by_library
cd by_program
reference multiple_mix 0
reference wide_deep 1
cd ..

step_time() { # PLAN
  sed -n '/"prediction"/,$s/.*"step_time_s": \([^,}]*\).*/\1/p' "$1" | head -n 1
}
same() { # EXAMPLE'S OUTPUT
  [ -s "$1" ] && awk -v a="$(cat "$1")" -v b="$(step_time by_program/0.plan.json)" 'BEGIN { exit a + 0 != b + 0 }'
}
./plan "$source/models/multiple_mix.json" 8 > time.out || fail "the example"
same time.out || fail "the example prints $(cat time.out), the program $(step_time by_program/0.plan.json)"

./library_threads 8 "$source/models/topo/ascend910_8p.json" by_library "$source/models/multiple_mix.json" "$source/models/wide_deep.json" || fail "threads"
for file in by_program/*; do
  cmp "$file" "by_library/${file#*/}" || fail "threads give another ${file#*/}"
done

# What has sanitizers does not run in it.
if ! nm "$library/libautopar.so" | grep -q ' __asan\| __tsan\| __ubsan'; then
  command -v valgrind > /dev/null || fail "valgrind is missing"
  valgrind -q --error-exitcode=9 --leak-check=full ./plan "$source/models/multiple_mix.json" 8 > time.out ||
    fail "valgrind"
  same time.out || fail "under valgrind the example prints $(cat time.out)"
fi
