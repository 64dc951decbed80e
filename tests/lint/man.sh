#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: man.sh SOURCE_ROOT
# autopar-options(7) names every option with its letter, autopar-plan(1) every command, which has a page of its own, and
# every exit code, the page of the library every call; pages are clean for mandoc where that is installed.
set -eu
cd "$1"
page=man/autopar-options.7
status=0

miss() {
  echo "$page: $1"
  status=1
}

rows() { # field and letter of the rows of settings.def
  sed -nE 's/^(FLAG|INT|NUM|SIZE|AMOUNT|PRICE|TIME|INTS|CHOICE|TEXT|LISTS|DICT|INPUT|OUTPUT|FOLDER)\(([a-z_0-9]+), ([^,]+), .*/\2 \3/p' \
    src/api/settings.def
}

count=0
while read -r field letter; do
  count=$((count + 1))
  option=$(printf '%s' "$field" | tr _ -)
  grep -qE "^\.It (Fl [a-z] , )?Fl \\\\-(\[no-\])?$option( |\$)" man/autopar-*.[17] ||
    miss "option --$option is missing"
  case $letter in
  "'"?"'")
    c=$(printf '%s' "$letter" | tr -d "'")
    grep -qE "^\.It Fl $c , Fl " man/autopar-*.[17] || miss "letter -$c is missing"
    ;;
  esac
done <<END
$(rows)
END
[ "$count" -ge 100 ] || miss "only $count rows of settings.def could be read"

page=man/autopar-plan.1
need() { # WHAT PATTERN, for each line of standard input
  seen=0
  while read -r word; do
    seen=$((seen + 1))
    grep -qE "^\.It $2$word( |\$)" "$page" || miss "$1 $word is missing"
  done
  [ "$seen" -ge 7 ] || miss "only $seen rows of $1 could be read"
}
commands=$(sed -n 's/^COMMAND(\([a-z]*\),.*/\1/p' src/cli/commands.def)
need command 'Cm ' <<END
$commands
END
need 'exit code' '' <<END
$(sed -nE 's/^	X\([A-Z]+, ([0-9]+), .*/\1/p' include/autopar/status.h)
END
for command in $commands; do
  [ -s "man/autopar-plan-$command.1" ] || miss "autopar-plan-$command.1 is missing"
done
for file in man/*.[1-9]; do
  grep -qF "'${file#man/}'" man/meson.build || miss "man/meson.build does not install ${file#man/}"
done

page=man/autopar.3
while read -r call; do
  grep -qE "^\.Fn $call( |\$)" "$page" || miss "$call is missing"
done <<END
$(sed -nE 's/^AUTOPAR_API .*(autopar_[a-z_]+)\(.*/\1/p' include/autopar/autopar.h)
END

# Pages that are not installed cannot be found by mandoc.
command -v mandoc > /dev/null || miss "mandoc is missing"
if mandoc -Tlint -W style man/*.[1-9] 2> /dev/null | grep -v 'referenced manual not found'; then
  status=1
fi
exit $status
