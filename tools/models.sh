#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# models.sh MAKE_MODEL DIR: writes every bundled model into DIR (see models/README.md).
set -eu

if [ $# -ne 2 ]; then
  echo "usage: models.sh MAKE_MODEL DIR" >&2
  exit 2
fi
make_model=$1
dir=$2

model() { # NAME MODEL [OPTION VALUE]...
  name=$1
  kind=$2
  shift 2
  "$make_model" "$kind" --name "$name" "$@" >"$dir/$name.json"
}

model multiple_mix multiple_mix --batch 32
model gpt3_1.3b gpt3 --layers 24 --hidden 2048 --heads 16 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention small --dtype float16
model gpt3_13b gpt3 --layers 40 --hidden 5120 --heads 40 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention small --dtype float16
model gpt3_13b_flash gpt3 --layers 40 --hidden 5120 --heads 40 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention flash --dtype float16
