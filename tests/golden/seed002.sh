#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: seed002.sh PROGRAM SOURCE_ROOT
# MindSpore's guide to parallel distributed training, setting by setting in its order and with its
# values: what each changes in the plan, or that it changes nothing and why.
set -u
# shellcheck disable=SC2034 # seeds.sh runs it
program=$1
source=$2
# shellcheck source=tests/golden/seeds.sh
. "$source/tests/golden/seeds.sh"

resnet=$source/models/resnet50.json
mix=$source/models/multiple_mix.json
table=$source/models/topo/ascend910_8p.json
net=$work/net.graph.json # the guide's Net, with a loss
cat > "$net" <<'END'
{
  "schema": "autopar-graph/1",
  "name": "Net",
  "optimizer": "momentum",
  "inputs": [
    {"name": "x", "shape": [32, 48], "dtype": "float16", "batch_dim": 0},
    {"name": "y", "shape": [32, 16], "dtype": "float16", "batch_dim": 0}
  ],
  "parameters": [
    {"name": "weight1", "shape": [48, 64], "dtype": "float16"},
    {"name": "weight2", "shape": [64, 16], "dtype": "float16"}
  ],
  "operators": [
    {"name": "Default/Net/fc1", "cell": "Net", "type": "MatMul", "inputs": ["x", "weight1"], "outputs": [{"name": "h"}]},
    {"name": "Default/Net/fc2", "cell": "Net", "type": "MatMul", "inputs": ["h", "weight2"], "outputs": [{"name": "p"}]},
    {"name": "Default/Net/sub", "cell": "Net", "type": "Sub", "inputs": ["p", "y"], "outputs": [{"name": "d"}]},
    {"name": "Default/loss/mul", "cell": "loss", "type": "Mul", "inputs": ["d", "d"], "outputs": [{"name": "m"}]},
    {"name": "Default/loss/mean", "cell": "loss", "type": "ReduceMean", "inputs": ["m"], "outputs": [{"name": "l"}]}
  ],
  "outputs": ["l"]
}
END
eight='--device-num 8 --chip ascend910a'
resnet() { # LABEL [OPTION...]
  label=$1
  shift
  # shellcheck disable=SC2086 # words
  plan "$label" "$resnet" $eight "$@"
}
mix() { # LABEL [OPTION...]
  label=$1
  shift
  # shellcheck disable=SC2086
  plan "$label" "$mix" $eight "$@"
}
net() { # LABEL SED_PROGRAM [OPTION...]: of the net as changed
  label=$1
  sed "$2" "$net" > "$work/$label.graph.json"
  shift 2
  # shellcheck disable=SC2086
  plan "$label" "$work/$label.graph.json" $eight "$@"
}
buckets() { # LABEL: how many parameters each AllReduce of gradients has, in order
  sed -n '/^ "fusion"/,/^ \]/p' "$work/$1.json" |
    awk '/"kind"/ { sum = /AllReduce/ } sum && /"parameters"/ { printf "%s%d", sep, split($0, p, ","); sep = " " }'
}
exchanged() { # LABEL: bytes of gradients
  sed -n 's/.*"phase": "gradient".*"bytes": \([0-9]*\),.*/\1/p' "$work/$1.json" | tr '\n' ' '
}

# device_num, 1 to 4096: devices of the machine.
resnet dev8
plan dev4 "$resnet" --device-num 4 --chip ascend910a
other_cuts dev8 dev4
relation dev4 '>' dev8 step_time_s
relation dev4 '>' dev8 activations_bytes
refused 2 'device-num says 4' "$resnet" "$table" --device-num 4
refused 2 'an integer from 1' "$resnet" --chip ascend910a --device-num 0
plan many "$mix" --chip ascend910a --device-num 8192 --parallel-mode data_parallel --batch 8192
said many '8192 devices; MindSpore itself runs at most 4096'

# global_rank, 0 to device_num - 1: the file of that rank's groups; the plan is of all.
for rank in 0 7; do
  resnet rank$rank --global-rank $rank --group-ckpt-save-file "$work/rank$rank.pb"
done
same_cuts rank0 rank7
ask 'a group file' test -s "$work/rank7.pb"
refused 2 'ranks count from 0' "$resnet" --chip ascend910a --device-num 8 --global-rank 8

