#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: run.sh PROGRAM SOURCE_ROOT GROUP [CASE...]
# Runs the cases of tests/golden/GROUP, all or those named. A case is a folder:
#   cmd           shell commands; PROGRAM is on the path as autopar-plan
#   out err exit  what they must print and end with
#   files/        files that must then be there, whole; no others may have come or changed
#   slow          an empty file: where AP_QUICK is set, for programs with sanitizers, the case is left out
#   needs         shell commands; where they fail, the case is left out: the machine or the build cannot do it. A tool
#                 that is missing is no such thing: packages.sh names it
#   others        inputs, copied to the scratch folder that the commands run in
# In cmd, `try COMMAND...` shows a command, all that it prints, and its exit code; $models and $source
# are folders of the source. AP_UPDATE=1 rewrites the expectations.
set -u
unset RANK_TABLE_FILE NO_COLOR AUTOPAR_PLAN_MODELS
XDG_CONFIG_HOME=/none # no defaults of the site that the tests run at
export XDG_CONFIG_HOME
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
models=$source/models
group=$source/tests/golden/$3
shift 3
export source models
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$program" "$work/bin/autopar-plan"
cat > "$work/bin/try" <<'END'
#!/bin/sh
echo "\$ $*"
"$@" 2>&1
echo "-> $?"
END
chmod +x "$work/bin/try"
PATH=$work/bin:$PATH
failed=0
ran=0

inputs() { # CASE: its input files
  (cd "$1" && find . ! -name . -prune ! -name cmd ! -name slow ! -name needs ! -name out ! -name err ! -name exit \
    ! -name files | LC_ALL=C sort)
}

run() { # CASE
  rm -rf "$work/new" "$work/dir"
  mkdir "$work/new" "$work/dir"
  for f in $(inputs "$1"); do
    cp -R "$1/$f" "$work/dir/"
  done
  (cd "$work/dir" && exec sh "$1/cmd" </dev/null) > "$work/new/out" 2> "$work/new/err"
  echo $? > "$work/new/exit"
  for f in $(inputs "$1"); do # inputs that are as they were do not count
    if cmp -s "$1/$f" "$work/dir/$f" || [ -d "$1/$f" ]; then
      rm -rf "$work/dir/${f:?}"
    fi
  done
  [ -z "$(ls -A "$work/dir")" ] || mv "$work/dir" "$work/new/files"
}

expect() { # CASE: the expectations alone
  rm -rf "$work/old"
  mkdir "$work/old"
  for f in out err exit files; do
    [ ! -e "$1/$f" ] || cp -R "$1/$f" "$work/old/"
  done
}

update() { # CASE
  for f in out err exit files; do
    rm -rf "${1:?}/$f"
    [ ! -e "$work/new/$f" ] || cp -R "$work/new/$f" "$1/"
  done
}

if [ $# -eq 0 ]; then
  cd "$group" || exit 2
  set -- *
fi
for name in "$@"; do
  case=$group/$name
  [ -f "$case/cmd" ] || continue
  if [ -f "$case/needs" ] && ! sh "$case/needs" </dev/null >/dev/null 2>&1; then
    echo "left out: $name"
    continue
  fi
  [ ! -e "$case/slow" ] || [ -z "${AP_QUICK:-}" ] || continue
  ran=$((ran + 1))
  run "$case"
  if [ -n "${AP_UPDATE:-}" ]; then
    update "$case"
    continue
  fi
  expect "$case"
  if ! diff -r -u "$work/old" "$work/new" > "$work/diff"; then
    echo "FAILED: $name"
    sed 's/^/  /' "$work/diff"
    failed=$((failed + 1))
  fi
done
echo "$ran cases, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
