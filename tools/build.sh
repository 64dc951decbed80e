# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts, from the root of the project: build folders.
# shellcheck shell=sh

# build_setup DIR COMPILER [MESON_OPTION]...: configures DIR unless that was done before.
build_setup() {
  dir=$1
  compiler=$2
  shift 2
  [ -f "$dir/build.ninja" ] && return 0
  rm -rf "$dir"
  CC=$compiler meson setup "$dir" "$@"
}

# build_quietly COMMAND...: its output only when it fails.
build_quietly() {
  if output=$("$@" 2>&1 </dev/null); then
    return 0
  fi
  printf '%s\n' "$output" >&2
  return 1
}
