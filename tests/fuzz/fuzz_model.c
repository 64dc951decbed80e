/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of models: what is read must become a graph that is accepted. */
#include "base/vec.h"
#include "fuzz.h"
#include "model/hf.h"

/* Types of models, keys and values. */
static const char *word(size_t i)
{
	static const char *const words[] = {"model_type", "architectures", "hidden_size", "n_embd", "num_hidden_layers",
		"num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size",
		"max_position_embeddings", "tie_word_embeddings", "attention_bias", "mlp_bias", "bias", "num_experts",
		"num_local_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step",
		"mlp_only_layers", "layer_types", "full_attention", "sliding_window", "hidden_act", "silu", "gelu", "null",
		"quantization_config", "text_config", "torch_dtype", "float16", "LlamaForCausalLM", "rms_norm_eps",
		"n_routed_experts", "n_shared_experts", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
		"v_head_dim", "n_group", "topk_group", "first_k_dense_replace", "num_nextn_predict_layers",
		"sliding_attention", "layer_types", "attn_config", "attn_type", "multiquery_attention", "n_head"};
	size_t n = AP_COUNT(words);

	return i < n ? words[i] : ap_hf_type_at(i - n);
}

static int try_input(const uint8_t *data, size_t size)
{
	static const char *const options[] = {"", "--attention small --dtype float16", "--loss fused --mtp 1",
		"--loss vocabulary-parallel --names mindformers", "--masked-positions 3", "--names mindformers --mtp 2"};

	if (fuzz_many(data, size, "layer", 2))
		return 0;
	fuzz_file("in.json", data, size);
	(void)fuzz_run("check in.json");
	if (fuzz_run("import in.json --sequence 16 --batch 8 -o out.json %s",
			options[fuzz_way(data, size, AP_COUNT(options))]) == AP_OK)
		fuzz_must("check out.json");
	return 0;
}

FUZZ_TARGET(model, word, try_input)
