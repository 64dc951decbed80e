#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: seed000.sh PROGRAM SOURCE_ROOT
# MindSpore's multi-dimensional hybrid case: the network multiple_mix on eight cards, in two stages of
# four micro-batches, 1f1b, its stage_config, hsdp, full_batch, recursive_programming, 25GB. What the
# files hold is read by protoc; then each setting is changed alone, and what it changes is asked for.
set -u
# shellcheck disable=SC2034 # seeds.sh runs it
program=$1
source=$2
# shellcheck source=tests/golden/seeds.sh
. "$source/tests/golden/seeds.sh"

graph=$source/models/multiple_mix.json
table=$source/models/topo/ascend910_8p.json
config() { # SPELLING INSTEAD: the tutorial's configuration, with another spelling
  cat <<'END' | sed "s|${1:-@}|${2:-@}|" > "$work/${3:-seed}.config"
{
  "mode": "GRAPH_MODE",
  "max_size": "25GB",
  "parallel_mode": "recursive_programming",
  "hsdp": true,
  "full_batch": true,
  "pipeline": {"stages": 2, "scheduler": "1f1b"},
  "micro_size": 4,
  "stage_config": {"_backbone.layer1": 0, "_backbone.relu1": 0, "_backbone.layer2": 1,
    "_backbone.relu2": 1, "_backbone.layer3": 1}
}
END
}
config
seed() { # LABEL [OPTION...]
  label=$1
  shift
  plan "$label" "$graph" "$table" --config "$work/seed.config" "$@"
}
in_vain() { # CODE TEXT [OPTION...]
  code=$1 text=$2
  shift 2
  refused "$code" "$text" "$graph" "$table" --config "$work/seed.config" "$@"
}

seed base
# Stage 0: layer1 in four parts, [128, 784] and [128], with two states of SGD; of two micro-batches the
# input, which MindSpore's Flatten cuts in four, [2, 784], gathered again, [8, 784], and what relu1 gives,
# [8, 128]. Both ReLU are cells of one operator, whose output
# is kept, so that nothing is recomputed.
is base weights_bytes $((4 * (128 * 784 + 128))) 0
is base gradients_bytes $((4 * (128 * 784 + 128))) 0
is base optimizer_bytes $((8 * (128 * 784 + 128))) 0
is base activations_bytes $((2 * 4 * (2 * 784 + 8 * 784 + 8 * 128))) 0
is base recompute_bytes 0 0
is base recompute_bytes 0 1
ask 'in flight: 2 and 1' test "$(grep -o '"in_flight": [0-9]*' "$work/base.json" | tr -d '\n')" = \
  '"in_flight": 2"in_flight": 1'
ask 'memory of 25GB' grep -q '"memory": 26843545600,' "$work/base.json"
ask 'the mode' grep -q '"mode": "recursive_programming", *$' "$work/base.json"

# The files. The loss has no parameter; layer3 is in stage 1.
states='accum stat accu_grads'
expected_keys() { # STAGE LAYER...: prefix, or none
  prefix=$1
  shift
  for state in accu_grads. accum. '' stat.; do
    for layer in "$@"; do
      echo "$prefix$state$layer.bias $prefix$state$layer.weight"
    done
  done | tr ' ' '\n' | sort
}
keys() { # FILE
  decoded "$1" | sed -n 's/^layout \([^ ]*\) .*/\1/p'
}
ask 'two stage files' test "$(ls "$work/base.stages")" = "stage_0.ckpt
stage_1.ckpt"
for stage in 0 1; do
  file=$work/base.stages/stage_$stage.ckpt
  layouts_hold "$file" "$graph" 4 "$states"
  decoded "$file" > "$work/stage"
  ask "current_stage of stage $stage" grep -qx 'current_stage 1' "$work/stage"
  ask "stage of the items of stage $stage" test \
    "$(sed -n 's/^strategy .* stage \([0-9]*\) .*/\1/p' "$work/stage" | sort -u)" = $stage
  for kind in strategy layout; do
    sed -n "s/^$kind \\([^ ]*\\) .*/\\1/p" "$work/stage" > "$work/keys"
    ask "order of the ${kind}s of stage $stage" sort -c "$work/keys"
  done
  sed -n "s/^layout /layout $stage-/p" "$work/stage" >> "$work/layouts"
  sed -n '/^strategy /p' "$work/stage" >> "$work/strategies"
