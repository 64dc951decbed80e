#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh: builds the planner in build/ and plans two bundled models; results in demo-out/.
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=tools/packages.sh
. tools/packages.sh
# shellcheck source=tools/build.sh
. tools/build.sh

# shellcheck disable=SC2086 # words
packages_need $packages_demo
echo "building in build/"
build_quietly build_setup build gcc -Dbuildtype=release -Dtests=false -Dbench=false
build_quietly ninja -C build src/cli/autopar-plan
planner=build/src/cli/autopar-plan
mkdir -p demo-out

# plan NAME GRAPH [OPTION]...: all outputs of one search, and the picture drawn.
plan() {
  name=$1
  shift
  echo
  echo "\$ autopar-plan search $*"
  "$planner" search "$@" -o "demo-out/$name.ckpt" --plan-out "demo-out/$name.plan.json" \
    --dot-out "demo-out/$name.dot"
  "$planner" render "demo-out/$name.plan.json" --dot-out "demo-out/$name.svg"
}

plan multiple_mix models/multiple_mix.json models/topo/ascend910_8p.json
plan gpt3_13b models/gpt3_13b.json --chip ascend910b --device-num 64 --devices-per-server 8 \
  --micro-batches 8 --enable-parallel-optimizer

cat <<'END'

In demo-out/, of each model:
    NAME.ckpt       the strategy checkpoint, for strategy_ckpt_load_file of MindSpore
    NAME.plan.json  everything decided and predicted: cuts, layouts, collectives, memory, schedule
    NAME.dot, .svg  the graph with each operator's cut, coloured by how its output lies on the
                    devices, and the redistributions on the edges; open the .svg in a browser
END
