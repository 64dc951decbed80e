# SPDX-License-Identifier: Apache-2.0
"""A log as a framework prints it, of iterations of about SECONDS: make_log.py FORM SECONDS [KEY=VALUE...]"""
import sys

form, step = sys.argv[1], float(sys.argv[2])
said = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "data_parallel_size": 2,
        "world_size": 8, "micro_batch_size": 1, "global_batch_size": 16, "num_layers": 4, "hidden_size": 512,
        "num_attention_heads": 8, "seq_length": 512, "padded_vocab_size": 32000, "max_position_embeddings": 512, "position_embedding_type": "learned_absolute",
        "ffn_hidden_size": 2048, "normalization": "LayerNorm", "add_bias_linear": True, "swiglu": False, "bf16": True, "use_distributed_optimizer": False}
said.update(word.split("=") for word in sys.argv[3:])
seconds = [3 * step] + [step * (1 + 0.001 * (i % 5)) for i in range(1, 10)]
day = "2026-09-01 10:00:%02d"


def megatron(bridge=False):
    if not bridge:
        print("-" * 24 + " arguments " + "-" * 24)
        for key in sorted(said):
            print("  %s %s %s" % (key, "." * (47 - len(key)), said[key]))
        print("-" * 20 + " end of arguments " + "-" * 21)
    else:
        print("model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2")
    for i, s in enumerate(seconds, 1):
        if bridge:
            print("Step Time : %.2fs GPU utilization: 512.6MODEL_TFLOP/s/GPU" % s)
        print(" [%s%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
              "learning rate: 1.000000E-05 | global batch size: %5d | lm loss: 9.123456E+00 | loss scale: 1.0 |"
              % (day % i, "" if bridge else ".123456", i, 500, 16 * i, 1e3 * s, 16))
        if i == 2 and not bridge:
            for rank, held in ((0, 300.5), (4, 340.25)):
                print("[Rank %d] (after 2 iterations) memory (MB) | allocated: 200.00 | max allocated: %.2f | "
                      "reserved: 400.00 | max reserved: 420.00" % (rank, held))


def mindformers():
    for i, s in enumerate(seconds, 1):
        print((day % i) + ",123 - mindformers - INFO - { Epoch:[  1/  1], step:[%5d/  500], loss:[9.123456/9.123456], "
              "per_step_time: %dms, lr: 1e-05, overflow cond: False, loss_scale: 1.0, global_norm: [2.345]"
              % (i, round(1e3 * s)))
        print((day % i) + ",124 - mindformers - INFO -    4.0%% |##      | %.5f samples/s/p  0:48:57 }" % (2 / s))


def mindspore():
    for i, s in enumerate(seconds, 1):
        print("epoch: %d step: 100, loss is 3.64" % i)
        print("Train epoch time: %.3f ms, per step time: %.3f ms" % (1e5 * s, 1e3 * s))


def torchtitan():
    print("[rank0]:[titan] %s,000 - root - INFO - Building device mesh with parallelism: pp=2, dp_replicate=1, "
          "dp_shard=2, cp=1, tp=2, ep=1" % (day % 0))
    for i, s in enumerate(seconds, 1):
        for rank in range(2):
            print("[rank%d]:[titan] %s,123 - root - INFO - \x1b[31mstep: %2d  \x1b[32mloss:  9.12345  \x1b[38;2;180;60;0m"
                  "grad_norm:  2.3450  \x1b[34mmemory:  0.35GiB(0.44%%)  \x1b[36mtps: %s  \x1b[35mtflops: 470.12  "
                  "mfu: 47.53%%\x1b[39m" % (rank, day % i, i, format(round(512 * 16 / 8 / s), ",")))


def deepspeed():
    print("  train_batch_size ............. 16\n  train_micro_batch_size_per_gpu  1\n  zero_optimization_stage ...... 1")
    for i, s in enumerate(seconds, 1):
        print("steps: %d loss: 9.1235 iter time (s): %.3f samples/sec: %.3f" % (i, s, 16 / s))
    print("MA 0.2 GB         Max_MA 0.34 GB         CA 0.5 GB         Max_CA 1 GB ")


def nemo():
    for what, ranks in (("data parallel group ", [0, 1]), ("tensor model parallel group", [0, 1, 2, 3]),
                        ("pipeline model parallel group", [0])):
        print("[NeMo I %s megatron_init:439] Rank 0 has %s: %s" % (day % 0, what, ranks))
    for i, s in enumerate(seconds):
        print("Training epoch 0, iteration %d/499 | lr: 1e-05 | global_batch_size: 16 | global_step: %d | "
              "reduced_train_loss: 9.123 | train_step_timing in s: %.4f" % (i, i, s))
    print("Validation: iteration 1/10")


def nanotron():
    print("iteration_step,consumed_tokens,time_per_iteration_ms,tokens_per_sec,tokens_per_sec_per_gpu,global_batch_size")
    for i, s in enumerate(seconds, 1):
        print("%d,%d,%.2f,%.1f,%.1f,16" % (i, 8192 * i, 1e3 * s, 8192 / s, 1024 / s))


def table():
    print("step,rank,step_time_s,peak_memory_gib")
    for i, s in enumerate(seconds, 1):
        for rank in (0, 4):
            print("%d,%d,%.4f,%.2f" % (i, rank, s, 1.9 if rank else 1.8))
    print("11,0,0.0", end="")


{"megatron": megatron, "bridge": lambda: megatron(True), "mindformers": mindformers, "mindspore": mindspore,
 "torchtitan": torchtitan, "deepspeed": deepspeed, "nemo": nemo, "nanotron": nanotron, "table": table}[form]()
