#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: seed001.sh PROGRAM SOURCE_ROOT
# MindSpore's tutorial of distributed training: ResNet-50 on the eight cards of its rank table, as it is
# printed there, in auto_parallel with mirror_mean and Momentum; data_parallel in its place; the
# parameter_broadcast that each mode has.
set -u
# shellcheck disable=SC2034 # seeds.sh runs it
program=$1
source=$2
# shellcheck source=tests/golden/seeds.sh
. "$source/tests/golden/seeds.sh"

graph=$source/models/resnet50.json
table=$work/rank_table.json
{
  cat <<'END'
{
    "board_id": "0x0000",
    "chip_info": "910",
    "deploy_mode": "lab",
    "group_count": "1",
    "group_list": [
        {
            "device_num": "8",
            "server_num": "1",
            "group_name": "",
            "instance_count": "8",
            "instance_list": [
END
  for i in 0 1 2 3 4 5 6 7; do
    printf '                {"devices": [{"device_id": "%d","device_ip": "192.%d.27.%d"}],' \
      $i $((i % 4 + 1)) $((6 + i / 4))
    printf '"rank_id": "%d","server_id": "10.*.*.*"},\n' $i
  done
  cat <<'END'
            ]
        }
    ],
    "para_plane_nic_location": "device",
    "para_plane_nic_name": ["eth0","eth1","eth2","eth3","eth4","eth5","eth6","eth7"],
    "para_plane_nic_num": "8",
    "status": "completed"
}
END
} > "$table"
config() { # NAME MODE MEAN: what the tutorial's script sets
  cat > "$work/$1.config" <<END
{
  "mode": "GRAPH_MODE", "device_target": "Ascend", "enable_hccl": true, "device_id": 0,
  "enable_task_sink": true, "enable_loop_sink": true, "dataset_sink_mode": true,
  "parallel_mode": "$2", "mirror_mean": $3, "optimizer": "Momentum"
}
END
}
tutorial() { # LABEL MODE MEAN [OPTION...]
  config "$1" "$2" "$3"
  label=$1
  shift 3
  plan "$label" "$graph" "$table" --config "$work/$label.config" "$@"
}

# Every gradient is exchanged, of 161 trained parameters.
tutorial auto AUTO_PARALLEL true
said auto 'trailing comma [trailing-comma]'
ask 'eight devices of one server' grep -q '^devices  *8 x ascend910a on 1 server' "$work/auto.out"
ask 'near the shortest step' grep -q '"step_status": "[pb]' "$work/auto.json"
ask 'gradients exchanged' test "$(collectives auto gradient AllReduce)" -eq 161
layouts_hold "$work/auto.ckpt" "$graph" 8 moments
ask 'one state, of what is trained' test \
  "$(decoded "$work/auto.ckpt" | grep -c '^layout moments\.')" -eq 161
ask 'none of the moving averages' test \
  -z "$(decoded "$work/auto.ckpt" | grep -e moving_mean -e moving_variance)"
ask 'keys of operators' test -z "$(decoded "$work/auto.ckpt" | sed -n 's/^strategy //p' |
  grep -v -E '^(Conv2D|BatchNorm|MatMul|BiasAdd)_[a-z0-9_.]* stage 0 ')"
RANK_TABLE_FILE=$table "$program" search "$graph" --config "$work/auto.config" -q -o "$work/env.ckpt" \
  2> "$work/env.err"
ask 'the rank table of the environment' cmp -s "$work/auto.ckpt" "$work/env.ckpt"

# mirror_mean divides every gradient once more: 94 MB read and written. It changes no cut.
tutorial sum AUTO_PARALLEL false
same_cuts auto sum
relation auto '>' sum optimizer_s
relation auto '=' sum communication_s
ask 'the older name' grep -q '"gradients_mean": true' "$work/auto.json"
tutorial mean AUTO_PARALLEL false --gradients-mean # an option goes before the file
relation mean '=' auto optimizer_s

# Only parallel_mode becomes DATA_PARALLEL: each operator has an eighth of the batch.
tutorial data DATA_PARALLEL true
ask 'nothing is searched' grep -q '"mode": "given"' "$work/data.json"
other_cuts data auto
relation auto '<' data step_time_s
# 23,528,522 trained elements in float32, one state of each; 53,120 moving averages and three constants.
is data gradients_bytes $((4 * 23528522))
is data optimizer_bytes $((4 * 23528522))
is data weights_bytes $((4 * (23528522 + 53120) + 12))
ask 'weights are whole' test -z "$(decoded "$work/data.ckpt" |
  sed -n 's/^layout [^ ]* dev 8 map \([^ ]*\) .* step 0 size 0$/\1/p' | grep -v -E '^-1(,-1)*$')"
ask 'inputs are cut by the batch' grep -q '"in_strategy": \[\[8, *1, *1, *1\], \[1, *1, *1, *1\]\]' "$work/data.json"
ask 'it is a baseline' grep -q '"name": "data parallel", "step_time_s": '"$(value data step_time_s)" \
  "$work/auto.json"

# The default: one device, whatever the table holds.
"$program" search "$graph" "$table" --parallel-mode STAND_ALONE --plan-out "$work/alone.json" \
  --memory 40GB -q 2> /dev/null
ask 'one device' grep -q '^  "devices": 1,' "$work/alone.json"
is alone communication_s 0

# parameter_broadcast: on in data_parallel alone, where nothing is said; it happens once, before the
# first step, and changes no plan.
broadcast() { # CONFIG [OPTION...]: its value
  name=$1
  shift
  "$program" search --print-config --config "$work/$name.config" "$@" |
    sed -n 's/^parameter_broadcast  *\([a-z]*\) .*/\1/p'
}
ask 'broadcast of data_parallel' test "$(broadcast data)" = true
ask 'broadcast of auto_parallel' test "$(broadcast auto)" = false
ask 'broadcast as said' test "$(broadcast data --no-parameter-broadcast)" = false
ask 'broadcast as it is misspelled' test "$(broadcast auto --paramater-broadcast)" = true
for value in true false; do
  tutorial once_$value DATA_PARALLEL true --parameter-broadcast=$value
done
ask 'no influence' cmp -s "$work/once_true.json" "$work/once_false.json"
ask 'no influence on files' cmp -s "$work/once_true.ckpt" "$work/once_false.ckpt"
"$program" list settings parameter_broadcast > "$work/broadcast"
ask 'no influence is explained' grep -q 'No influence on' "$work/broadcast"

# Another optimizer has two states.
tutorial sgd AUTO_PARALLEL true --optimizer SGD
is sgd optimizer_bytes $((2 * $(value auto optimizer_bytes)))
relation sgd '>' auto optimizer_s
layouts_hold "$work/sgd.ckpt" "$graph" 8 'accum stat'

# What the tutorial says of HCCL: 1, 2, 4 or 8 cards of a server.
sed 's/"device_num": "8"/"device_num": "3"/; s/"instance_count": "8"/"instance_count": "3"/
  /"rank_id": "[3-7]"/d' "$table" > "$work/three.json"
refused 4 '1, 2, 4 or 8' "$graph" "$work/three.json" --config "$work/auto.config"
refused 2 'nothing runs in parallel in it' "$graph" "$table" --mode PYNATIVE_MODE

finish 30
