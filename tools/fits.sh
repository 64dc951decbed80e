#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fits.sh PLANNER [MODEL...]: the tables of docs/what-fits.md: what `plan` decides for each bundled model, or these, on 8 to
# 1,024 devices of three chips (tools/decided.py); and what `search` finds on five machines, with the default settings and with
# those that save memory; of all models the large ones in more micro-batches, too.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: fits.sh PLANNER [MODEL...]" >&2
  exit 2
fi
planner=$1
shift
some=$*
all=${some:-multiple_mix resnet50 resnet50_imagenet wide_deep wide_deep_large bert_large vit_l gpt3_1.3b gpt3_13b \
  gpt3_13b_flash gpt3_175b llama2_7b llama2_70b mixtral_8x7b}
models=$(dirname "$0")/../models
err=$(mktemp)
trap 'rm -f "$err"' EXIT
unset RANK_TABLE_FILE

# found: from the summary, the step time and the memory of a device.
found() {
  awk '
    /^step time / { sub(/,/, "", $4); time = $3 " " $4 }
    /^memory / { memory = $2 " " $3 }
    END { printf " %s, %s |", time, memory }'
}

cell() { # MODEL SEARCH_ARGUMENT...
  graph=$models/$1.json
  shift
  if summary=$("$planner" search "$graph" "$@" 2>"$err"); then
    printf '%s\n' "$summary" | found
  elif short=$(sed -n 's/.* \([^ ]* [KMGT]iB\) are short.*/\1/p' "$err") && [ -n "$short" ]; then
    printf ' **%s short** |' "$short"
  else
    cat "$err" >&2
    exit 1
  fi
}

table() { # [SEARCH_ARGUMENT]...
  printf '| model | 8 Ascend 910A | 16 Ascend 910A | 64 Ascend 910B3 | 64 A100 | 6 A100, batch 96 |\n'
  printf '| --- | ---: | ---: | ---: | ---: | ---: |\n'
  for model in $all; do
    # shellcheck disable=SC2016 # backquotes of Markdown
    printf '| `%s` |' "$model"
    cell "$model" "$models/topo/ascend910_8p.json" "$@"
    cell "$model" "$models/topo/ascend910_16p.json" --chip ascend910a "$@"
    cell "$model" --device-num 64 --devices-per-server 8 --chip ascend910b "$@"
    cell "$model" --device-num 64 --devices-per-server 8 --chip a100-80 "$@"
    cell "$model" --device-num 6 --chip a100-80 --batch 96 "$@"
    printf '\n'
  done
}

more() { # MODEL MICRO_BATCHES
  # shellcheck disable=SC2016 # backquotes of Markdown
  printf '| `%s` | %d |' "$1" "$2"
  for chip in ascend910b a100-80; do
    cell "$1" --device-num 64 --devices-per-server 8 --chip $chip --micro-batches "$2" \
      --enable-parallel-optimizer
  done
  printf '\n'
}

# shellcheck disable=SC2086 # words
python3 "$(dirname "$0")/decided.py" "$planner" fits $some
echo
table
echo
table --micro-batches 8 --enable-parallel-optimizer
[ -z "$some" ] || exit 0
echo
printf '| model | micro-batches | 64 Ascend 910B3 | 64 A100 |\n| --- | ---: | ---: | ---: |\n'
more llama2_7b 32
more mixtral_8x7b 64
more llama2_70b 256
more gpt3_175b 1536
