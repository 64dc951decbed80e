#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: ci.sh PROGRAM SOURCE_ROOT
# The script in docs/ci.md, taken out of it, does what the document says, in a repository with two
# networks; the commands of its workflow are a shell's.
set -eu
unset RANK_TABLE_FILE AUTOPAR_PLAN_MODELS GITHUB_STEP_SUMMARY || true
export LC_ALL=C
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/repository"
ln -s "$program" "$work/bin/autopar-plan"
export PATH="$work/bin:$PATH" HOME="$work" GIT_CONFIG_NOSYSTEM=1
cd "$work/repository"
failed=0

block() { # LANGUAGE: the first block of it in the document
  awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } /^```/ && on { exit } on' "$source/docs/ci.md"
}

script() { # CODE WHAT [ARGUMENT]: the script must end with CODE
  expected=$1
  what=$2
  shift 2
  code=0
  sh plans.sh "$@" > out 2> err || code=$?
  [ "$code" = "$expected" ] && return
  echo "FAILED: $what: exit code $code, not $expected"
  sed 's/^/  /' out err
  failed=1
}

has() { # FILE TEXT
  grep -qF -- "$2" "$1" && return
  echo "FAILED: no \"$2\" in $1:"
  sed 's/^/  /' "$1"
  failed=1
}

commit() {
  git add graphs plans rank_table.json plans.sh
  git -c user.name=ci -c user.email=ci@example.invalid commit -q -m "$1"
}

inodes() {
  find build -type f ! -name summary.md -exec ls -i {} + | LC_ALL=C sort
}

plan() { # NAME [OPTION...]
  name=$1
  shift
  autopar-plan search "graphs/$name.json" rank_table.json -q --work-limit 10000000 "$@" \
    --plan-out "plans/$name.plan.json"
}

block sh > plans.sh
head -n 1 plans.sh | grep -q '^#!/bin/sh$'
mkdir graphs plans
cp "$source/models/multiple_mix.json" "$source/models/wide_deep.json" graphs
cp "$source/models/topo/ascend910_8p.json" rank_table.json
plan multiple_mix
plan wide_deep
git init -q .
commit plans
base=$(git rev-parse HEAD)

# All is as it should be; a second run changes no file.
script 0 'as committed'
has out 'plans/wide_deep.plan.json: a plan: still right for graphs/wide_deep.json and rank_table.json'
inodes > before
touch mark
script 0 'once more'
inodes | cmp - before
[ -z "$(find build -name '*.json' -newer mark)" ]
[ -z "$(git status --porcelain graphs plans)" ]
script 0 'nothing since' "$base"
has build/summary.md '**no difference**'

# Another network: its plan is no longer right, one that is made anew is, and slower beyond the limit.
sed 's/512/1000/g' graphs/multiple_mix.json > graphs/new
mv graphs/new graphs/multiple_mix.json
script 1 'another network'
has out 'plans/multiple_mix.plan.json: a plan: no longer right for graphs/multiple_mix.json'
has out 'result of [32,1000]'
plan multiple_mix
script 1 'a slower network' "$base"
has err 'step_time>+2%: step time'
has build/summary.md '### `multiple_mix.plan.json` to `multiple_mix.plan.json`'
has build/summary.md 'shape [512,784]'
commit 'a larger network'
script 0 'since then' HEAD

# A plan that is right, but that a search betters.
plan multiple_mix --hybrid dp=8
script 1 'a plan that is out of date'
has err 'step_time<-2%: step time'
git checkout -q plans

# Plans in git, as text.
textconv=$(sed -n "s/^    git config diff.autopar-plan.textconv '\(.*\)'/\1/p" "$source/docs/ci.md")
attributes=$(sed -n 's/^    \(.* diff=autopar-plan\)$/\1/p' "$source/docs/ci.md")
echo "$attributes" > .gitattributes
git config diff.autopar-plan.textconv "$textconv"
plan multiple_mix --hybrid dp=8
git diff plans > out
has out '-search          dynamic_programming, feasible'
has out '+search          given, given'
[ "$(grep -c '^[-+]' out)" -lt 60 ]
git checkout -q plans
rm .gitattributes

# Faults are no findings.
echo '{' > graphs/wide_deep.json
script 2 'a file that is malformed'
git checkout -q graphs
rm plans/wide_deep.plan.json
script 2 'a plan that is missing'

# The workflow: as YAML where that can be read, its commands by the shell.
block yaml > workflow.yml
grep -qF 'sh plans.sh "origin/$GITHUB_BASE_REF"' workflow.yml
if python3 -c 'import yaml' 2> err; then
  python3 -c '
import sys, yaml
for step in yaml.safe_load(open("workflow.yml"))["jobs"]["plans"]["steps"]:
    print(step.get("run", ":"))' | sh -n
fi
# shellcheck source=tools/packages.sh
. "$source/tools/packages.sh"
for package in $packages_build; do
  has workflow.yml "$package"
done
exit $failed
