#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: symbols.sh LIBRARY
# Every global symbol of the library starts with ap_ or autopar_, but for those of the generated protobuf code;
# and no symbol is writable data: modules have no state of their own (but for cgraph's hook for messages, which
# is handed no context).
set -eu
nm -g --defined-only "$1" | awk '
  NF == 1 { member = $1 }
  NF == 3 && member !~ /\.pb-c\./ && $3 !~ /^(ap_|autopar_|__asan_|__odr_asan|__gcov|__llvm)/ {
    print "global symbol without ap_ or autopar_: " $3
    bad = 1
  }
  END { exit bad }'
nm -f sysv --defined-only "$1" | awk -F '|' '
  /^Symbols from / { member = $0 }
  $7 ~ /^ *\.(data|bss|tdata|tbss)(\.|$)/ && $7 !~ /^ *\.data\.rel\.ro/ &&
    member !~ /\.pb-c\./ && !(member ~ /dot\.c\.o/ && $1 ~ /^complaint/) && $1 !~ /^(__|\.L|_ZL)/ {
    print "writable data: " $1 " (" member ")"
    bad = 1
  }
  END { exit bad }'
