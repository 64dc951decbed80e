#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: sizes.sh SOURCE_ROOT
# No source file is longer than 600 lines, no line of src longer than 110 columns (the aim is 100), no
# function longer than 60 lines; every source file names its licence.
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
    FNR == 1 { start = 0; licence = 0; is_c = FILENAME ~ /\.[ch]$|\.def$/ }
    FNR == 601 { fail(FNR, "more than 600 lines") }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { licence = 1 }
    FNR == 3 && !licence { fail(1, "no licence line") }
    is_c && FILENAME !~ /^tests/ && length($0) > 50 && columns($0) > 110 { fail(FNR, "more than 110 columns") }
    is_c && /[ \t]$/ { fail(FNR, "blank at the end of the line") }
    is_c && /^{$/ { start = FNR }
    is_c && /^}/ {
      if (start && FNR - start > 60)
        fail(start, "function of more than 60 lines")
      start = 0
    }
    END { exit bad }'
