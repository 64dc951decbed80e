#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: dumps.sh PROGRAM SOURCE_ROOT
# From a dump to a plan. The dump of multiple_mix gives the plans of models/multiple_mix.json on every
# machine: the same checkpoint, byte for byte, the same figures, to the last digit, and the same strategy of
# every operator. (Its wrappers of the network are not those that the model's names have; they are renamed.)
# The plan of the other whole dump keeps its script's strategies, and its checkpoint stands for it.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RANK_TABLE_FILE
asked=0
failed=0

ask() { # WHAT COMMAND...: the command has to succeed
  what=$1
  shift
  asked=$((asked + 1))
  "$@" > "$work/said" 2>&1 && return
  echo "FAILED: $what"
  sed 's/^/  /' "$work/said"
  failed=$((failed + 1))
}

figures() { # PLAN
  sed -n '/^ "search": {/,/^ }/{/"objective_s"/p;/"status"/p;}
    /^ "prediction": {/,/^ }/{/_s"/p;/_bytes"/p;}' "$1"
}

# How each operator is cut, by its whole name.
cuts() { # PLAN
  sed -n 's/^ *\("name": "Default[^"]*"\|"in_strategy": .*\|"out_strategy": .*\|"recompute": .*\),$/\1/p' "$1"
}

model=$source/models/multiple_mix.json
sed 's|network-_VirtualDatasetCell/_backbone-WithLossCell|network-WithLossCell|' \
  "$source/tests/dumps/mlp_step_auto_parallel_begin_0031.ir" > "$work/mix.ir"
ask 'import of multiple_mix' "$program" import "$work/mix.ir" -q -o "$work/mix.json"

same_plan() { # OPTION...
  ask "dump: $*" "$program" search "$work/mix.json" "$@" -q --plan-out "$work/a.json" -o "$work/a.ckpt"
  ask "model: $*" "$program" search "$model" "$@" -q --plan-out "$work/b.json" -o "$work/b.ckpt"
  for plan in a b; do
    figures "$work/$plan.json" > "$work/$plan.figures"
    cuts "$work/$plan.json" > "$work/$plan.cuts"
  done
  ask "figures of $*" test "$(wc -l < "$work/a.figures")" -gt 6
  ask "strategies of $*" test "$(wc -l < "$work/a.cuts")" -ge 28
  ask "same figures: $*" diff "$work/a.figures" "$work/b.figures"
  ask "same strategies: $*" diff "$work/a.cuts" "$work/b.cuts"
  ask "same checkpoint: $*" cmp "$work/a.ckpt" "$work/b.ckpt"
}
same_plan "$source/models/topo/ascend910_8p.json"
same_plan --device-num 4 --chip ascend910b
same_plan --device-num 64 --chip ascend910b
same_plan --device-num 8 --chip a100-80 --batch 65536
same_plan --device-num 8 --chip ascend910b --search-mode recursive_programming --micro-batches 4
same_plan --device-num 8 --chip ascend910b --pipeline-stages 2 --micro-batches 2 --enable-parallel-optimizer
same_plan --device-num 8 --chip ascend910b --executor mindspore-semi-auto
same_plan --device-num 8 --chip ascend910b --executor generic --recompute full

# The Transformer: 47 strategies of its script are in the graph, and in the plan.
ask 'import of a Transformer' "$program" import \
  "$source/tests/dumps/transformer_step_parallel_begin_0052.ir" -q -o "$work/t.json"