# gradients_mean: one more pass over the gradients.
resnet mean --gradients-mean
relation mean '>' dev8 optimizer_s
relation mean '=' dev8 communication_s
same_cuts mean dev8
plan mean1 "$mix" --device-num 1 --chip ascend910a --gradients-mean
said mean1 'gradients_mean is without effect: no gradient is exchanged'

# parallel_mode. shard() of the guide's Mul: ((2, 1), (2, 1)).
refused 2 'it is a mode of one device' "$resnet" --chip ascend910a --device-num 8 --parallel-mode stand_alone
plan alone "$mix" "$table" --parallel-mode stand_alone
is alone communication_s 0
ask 'cuts nothing' test -z "$(cuts alone | grep '[2-9]')"
shard='s/"type": "Mul"/&, "in_strategy": [[2, 1], [2, 1]]/'
net semi "$shard" --parallel-mode semi_auto_parallel
net found "$shard" --parallel-mode auto_parallel
ask 'shard() is kept, the rest is cut by the batch' test "$(cuts semi | tr -d ' \n')" = \
  '"in_strategy":[[8,1],[1,1]],"in_strategy":[[8,1],[1,1]],"in_strategy":[[8,1],[8,1]],"in_strategy":[[2,1],[2,1]],"in_strategy":[[8,1]],'
ask 'shard() is kept in a search' test "$(cuts found | grep -c '\[\[2, *1\], \[2, *1\]\]')" -ge 1
relation found '<' semi step_time_s
for mode in data_parallel hybrid_parallel; do
  resnet $mode --parallel-mode $mode
  relation dev8 '<' $mode step_time_s
done
same_cuts data_parallel hybrid_parallel

# all_reduce_fusion_config [20, 35]: of 161 gradients the first 20, 15, and the rest; else 64 MB each.
echo '{"all_reduce_fusion_config": [20, 35]}' > "$work/fused.config"
resnet fused --parallel-mode data_parallel --config "$work/fused.config"
ask "three buckets: $(buckets fused)" test "$(buckets fused)" = '20 15 126'
ask "two buckets: $(buckets data_parallel)" test "$(buckets data_parallel | wc -w)" -eq 2
relation fused '>' data_parallel communication_s
mix fused6 --parallel-mode data_parallel --all-reduce-fusion-config 20,35
said fused6 'position 20 of the fusion of AllReduces parts nothing: 6 gradients'

# enable_parallel_optimizer in data_parallel: whole parameters are dealt, and broadcast. More parameters
# than devices; Lamb and AdamWeightDecay only. Forward and backward pass stay as they are.
for optimizer in Lamb AdamWeightDecay; do
  resnet $optimizer --parallel-mode data_parallel --optimizer $optimizer
  resnet dealt$optimizer --parallel-mode data_parallel --optimizer $optimizer --enable-parallel-optimizer
  relation dealt$optimizer '<' $optimizer optimizer_bytes
  relation dealt$optimizer '=' $optimizer weights_bytes
  relation dealt$optimizer '=' $optimizer compute_s
  relation dealt$optimizer '=' $optimizer activations_bytes
  relation dealt$optimizer '>' $optimizer optimizer_s
  ask 'every parameter is broadcast' test "$(collectives dealt$optimizer optimizer Broadcast)" -eq 161
  ask 'none is before' test "$(collectives $optimizer optimizer Broadcast)" -eq 0
done
for optimizer in momentum sgd adam; do
  # shellcheck disable=SC2086
  refused 2 'in data_parallel it takes lamb or adam_weight_decay' "$resnet" $eight \
    --parallel-mode data_parallel --optimizer $optimizer --enable-parallel-optimizer
done
# shellcheck disable=SC2086
refused 2 'takes more than 8 of them, the graph trains 6' "$mix" $eight --parallel-mode data_parallel \
  --optimizer Lamb --enable-parallel-optimizer
plan enough "$mix" --device-num 4 --chip ascend910a --parallel-mode data_parallel --optimizer Lamb \
  --enable-parallel-optimizer
