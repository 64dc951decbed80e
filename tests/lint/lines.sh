#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: lines.sh SOURCE_ROOT
# No line of src is longer than 110 columns (the aim is 100), none ends in a blank; every source file names its
# licence.
set -eu
cd "$1"
find src include tests tools bench docs man proto -type f \( -name '*.[ch]' -o -name '*.def' \
  -o -name '*.sh' -o -name '*.py' -o -name '*.proto' -o -name meson.build \) | LC_ALL=C sort |
  xargs awk '
    function fail(line, why) { print FILENAME ":" line ": " why; bad = 1 }
    function columns(s,  i, n) {
      gsub(/[\200-\277]/, "", s)
      for (i = 1; i <= length(s); i++)
        n = substr(s, i, 1) == "\t" ? n + 8 - n % 8 : n + 1
      return n
    }
    FNR == 1 { licence = 0; is_c = FILENAME ~ /\.[ch]$|\.def$/ }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { licence = 1 }
    FNR == 3 && !licence { fail(1, "no licence line") }
    is_c && FILENAME !~ /^tests/ && length($0) > 50 && columns($0) > 110 { fail(FNR, "more than 110 columns") }
    is_c && /[ \t]$/ { fail(FNR, "blank at the end of the line") }
    END { exit bad }'
