#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: words.sh SOURCE_ROOT
# No file of the project puts things off (the usual marks), and none names a place of one machine.
set -eu
cd "$1"
marks='TO''DO|FIX''ME|XX''X|HA''CK|WI''P|TB''D'
places='/(ho''me|ro''ot|wo''rk|Us''ers|m''nt|o''pt)/[A-Za-z0-9._-]+'
status=0
list() {
  if [ -d .git ] || [ -f .git ]; then
    git ls-files -co --exclude-standard
  else
    find . -type f -not -path './build*' | sed 's|^\./||'
  fi | LC_ALL=C sort
}
list | while IFS= read -r f; do
  [ -f "$f" ] && printf '%s\n' "$f"
done | {
  files=$(cat)
  IFS='
'
  set -f
  # shellcheck disable=SC2086
  if grep -InE "(^|[^A-Za-z])($marks)([^A-Za-z]|\$)" $files; then
    echo 'marks of unfinished work'
    status=1
  fi
  # shellcheck disable=SC2086
  if grep -InE "(^|[^A-Za-z0-9_./-])$places" $files; then
    echo 'paths of one machine'
    status=1
  fi
  exit $status
}
