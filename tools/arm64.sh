#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# arm64.sh [PROGRAM]: the program for arm64, as hosts of Ascend servers are, cross-built, writes under qemu the
# bytes that PROGRAM writes (build-gcc's). Libraries of the other architecture are unpacked, not installed; the
# lists of packages for arm64 must be known to apt, as after `dpkg --add-architecture arm64 && apt-get update`.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tools/packages.sh
. tools/packages.sh
# shellcheck disable=SC2086,SC2154 # words; of packages.sh
packages_need $packages_arm64
program=${1:-build-gcc/src/cli/autopar-plan}
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
models=$PWD/models
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir "$root/deb" "$root/sys"
(cd "$root/deb" && for package in libcjson1 libcjson-dev libgraphviz-dev libcgraph6 libcdt5 libprotobuf-c1 \
  libprotobuf-c-dev libnettle8 libhogweed6 libgmp10 nettle-dev libyaml-0-2 libyaml-dev libexpat1 libexpat1-dev; do
  apt-get download -qq "$package:arm64" 2>/dev/null || {
    echo "no package $package for arm64 here"
    exit 1
  }
done)
for deb in "$root"/deb/*.deb; do
  dpkg-deb -x "$deb" "$root/sys"
done

cat >"$root/cross" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu', '-E', 'LD_LIBRARY_PATH=$root/sys/usr/lib/aarch64-linux-gnu:$root/sys/lib/aarch64-linux-gnu']
[properties]
sys_root = '$root/sys'
pkg_config_libdir = '$root/sys/usr/lib/aarch64-linux-gnu/pkgconfig'
[built-in options]
c_args = ['-isystem', '$root/sys/usr/include']
c_link_args = ['-L$root/sys/usr/lib/aarch64-linux-gnu', '-L$root/sys/lib/aarch64-linux-gnu', '-Wl,-rpath-link,$root/sys/usr/lib/aarch64-linux-gnu:$root/sys/lib/aarch64-linux-gnu']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8'
endian = 'little'
END
rm -rf build-arm64
meson setup build-arm64 --cross-file "$root/cross" -Dtests=false -Dbench=false -Dglpk=disabled -Dwerror=true
ninja -C build-arm64 src/cli/autopar-plan
arm64() {
  qemu-aarch64-static -L /usr/aarch64-linux-gnu \
    -E LD_LIBRARY_PATH="$root/sys/usr/lib/aarch64-linux-gnu:$root/sys/lib/aarch64-linux-gnu" \
    build-arm64/src/cli/autopar-plan "$@"
}

same=0
compare() { # ARGUMENT...
  rm -f "$root"/one.* "$root"/two.*
  "$program" "$@" --plan-out "$root/one.json" >"$root/one.out" 2>&1 || {
    cat "$root/one.out"
    exit 1
  }
  arm64 "$@" --plan-out "$root/two.json" >"$root/two.out" 2>&1 || {
    cat "$root/two.out"
    exit 1
  }
  cmp "$root/one.json" "$root/two.json"
  cmp "$root/one.out" "$root/two.out"
  same=$((same + 1))
}
for model in multiple_mix resnet50 wide_deep bert_large; do
  compare search "$models/$model.json" --device-num 8 --chip ascend910b
done
compare search gpt3_1.3b --device-num 16 --chip ascend910b --enable-parallel-optimizer
compare search "$models/multiple_mix.json" "$models/topo/ascend910_8p.json"
compare search gpt3_13b_flash --device-num 64 --chip ascend910b --micro-batches 8 --pipeline-stages 4 --jobs 2
compare evaluate gpt3_13b --device-num 64 --chip a100-80 --executor megatron --hybrid dp=4,tp=4,pp=4,sp=1
compare plan gpt3_1.3b --device-num 8 --chip h100 --executor megatron
compare plan bert_large --device-num 16 --chip ascend910b --executor mindformers
compare plan mixtral_8x7b --device-num 32 --chip h100 --executor torchtitan --recompute none
echo "ok: $same plans and tables are the same bytes on arm64"
