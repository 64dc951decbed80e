/* SPDX-License-Identifier: Apache-2.0 */
/* Files that say a plan to other frameworks: what is read must be settings that --config takes. */
#include "base/vec.h"
#include "fuzz.h"

static const char *word(size_t i)
{
	static const char *const words[] = {
#define WORD(language, path, meaning, ours) path,
#define COPY(language, path, key) path,
#define UNSAID(language, path, why) path,
#include "api/launch.def"
#undef WORD
#undef COPY
#undef UNSAID
		"model:", "  model_config:", "    num_layers: 2", "    hidden_size: 8", "    num_heads: 2",
		"    vocab_size: 9", "    seq_length: 8", "    type: GPT2Config", "    multiple_of: 4",
		"    ffn_dim_multiplier: 1e9", "    n_kv_heads: 1", "moe_config: {expert_num: 2}", "use_legacy: False",
		"--num-layers 2", "--hidden-size 8", "--num-attention-heads 2", "--seq-length 8", "--vocab-size 9",
		"--position-embedding-type rope", "--swiglu", "--disable-bias-linear", "--num-experts 2",
		"--moe-layer-freq ([0]*1+[1]*1)", "--multi-latent-attention", "--q-lora-rank 4", "--kv-lora-rank 4",
		"--qk-head-dim 4", "--qk-pos-emb-head-dim 2", "--v-head-dim 4", "--mtp-num-layers 1",
		"optim_grads_params", "    kv_lora_rank: 4", "    q_lora_rank: 4", "    qk_rope_head_dim: 2",
		"    type: DeepseekV3Config", "n_group: 2", "topk_group: 1", "{'mlp\\.mul': [1,0]}", "--global-batch-size 4", "--tensor-model-parallel-size", "--micro-batch-size", "<<", "&a", "*a", "${TP:-8}",
			"$TP", "True",
		"None", "[[1,0],[0,1]]", "Ettt|(t*4|)*2,t*5|tL", "full", "selective", "uniform",
			"block", "\"", "'",
		"------------------------ arguments ------------------------", "parallel_config:",
			"- ", "\\\n", "{\"train_micro_batch_size_per_gpu\": 2,", "\"zero_optimization\": {\"stage\": 3,",
		"\"mics_shard_size\": 2", "\"sequence_parallel_size\": 2,", "\"auto\"", "}"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	if (fuzz_many(data, size, "layer", 2))
		return 0;
	fuzz_file("in.yaml", data, size);
	(void)fuzz_run("evaluate pair.json --config in.yaml --print-config");
	(void)fuzz_run("evaluate pair.json --config in.yaml --device-num 4 --chip ascend910b");
	(void)fuzz_run("evaluate --config in.yaml --batch 4 --device-num 4 --chip h100");
	if (fuzz_run("import in.yaml --batch 4 -o out.json") == AP_OK)
		fuzz_must("check out.json");
	return 0;
}

FUZZ_TARGET(launch, word, try_input)