# In the other modes parameters are dealt by their first dimension, of any optimizer.
for mode in auto_parallel semi_auto_parallel; do
  for optimizer in momentum lamb sgd; do
    resnet whole_$optimizer --parallel-mode $mode --optimizer $optimizer
    resnet dealt_$optimizer --parallel-mode $mode --optimizer $optimizer --enable-parallel-optimizer
    relation dealt_$optimizer '<' whole_$optimizer weights_bytes
    relation dealt_$optimizer '<' whole_$optimizer optimizer_bytes
    ask 'rows are dealt' test "$(decoded "$work/dealt_$optimizer.ckpt" | grep -c 'step 1 size -1$')" -gt 50
  done
  layouts_hold "$work/dealt_momentum.ckpt" "$resnet" 8 moments
done

# parameter_broadcast: see seed001.sh.
"$program" list settings parameter_broadcast > "$work/said"
ask 'no influence is explained' grep -q 'happens once, before the' "$work/said"

# gradient_fp32_sync: gradients in float16 travel as float32, or as they are.
net wide '' --parallel-mode data_parallel
net narrow '' --parallel-mode data_parallel --no-gradient-fp32-sync
ask 'bytes of float32' test "$(exchanged wide)" = "$((4 * 48 * 64)) $((4 * 64 * 16)) "
ask 'bytes of float16' test "$(exchanged narrow)" = "$((2 * 48 * 64)) $((2 * 64 * 16)) "
relation narrow '<' wide communication_s
resnet fp32 --no-gradient-fp32-sync
said fp32 'gradient_fp32_sync is without effect: no gradient of 16 bits is exchanged'
silent narrow 'gradient_fp32_sync'

# auto_parallel_search_mode: the recursion finds no faster plan than an exact engine.
mix optimum --auto-parallel-search-mode dynamic_programming --batch 256
mix recursion --auto-parallel-search-mode recursive_programming --batch 256
ask 'the plan is no slower' awk -v a="$(value optimum step_time_s)" -v b="$(value recursion step_time_s)" \
  'BEGIN { exit !(a <= b) }'
ask 'the mode is named' grep -q '"mode": "recursive_programming"' "$work/recursion.json"

# strategy_ckpt_save_file and strategy_ckpt_load_file: what was saved is kept. A folder is neither.
net saved '' --parallel-mode data_parallel
net loaded '' --strategy-ckpt-load-file "$work/saved.ckpt"
net free ''
ask 'operators are given' test "$(grep -c '"given": true' "$work/loaded.json")" -eq 2
ask 'they are cut alike' test "$(cuts loaded | head -n 2)" = "$(cuts saved | head -n 2)"
relation free '<' saved step_time_s
mkdir "$work/empty"
# shellcheck disable=SC2086
refused 4 'is a folder without files in .ckpt or .json' "$net" $eight --strategy-ckpt-load-file "$work/empty/"
# shellcheck disable=SC2086
"$program" search "$net" $eight --strategy-ckpt-save-file ./ > "$work/no.out" 2> "$work/no.err"
ask 'a folder is no file to write' test $? -eq 2 -a ! -s "$work/no.out"

# full_batch: every device reads all, and the batch is cut afterwards.
resnet full --full-batch
relation full '>' dev8 step_time_s
relation full '>' dev8 activations_bytes
relation full '>' data_parallel objective_s
ask 'inputs arrive whole' grep -q '"dataset_strategy": "full_batch"' "$work/full.json"

# pipeline_stages, parallel_stages in the guide: stages of two devices each.
mix stages --pipeline-stages 4 --micro-batches 4
mix typo --parallel-stages 4 --grad-accumulation-step 4
ask 'the same plan' cmp -s "$work/stages.ckpt" "$work/typo.ckpt"
relation typo '=' stages step_time_s
ask 'four stages' grep -q '"stages": 4, "segments": 1, "devices_per_stage": 2' "$work/typo.json"
ask 'their files' test "$(find "$work/typo.stages" -type f | wc -l)" -eq 4
# shellcheck disable=SC2086
refused 2 'parallel-stages' "$mix" $eight --parallel-stages 4 --pipeline-stages 2

# grad_accumulation_step 4: a quarter of the activations, but for the two statistics of 26,560 channels;
# gradients that are kept and have a name.
resnet steps --grad-accumulation-step 4
resnet data_steps --parallel-mode data_parallel --grad-accumulation-step 4
ask 'a quarter' test $((4 * $(value data_steps activations_bytes))) -eq \
  $(($(value data_parallel activations_bytes) + 3 * 2 * 4 * 26560))
