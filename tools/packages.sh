# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts: Debian packages, and packages_need to have them there.
# shellcheck shell=sh disable=SC2034 # the lists are for those who source this

packages_build="gcc libc6-dev meson ninja-build pkgconf libcjson-dev libgraphviz-dev nettle-dev
  libprotobuf-c-dev protobuf-c-compiler libglpk-dev libyaml-dev libexpat1-dev"
packages_demo="$packages_build graphviz"
packages_test="$packages_demo check clang fish fonts-dejavu-core fonts-dejavu-extra git mandoc mypy
  protobuf-compiler python3 python3-jsonschema python3-numpy python3-yaml shellcheck valgrind zsh"
packages_deb="$packages_build build-essential debhelper dh-python fakeroot git lintian man-db python3-all"
packages_arm64="$packages_build gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
packages_long="$packages_test chromium chromium-driver"

# packages_missing PACKAGE...: prints those that are not installed.
packages_missing() {
  for package in "$@"; do
    case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) in
    ii*) ;;
    *) printf ' %s' "$package" ;;
    esac
  done
}

# packages_need PACKAGE...: installs what is missing where that can be done without asking, else
# names it and leaves with 2. Without dpkg nothing can be known: the build will tell.
packages_need() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  missing=$(packages_missing "$@")
  [ -n "$missing" ] || return 0
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo -n"
    if ! $as_root true >/dev/null 2>&1; then
      echo "These packages are needed; install them and start again:" >&2
      echo "    sudo apt-get install$missing" >&2
      exit 2
    fi
  fi
  echo "installing$missing"
  # shellcheck disable=SC2086 # words
  if ! { $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends $missing; } >/dev/null </dev/null; then
    echo "apt-get could not install$missing" >&2
    exit 2
  fi
}
