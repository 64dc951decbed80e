#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: headers.sh SOURCE_ROOT COMPILER...
# Every header compiles alone, and twice; and all of them together, so that no tag or macro means two things.
set -eu
cd "$1"
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
for h in $(find src include -name '*.h' | LC_ALL=C sort); do
  name=${h#src/}
  name=${name#include/}
  printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$name" "$name" > "$dir/alone.c"
  "$@" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -fsyntax-only -Isrc -Iinclude \
    "$dir/alone.c" || {
    echo "$h does not compile alone"
    status=1
  }
done
for h in $(find src include -name '*.h' | LC_ALL=C sort); do
  name=${h#src/}
  echo "#include \"${name#include/}\""
done > "$dir/together.c"
"$@" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -fsyntax-only -Isrc -Iinclude "$dir/together.c" || {
  echo "the headers do not compile together"
  status=1
}
exit $status