done
ask 'parameters of stage 0' test "$(keys "$work/base.stages/stage_0.ckpt")" = "$(expected_keys '' layer1)"
ask 'parameters of stage 1' test "$(keys "$work/base.stages/stage_1.ckpt")" = \
  "$(expected_keys '' layer2 layer3)"
layouts_hold "$work/base.ckpt" "$graph" 4 "$states"
ask 'the merged file is its stages' test "$(decoded "$work/base.ckpt")" = "current_stage 1
$(cat "$work/strategies")
$(cat "$work/layouts")"
ask 'node names' test "$(decoded "$work/base.ckpt" | sed -n 's/^strategy \([^ ]*\) .*/\1/p' | sort)" = \
  "$(for layer in 1 2 3; do echo "BiasAdd_layer$layer.bias MatMul_layer$layer.weight"; done |
    tr ' ' '\n' | sort)"
ask 'ranks of stage 1' grep -q '"ranks": \[4, 5, 6, 7\]' "$work/base.json"
"$program" search "$graph" "$table" --config "$work/seed.config" -q -o "$work/merged.json" 2> "$work/no.err"
ask 'JSON: full shapes' test "$(grep -o '"tensor_shape":\[[0-9,]*\]' "$work/merged.json" | sort | uniq -c |
  tr -d ' \n')" = '4"tensor_shape":[1,512]4"tensor_shape":[1]4"tensor_shape":[512,512]4"tensor_shape":[512,784]8"tensor_shape":[512]'
ask 'JSON: stages' test "$(grep -o '"[01]-layer[0-9].weight":{"dev_matrix":\[4\]' "$work/merged.json" | cut -c 2-3 |
  tr -d '\n')" = '0-1-1-'
"$program" convert "$work/merged.json" "$work/merged.ckpt"
ask 'both forms say the same' cmp -s "$work/merged.ckpt" "$work/base.ckpt"
saved() { # LABEL PARAMETER: step and size of its shard
  decoded "$work/$1.ckpt" | sed -n "s/^layout $2 .* step \(.*\)/\1/p"
}
ask 'layer3.weight stays whole' test "$(saved base 1-layer3.weight)" = '0 size 0'

# Stages: other files, and fewer devices in each. The dictionary has to go with them.
in_vain 4 'no operator is in stage 2, of 4 stages [stage-empty]' --pipeline-stages 4
in_vain 4 '"_backbone.layer2" is in stage 1; --pipeline-stages 1 allows only 0 [stage-range]' --pipeline-stages 1
seed four --pipeline-stages 4 --stage-config \
  '{"_backbone.layer1": 0, "_backbone.relu1": 1, "_backbone.layer2": 2, "_backbone.relu2": 2, "_backbone.layer3": 3}'
ask 'four stage files' test "$(find "$work/four.stages" -type f | wc -l)" -eq 4
layouts_hold "$work/four.stages/stage_3.ckpt" "$graph" 2 "$states"
said four 'holds no operator with a trainable parameter; MindSpore'
is four weights_bytes $((4 * (256 * 784 + 256))) 0

# The dictionary: relu1 goes to stage 1, and with it what is kept of it; stage 0 keeps only the input.
seed moved --stage-config \
  '{"_backbone.layer1": 0, "_backbone.relu1": 1, "_backbone.layer2": 1, "_backbone.relu2": 1, "_backbone.layer3": 1}'
is moved recompute_bytes 0 0
is moved activations_bytes $((2 * 4 * (2 + 8) * 784)) 0
relation moved '<' base activations_bytes 0
relation moved '>' base step_time_s

# gpipe holds all four micro-batches, 1f1b two and one; the bubble is the same.
seed gpipe --pipeline-scheduler gpipe
is gpipe activations_bytes $((4 * 4 * (2 * 784 + 8 * 784 + 8 * 128))) 0
ask 'stage 1 holds four of them' test "$(value gpipe activations_bytes 1)" -eq \
  $((4 * $(value base activations_bytes 1)))
