#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: version.sh SOURCE_ROOT
# The header and the build file name the same version.
set -eu
cd "$1"
header=$(sed -n 's/^#define AP_VERSION "\(.*\)"$/\1/p' include/autopar/version.h)
build=$(sed -n "s/^  version: '\(.*\)',\$/\1/p" meson.build)
if [ -z "$header" ] || [ "$header" != "$build" ]; then
  echo "version.h says \"$header\", meson.build says \"$build\""
  exit 1
fi