ask 'check' "$program" check "$work/t.json"
ask 'pins' test "$(grep -c '"in_strategy"' "$work/t.json")" -eq 47
set -- --device-num 8 --chip ascend910b --optimizer adam
ask 'search' "$program" search "$work/t.json" "$@" -q --plan-out "$work/t.plan" -o "$work/t.ckpt"
ask 'evaluate' "$program" evaluate "$work/t.json" "$@" -q --strategy "$work/t.ckpt" --plan-out "$work/u.plan"
figures "$work/t.plan" | grep -v -e status -e step_bound > "$work/t.figures"
figures "$work/u.plan" | grep -v -e status -e step_bound > "$work/u.figures"
ask 'same figures when evaluated' diff "$work/t.figures" "$work/u.figures"
cuts "$work/t.plan" > "$work/t.cuts"
ask 'a strategy of the script is the plan' test "$(grep -A 1 '"name".*/0-TransformerLayer/mlp-MLP/fc1-Dense/MatMul-op0"' \
  "$work/t.cuts" | tail -n 1)" = '"in_strategy": [[2, 1], [4, 1]]'

# Its weights are read in half precision: none of its 14 matrices is stored whole, and a device has the gradients
# of its slices, in full precision.
awk '/"parameters": \[/ { params = 1 }
  params && /"tensor_shape":/ { whole = $0; sub(/.*: /, "", whole) }
  params && /"slice_shape":/ {
    slice = $0; sub(/.*: /, "", slice)
    n = split(slice, dim, /[^0-9]+/)
    size = 1
    for (i = 1; i <= n; i++) if (dim[i] != "") { size *= dim[i] }
    bytes += 4 * size
    if (whole ~ /[0-9], [0-9]/) { matrices++; if (whole == slice) uncut++ }
  }
  END { print matrices + 0, uncut + 0, bytes + 0 }' "$work/t.plan" > "$work/t.weights"
ask 'weights are cut' grep -qx "14 0 $(sed -n 's/.*"gradients_bytes": \([0-9]*\),.*/\1/p' "$work/t.plan" | head -n 1)" \
  "$work/t.weights"
ask 'weights are read in half precision' test "$(grep -c '"read_as": "float16"' "$work/t.plan")" -eq 25

# Dumps with full names, one of data with several lengths: a checkpoint is priced as the plan that it came
# of, whoever completes it; dealt sums it does not hold.
objective() { # PLAN
  sed -n '/^ "search": {/,/^ }/s/^  "objective_s": //p' "$1"
}
for dump in cnn_pre_auto_parallel_0023 bert_insert-virtual-dataset_0027; do
  ask "import of $dump" "$program" import "$source/tests/dumps/$dump.ir" --strict -q -o "$work/n.json"
  for route in mindspore generic mindspore-semi-auto mindspore-sharding-propagation; do
    set -- --device-num 8 --chip ascend910b --executor "$route"
    ask "$dump, $route" "$program" search "$work/n.json" "$@" --no-out-strategy -q --plan-out "$work/n.plan" \
      -o "$work/n.ckpt"
    ask "$dump, $route: evaluate" "$program" evaluate "$work/n.json" "$@" -q --strategy "$work/n.ckpt" \
      --plan-out "$work/m.plan"
    ask "$dump, $route: equal" test "$(objective "$work/n.plan")" = "$(objective "$work/m.plan")"
    ask "$dump, $route: check" "$program" check "$work/n.plan" --against "$work/n.json" -q
  done
done

# A dump where a graph is wanted is told as such, and checked as what it is.
says() { # STATUS WORDS COMMAND...: the command ends so, and says so
  status=$1
  words=$2
  shift 2
  "$@" > "$work/words" 2>&1
  [ $? -eq "$status" ] && grep -q "$words" "$work/words"
}
dump=$source/tests/dumps/mlp_step_auto_parallel_begin_0031.ir
ask 'check of a dump' says 0 'a graph dump of MindSpore (14 operators): nothing to report' "$program" check "$dump"
ask 'search of a dump' says 4 'is a graph dump of MindSpore; import makes an operator graph of it' \
  "$program" search "$dump" --device-num 8 --chip ascend910b
sed 's/PrimFunc_Abs/PrimFunc_Abz/' "$dump" > "$work/odd.ir"
ask 'check of an odd dump' says 4 'odd.ir:129: Abz: no operator of this type' "$program" check "$work/odd.ir"

echo "$asked asked, $failed failed"
[ "$failed" -eq 0 ]
