#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh: the Debian packages, built twice in different folders with the same bytes, accepted by lintian, installed,
# used and purged, which leaves nothing. As root, or with sudo; the last line says that all went well.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
# What is not of Debian, such as another Python, is not seen.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

# shellcheck source=tools/packages.sh
. tools/packages.sh
# shellcheck disable=SC2086 # words
packages_need $packages_deb

as_root=
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { # WHAT
  echo "FAILED: $1"
  exit 1
}

build() { # FOLDER
  mkdir -p "$1/autopar-plan"
  git ls-files -co --exclude-standard | tar cf - -T - | tar xf - -C "$1/autopar-plan"
  (cd "$1/autopar-plan" && dpkg-buildpackage -us -uc -b >"$1/log" 2>&1) || {
    tail -20 "$1/log"
    fail "the build"
  }
}

build "$work/one"
build "$work/another/and/longer"
for deb in "$work"/one/*.deb; do
  cmp "$deb" "$work/another/and/longer/${deb##*/}" || fail "the bytes of ${deb##*/} depend on the folder"
done
lintian --fail-on error,warning "$work"/one/*.changes || fail "lintian"

rm "$work"/one/*-dbgsym_*.deb
before=$(dpkg-query -W | wc -l)
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$work"/one/*.deb >/dev/null
for deb in "$work"/one/*.deb; do
  dpkg -L "$(dpkg-deb -f "$deb" Package)"
done | sort -u >"$work/files"

mkdir "$work/use"
cd "$work/use"
autopar-plan plan gpt3_1.3b --device-num 8 --chip h100 --executor megatron --bundle run >out || fail "plan"
[ -x run/megatron.sh ] || [ -s run/megatron.sh ] || fail "the bundle"
autopar-plan search multiple_mix --device-num 8 --chip ascend910b --search-mode integer_programming -q ||
  fail "the helper for linear programs"
python3 -c 'import autopar; print(autopar.plan("gpt3_1.3b", device_num=8, chip="h100", executor="megatron").step_time_s)' \
  >step || fail "the Python module"
man -w autopar-plan autopar-graph autopar >/dev/null || fail "the manual pages"
bash -c 'source /usr/share/bash-completion/completions/autopar-plan; COMP_WORDS=(autopar-plan sea); COMP_CWORD=1
  compopt() { :; }; _autopar_plan; [[ ${COMPREPLY[*]} == search ]]' || fail "completion"
# shellcheck disable=SC2046 # words
cc "$root/examples/plan.c" $(pkg-config --cflags --libs autopar) -o plan || fail "the example is not built"
./plan "$root/models/multiple_mix.json" 8 >/dev/null || fail "the example"

$as_root env DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq autopar-plan autopar-plan-glpk libautopar0 libautopar-dev \
  python3-autopar >/dev/null
left=$(grep -E 'autopar' "$work/files" | while read -r file; do
  [ ! -e "$file" ] || echo "$file"
done)
[ -z "$left" ] || fail "left behind: $left"
[ "$(dpkg-query -W | wc -l)" -ge "$before" ] || fail "more was purged than was installed"
echo "ok: packages are built twice with the same bytes, installed, used and purged"
