#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# models.sh PROGRAM DIR: writes every bundled model into DIR (see models/README.md).
set -eu

if [ $# -ne 2 ]; then
  echo "usage: models.sh PROGRAM DIR" >&2
  exit 2
fi
program=$1
dir=$2

model() { # NAME MODEL [OPTION VALUE]...
  name=$1
  kind=$2
  shift 2
  "$program" model "$kind" --model-name "$name" "$@" -o "$dir/$name.json"
}

model multiple_mix multiple_mix --batch 32
model resnet50 resnet50 --batch 256 --classes 10
model resnet50_imagenet resnet50 --batch 2048 --classes 1000
model wide_deep wide_deep --batch 128000 --vocabulary 200000 --hidden 80
model wide_deep_large wide_deep --batch 128000 --vocabulary 40000000 --hidden 80
model gpt3_1.3b gpt3 --layers 24 --hidden 2048 --heads 16 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention small-operators --dtype float16
model gpt3_13b gpt3 --layers 40 --hidden 5120 --heads 40 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention small-operators --dtype float16
model gpt3_13b_flash gpt3 --layers 40 --hidden 5120 --heads 40 --sequence 2048 --vocabulary 50304 \
  --batch 64 --attention flash --dtype float16
model gpt3_175b gpt3 --layers 96 --hidden 12288 --heads 96 --sequence 2048 --vocabulary 50304 \
  --batch 1536 --attention small-operators --dtype float16
model bert_large bert --layers 24 --hidden 1024 --heads 16 --sequence 512 --vocabulary 30522 \
  --batch 256 --dtype float16
model vit_l vit --layers 24 --hidden 1024 --heads 16 --classes 1000 --batch 4096 \
  --attention small-operators --dtype float16
model llama2_7b llama --layers 32 --hidden 4096 --heads 32 --kv-heads 32 --inner 11008 \
  --sequence 4096 --vocabulary 32000 --batch 512 --attention small-operators --dtype float16
model llama2_70b llama --layers 80 --hidden 8192 --heads 64 --kv-heads 8 --inner 28672 \
  --sequence 4096 --vocabulary 32000 --batch 1024 --attention flash --dtype float16
model mixtral_8x7b mixtral --layers 32 --hidden 4096 --heads 32 --kv-heads 8 --inner 14336 \
  --sequence 4096 --vocabulary 32000 --experts 8 --active 2 --capacity 1.25 --batch 512 \
  --attention flash --dtype float16