same_cuts gpipe base
relation gpipe '~' base step_time_s
in_vain 2 'contradict each other' --pipeline-scheduler interleaved
in_vain 2 'seqpipe' --pipeline-scheduler seqpipe

# Two micro-batches are twice as large. Sixteen of 256 samples: as cuts are the same, an eighth of what
# two keep, and less idle time.
seed two --micro-batches 2
same_cuts two base
is two activations_bytes $((2 * 4 * (4 * 784 + 16 * 784 + 16 * 128))) 0
relation two '<' base step_time_s
seed many --micro-batches 16 --batch 4096
seed few --micro-batches 4 --batch 4096
same_cuts many few
ask 'a quarter of the activations' test "$(value few activations_bytes 0)" -eq \
  $((4 * $(value many activations_bytes 0)))
idle() { # LABEL: share of the step
  awk -v b="$(value "$1" bubble_s)" -v t="$(value "$1" step_time_s)" 'BEGIN { print b / t }'
}
ask 'a smaller bubble' compare "$(idle many)" '<' "$(idle few)"
in_vain 2 'does not divide the batch of 32' --micro-batches 5
seed one --micro-batches 1
said one 'at least as many micro-batches as stages'

# Recompute of a cell of one primitive recomputes nothing, and that is said; of the primitive it costs
# a forward pass of it, in its stage.
sed '/"recompute": true/d; /^ "cells"/,/^ \]/d' "$graph" > "$work/none.graph.json"
of_primitive() { # RELU: recomputed as a primitive, beside what is on standard input
  sed "/$1-ReLU/s/}\(,\{0,1\}\)\$/, \"recompute\": true}\1/"
}
of_primitive relu1 < "$work/none.graph.json" > "$work/relu1.graph.json"
of_primitive relu2 < "$work/none.graph.json" > "$work/relu2.graph.json"
of_primitive relu2 < "$work/relu1.graph.json" > "$work/both.graph.json"
for form in none relu1 relu2 both; do
  plan $form "$work/$form.graph.json" "$table" --config "$work/seed.config"
  same_cuts $form base
done
for cell in relu1 relu2; do
  said base "nothing of cell \"_backbone.$cell\" is recomputed: its only operator is its output"
  silent both "nothing of cell \"_backbone.$cell\""
done
is none recompute_bytes 0 0
relation base '=' none recompute_bytes 1
relation base '=' none step_time_s
is relu1 recompute_bytes $((4 * 8 * 128)) 0
is relu1 recompute_bytes 0 1
is relu2 recompute_bytes 0 0
is relu2 recompute_bytes $((4 * 8 * 512)) 1
for form in relu1 relu2; do
  relation $form '>' none compute_s
  relation both '>' $form compute_s
done

# hsdp deals nothing here, as no parameter that is large enough lies whole on two devices; that is said.
# With more samples the batch is cut instead, and it deals the two large weights: a quarter of the
# weights and states, gathered copies, and time for the gathering.
seed undealt --no-hsdp
same_cuts undealt base
relation undealt '=' base total_bytes 0
said base 'enable_parallel_optimizer deals none of 6 parameters'
silent undealt 'enable_parallel_optimizer'
seed whole --batch 4096 --no-hsdp
same_cuts few whole
is whole weights_bytes $((4 * (512 * 784 + 512))) 0
is few weights_bytes $((4 * (128 * 784 + 512))) 0
is few gathered_bytes $((4 * 512 * 784)) 0
is few optimizer_bytes $((8 * (128 * 784 + 512))) 0
relation few '>' whole optimizer_s
layouts_hold "$work/few.ckpt" "$graph" 4 "$states"
layouts_hold "$work/whole.ckpt" "$graph" 4 "$states"
ask 'layer1.weight is dealt' test "$(saved few 0-layer1.weight)" = '1 size -1'
ask 'its state, too' test "$(saved few 0-accum.layer1.weight)" = '1 size -1'
ask 'layer3.weight is below the threshold' test "$(saved few 1-layer3.weight)" = '0 size 0'
ask 'no hsdp' test "$(saved whole 0-layer1.weight)" = '0 size 0'
silent few 'enable_parallel_optimizer'