relation steps '>' dev8 step_time_s
ask 'accumulated gradients' test "$(decoded "$work/steps.ckpt" | grep -c '^layout accu_grads\.')" -eq 161
ask 'none without' test "$(decoded "$work/dev8.ckpt" | grep -c '^layout accu_grads\.')" -eq 0
layouts_hold "$work/steps.ckpt" "$resnet" 8 'moments accu_grads'

# cross_batch of a reduction: each device has the mean of its samples. Of the guide's Mul: nothing.
net crossed 's/"type": "ReduceMean"/&, "cross_batch": true/' --parallel-mode data_parallel
net attribute 's/"type": "ReduceMean"/&, "attrs": {"cross_batch": true}/' --parallel-mode data_parallel
net product 's/"type": "Mul"/&, "attrs": {"cross_batch": true}/' --parallel-mode data_parallel
ask 'the mean is summed up' test "$(collectives wide forward AllReduce)" -eq 1
ask 'it is not' test "$(collectives crossed forward AllReduce)" -eq 0
ask 'as an attribute' test "$(collectives attribute forward AllReduce)" -eq 0
ask 'of a product' test "$(collectives product forward AllReduce)" -eq 1
said product 'cross_batch is without effect: Mul is no reduction'
relation crossed '<' wide communication_s

# fusion: weight1.comm_fusion 2 is another number than 1; set_comm_fusion(2) of the cell is for all in
# it; 0 is never fused; on GPUs nothing is.
w1='s/"weight1", "shape": \[48, 64\], "dtype": "float16"/&, "comm_fusion": 2/'
w2='s/"weight2", "shape": \[64, 16\], "dtype": "float16"/&, "comm_fusion": 0/'
cell='s/"operators": \[/"cells": [{"name": "Net", "comm_fusion": 2}],\n  &/'
net param "$w1" --parallel-mode data_parallel
net cell "$cell" --parallel-mode data_parallel
net both "$cell; $w1" --parallel-mode data_parallel
net never "$cell; $w2" --parallel-mode data_parallel
net operator 's/"type": "MatMul", "inputs": \["x"/"fusion": 2, &/' --parallel-mode data_parallel
ask 'one bucket' test "$(buckets wide)" = 2
for label in param never operator; do
  ask "two buckets of $label" test "$(buckets $label)" = '1 1'
  relation $label '>' wide communication_s
done
for label in cell both; do
  ask "one bucket of $label" test "$(buckets $label)" = 2
done
plan gpu "$work/param.graph.json" --device-num 8 --chip a100-80 --parallel-mode data_parallel
said gpu 'fusion and comm_fusion are without effect: a100-80 is no Ascend processor'

# layerwise_parallel: in hybrid_parallel the gradient stays on its device, in other modes nothing.
layerwise='s/"weight2", "shape": \[64, 16\], "dtype": "float16"/&, "layerwise_parallel": true/'
net layerwise "$layerwise" --parallel-mode hybrid_parallel
net other "$layerwise" --parallel-mode data_parallel
ask 'one gradient' test "$(exchanged layerwise)" = "$((4 * 48 * 64)) "
ask 'two gradients' test "$(exchanged other)" = "$((4 * 48 * 64)) $((4 * 64 * 16)) "
said other 'layerwise_parallel of 1 parameter is without effect: only hybrid_parallel reads it'
silent layerwise 'layerwise_parallel'

# Settings that count only beside another one say so.
while read -r option rest; do
  mix beside "$option" "$rest"
  said beside "$option $rest is without effect: "
done <<'END'
--pipeline-scheduler gpipe
--parallel-optimizer-threshold 128
--optimizer-weight-shard-size 4
--optimizer-level level3
--tensor-slice-align-size 32
END
mix infer --run-phase inference --gradients-mean
said infer '--gradients-mean is without effect: --run-phase inference'
mix dealt --enable-parallel-optimizer
said dealt 'enable_parallel_optimizer deals none of 6 parameters'

whole='s/48\]/42]/; s/\[48, /[42, /; s/"weight2", "shape": \[64, 16\], "dtype": "float16"/&, "parallel_optimizer": false/'
net whole "$whole" --parallel-mode semi_auto --enable-parallel-optimizer --parallel-optimizer-threshold 0
said whole 'deals none of 2 parameters: 1 has a flag that keeps it whole, 1 has rows that do not divide'

finish 100