# The threshold: 64 KB keep layer2.bias whole, 0 does not; 1100 KB is between layer2.weight and layer1's.
seed low --parallel-optimizer-threshold 0
is low weights_bytes $(($(value base weights_bytes 1) - 3 * 512)) 1
ask 'layer2.bias is dealt' test "$(saved low 1-layer2.bias)" = '1 size -1'
seed high --batch 4096 --parallel-optimizer-threshold 1100
is high weights_bytes $(($(value few weights_bytes 0))) 0
is high weights_bytes $(($(value whole weights_bytes 1))) 1
ask 'layer2.weight stays whole' test "$(saved high 1-layer2.weight)" = '0 size 0'
# Of groups of two, half is held; levels 2 and 3 deal gradients, and gather weights anew.
config '"hsdp": true' '"hsdp": {"shard_size": 2, "optimizer_level": "level2"}' level2
plan level2 "$graph" "$table" --config "$work/level2.config" --batch 4096
is level2 weights_bytes $((4 * (256 * 784 + 512))) 0
is level2 gradients_bytes $((4 * (256 * 784 + 512))) 0
ask 'groups of two' test "$(saved level2 0-layer1.weight)" = '1 size 2'
layouts_hold "$work/level2.ckpt" "$graph" 4 "$states"
seed level3 --batch 4096 --optimizer-level level3
is level3 gathered_bytes 0 0
relation level3 '>' few step_time_s

# Without full_batch a device reads its share: a plan that does not cut the batch has to gather it, one
# that does holds the same part either way.
seed share --no-full-batch
relation share '>' base objective_s
seed share2 --no-full-batch --batch 4096
is share2 activations_bytes $((2 * 4 * 256 * (784 + 512))) 0
is few activations_bytes $((2 * 4 * 256 * (784 + 512))) 0
in_vain 2 'contradict each other' --dataset-strategy data_parallel

# Other engines: an exact one finds no slower plan than the recursion, and a better bound.
config recursive_programming sharding_propagation propagation
config recursive_programming auto_parallel auto
plan propagation "$graph" "$table" --config "$work/propagation.config"
plan auto "$graph" "$table" --config "$work/auto.config"
ask 'mode of propagation' grep -q '"mode": "sharding_propagation"' "$work/propagation.json"
ask 'mode of auto' grep -q '"mode": "dynamic_programming"' "$work/auto.json"
ask 'the plan is no slower' awk -v a="$(value auto step_time_s)" -v b="$(value base step_time_s)" \
  'BEGIN { exit !(a <= b) }'
relation auto '>' base lower_bound_s

# 25GB do not bind. The bytes that the plan needs do; one less takes another plan, 1 MB less none.
need=$(value base total_bytes 0)
config 25GB "$need" exact
plan exact "$graph" "$table" --config "$work/exact.config"
same_cuts exact base
seed tight --memory $((need - 1))
other_cuts tight base
relation tight '>' base objective_s
relation tight '<' base total_bytes 0
said tight 'recursive_programming found no plan that fits the memory'
in_vain 5 'are short [memory]' --memory $((need - 1048576))
ask 'the largest operator is named' grep -q 'layer1-Dense/MatMul-op0" 1.53 MiB' "$work/no.err"
ask 'so are the bytes' grep -q 'at least 914 MiB are needed on each of 4 devices' "$work/no.err"

# The optimizer decides the states: one of Momentum, two of Adam, with their names.
seed momentum --optimizer Momentum
is momentum optimizer_bytes $((4 * (128 * 784 + 128))) 0
relation momentum '<' base optimizer_s
layouts_hold "$work/momentum.ckpt" "$graph" 4 'moments accu_grads'
seed adam --optimizer adam
relation adam '=' base optimizer_bytes 0
layouts_hold "$work/adam.ckpt" "$graph" 4 'moment1 moment2 accu_grads'
ask 'no state of SGD' test -z "$(keys "$work/adam.ckpt" | grep accum)"

finish 110
