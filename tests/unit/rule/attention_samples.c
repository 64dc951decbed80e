/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in training and inference. */
#include "move_samples.h"

#include "base/vec.h"

const struct move_sample attention_samples[] = {
	{"FlashAttentionScore", "float16[16,6,4] float16[20,2,4] float16[20,2,4]",
		"head_num=6 input_layout=TND", "",
		"[s (n g) d!], [t! n d!], [t! n d!] -> [s (n g) d!], [s (n g) 8], [s (n g) 8]; "
			"s=16 n=2 g=3 d=4 t=20",
		"float16[16,6,4] float32[16,6,8] float32[16,6,8]", "sngdt"},
	{"FlashAttentionScore",
		"float16[16,24] float16[20,8] float16[20,8] - - - uint8[2048,2048]",
		"head_num=6 input_layout=TH sparse_mode=3 actual_seq_qlen=8,16 "
			"actual_seq_kvlen=4,20", "? ? ? ?",
		"[s (n g d!)], [t! (n d!)], [t! (n d!)], [2048 2048] -> [s (n g) 8], [s (n g) "
			"8], [1], [s (n g d!)]; s=16 n=2 g=3 d=4 t=20",
		"float32[16,6,8] float32[16,6,8] float16[1] float16[16,24]", "sngdt"},
	{"FlashAttentionScore",
		"float16[16,6,4] float16[20,2,4] float16[20,2,4] float16[2,6,8,16]",
		"head_num=6 input_layout=TND sparse_mode=4 pre_tokens=4", "",
		"[s (n g) d!], [t! n d!], [t! n d!], [2 (n g) 8 16] -> [s (n g) d!], [s (n g) "
			"8], [s (n g) 8]; s=16 n=2 g=3 d=4 t=20",
		"float16[16,6,4] float32[16,6,8] float32[16,6,8]", "sngdt"},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,8,8] float16[2,8,8]",
		"num_heads=6 num_key_value_heads=2", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)] -> [b s! (n g d!)]; b=2 s=8 n=2 "
			"g=3 d=4 t=8", "float16[2,8,24]", "bsngdt"},
	{"PromptFlashAttention",
		"float16[2,6,8,4] float16[2,6,12,4] float16[2,6,12,4] bool[2,1,8,12] int64[2] "
			"int64[2]", "num_heads=6 input_layout=BNSD", "",
		"[b n s! d!], [b n t! d!], [b n t! d!], [b 1 s! t!], [b], [b] -> [b n s! d!]; "
			"b=2 n=6 s=8 d=4 t=12", "float16[2,6,8,4]", "bnsdt"},
	{"PromptFlashAttention",
		"float16[2,8,24] float16[2,8,24] float16[2,8,24] bool[2048,2048]",
		"num_heads=6 sparse_mode=2", "",
		"[b s! (n d!)], [b t! (n d!)], [b t! (n d!)], [2048 2048] -> [b s! (n d!)]; "
			"b=2 s=8 n=6 d=4 t=8", "float16[2,8,24]", "bsndt"},
	{"FusedInferAttentionScore",
		"float16[2,8,6,4] float16[2,12,2,4] float16[2,12,2,4] float16[1,6,8,12] "
			"bool[8,12] int64[2]", "num_heads=6 input_layout=BSND", "? ?",
		"[b s! (n g) d!], [b t! n d!], [b t! n d!], [1 (n g) s! t!], [s! t!], [b] -> "
			"[b s! (n g) d!], [b (n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,6,4] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore", "float16[2,8,24] float16[2,8,8] float16[2,8,8]",
		"num_heads=6", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)] -> [b s! (n g d!)]; b=2 s=8 n=2 "
			"g=3 d=4 t=8", "float16[2,8,24]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,6,8,4] float16[2,6,8,4] float16[2,6,8,4] - bool[1,8,8]",
		"num_heads=6 input_layout=BNSD", "",
		"[b n s! d!], [b n t! d!], [b n t! d!], [1 s! t!] -> [b n s! d!]; b=2 n=6 s=8 "
			"d=4 t=8", "float16[2,6,8,4]", "bnsdt"},
	{"IncreFlashAttention",
		"float16[2,1,24] float16[2,8,8] float16[2,8,8] bool[2,8] int64[2]", "num_heads=6",
		"",
		"[b 1 (n g d!)], [b t! (n d!)], [b t! (n d!)], [b t!], [b] -> [b 1 (n g d!)]; "
			"b=2 n=2 g=3 d=4 t=8", "float16[2,1,24]", "bngdt"},
	{"IncreFlashAttention",
		"float16[2,6,1,4] float16[2,6,8,4] float16[2,6,8,4] bool[2,1,1,8] int64[1] "
			"float16[2,6,1,8]", "num_heads=6 input_layout=BNSD", "",
		"[b n 1 d!], [b n t! d!], [b n t! d!], [b 1 1 t!], [1], [b n 1 t!] -> [b n 1 "
			"d!]; b=2 n=6 d=4 t=8", "float16[2,6,1,4]", "bndt"},
	{"PagedAttention",
		"float16[2,1,24] float16[9,16,2,4] float16[9,16,2,4] int32[2,3] int32[2]",
		"head_num=6 kv_head_num=2", "",
		"[b 1 (n g d!)], [x!@ y! n d!], [x!@ y! n d!], [b m!], [b] -> [b 1 (n g d!)]; "
			"b=2 n=2 g=3 d=4 x=9 y=16 m=3", "float16[2,1,24]", "bngdxym"},
	{"PagedAttentionMask",
		"float16[2,1,24] float16[9,16,2,4] float16[9,16,2,4] int32[2,3] int32[2] "
			"float16[2,6,1,48]", "head_num=6 kv_head_num=2", "",
		"[b 1 (n g d!)], [x!@ y! n d!], [x!@ y! n d!], [b m!], [b], [b (n g) 1 48] -> "
			"[b 1 (n g d!)]; b=2 n=2 g=3 d=4 x=9 y=16 m=3", "float16[2,1,24]",
		"bngdxym"},
	{"ReshapeAndCache",
		"float16[2,3,8] float16[2,3,8] float16[9,16,2,4] float16[9,16,2,4] int32[6]", "",
		"",
		"[b! s! (n d!)], [b! s! (n d!)], [x!@ y!@ n d!], [x!@ y!@ n d!], [(b! s!)] -> "
			"[b! s! (n d!)]; b=2 s=3 n=2 d=4 x=9 y=16", "float16[2,3,8]", "bsndxy"},
	{"KVCacheMgr", "float16[2,6,8,4] float16[2,6,1,4] int32[1]", "", "",
		"[b n s! d!], [b n 1 d!], [1] -> [b n s! d!]; b=2 n=6 s=8 d=4",
		"float16[2,6,8,4]", "bnsd"},
	{"KVCacheMgr", "float16[2,6,8,4] float16[2,6,1,4] int32[2]", "", "",
		"[b n s! d!], [b n 1 d!], [b] -> [b n s! d!]; b=2 n=6 s=8 d=4",
		"float16[2,6,8,4]", "bnsd"},
	{"KVCacheScatterUpdate", "float16[2,6,8,4] int64[2] float16[2,6,1,4]",
		"axis=-2 reduce=update", "",
		"[b n s! d!], [b], [b n 1 d!] -> [b n s! d!]; b=2 n=6 s=8 d=4",
		"float16[2,6,8,4]", "bnsd"},
	{"KVCacheScatterUpdate", "float16[2,6,4,8] int64[2] float16[2,6,4,1]", "axis=-1", "",
		"[b n s! d!], [b], [b n s! 1] -> [b n s! d!]; b=2 n=6 s=4 d=8",
		"float16[2,6,4,8]", "bnsd"},
	{"ApplyRotaryPosEmb", "float16[2,3,24] float16[2,3,8] float16[9,4] float16[9,4] int32[2]",
		"", "? ?",
		"[b s! (n g! d!)], [b s! (n d!)], [9 d!], [9 d!], [b] -> [b s! (n g! d!)], [b "
			"s! (n d!)]; b=2 s=3 n=2 g=3 d=4", "float16[2,3,24] float16[2,3,8]",
		"bsngd"},
	{"ApplyRotaryPosEmb",
		"float16[2,6,3,4] float16[2,2,3,4] float32[9,4] float32[9,4] int32[2]", "", "? ?",
		"[b (n g!) s! d!], [b n s! d!], [9 d!], [9 d!], [b] -> [b (n g!) s! d!], [b n "
			"s! d!]; b=2 n=2 g=3 s=3 d=4", "float16[2,6,3,4] float16[2,2,3,4]",
		"bngsd"},
	{"WKV",
		"float32[6] float32[6] float32[2,5,6] float32[2,5,6] float32[2,6] float32[2,6] "
			"float32[2,6]", "", "? ? ? ?",
		"[c], [c], [b t! c], [b t! c], [b c], [b c], [b c] -> [b t! c], [b c], [b c], "
			"[b c]; c=6 b=2 t=5",
		"float32[2,5,6] float32[2,6] float32[2,6] float32[2,6]", "cbt"},
	{"PromptFlashAttention",
		"float16[2,8,24] float16[2,12,8] float16[2,12,8] bool[2048,2048]",
		"num_heads=6 input_layout=BSH sparse_mode=3", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [2048 2048] -> [b s! (n g "
			"d!)]; b=2 s=8 n=2 g=3 d=4 t=12", "float16[2,8,24]", "bsngdt"},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,12,8] float16[2,12,8] bool[8,12]",
		"num_heads=6 input_layout=BSH", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [s! t!] -> [b s! (n g d!)]; "
			"b=2 s=8 n=2 g=3 d=4 t=12", "float16[2,8,24]", "bsngdt"},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,12,8] float16[2,12,8] bool[2,8,12]",
		"num_heads=6 input_layout=BSH sparse_mode=1", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [b s! t!] -> [b s! (n g d!)]; "
			"b=2 s=8 n=2 g=3 d=4 t=12", "float16[2,8,24]", "bsngdt"},
	{"PromptFlashAttention", "float16[2,8,24] float16[2,12,8] float16[2,12,8] bool[1,1,8,12]",
		"num_heads=6 input_layout=BSH", "",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [1 1 s! t!] -> [b s! (n g "
			"d!)]; b=2 s=8 n=2 g=3 d=4 t=12", "float16[2,8,24]", "bsngdt"},
	{"PromptFlashAttention",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] bool[2048,2048]",
		"num_heads=6 input_layout=BNSD sparse_mode=3", "",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [2048 2048] -> [b (n g) s! d!]; "
			"b=2 n=2 g=3 s=8 d=4 t=12", "float16[2,6,8,4]", "bngsdt"},
	{"PromptFlashAttention",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] bool[8,12]",
		"num_heads=6 input_layout=BNSD", "",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [s! t!] -> [b (n g) s! d!]; b=2 "
			"n=2 g=3 s=8 d=4 t=12", "float16[2,6,8,4]", "bngsdt"},
	{"PromptFlashAttention",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] bool[2,8,12]",
		"num_heads=6 input_layout=BNSD sparse_mode=1", "",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [b s! t!] -> [b (n g) s! d!]; b=2 "
			"n=2 g=3 s=8 d=4 t=12", "float16[2,6,8,4]", "bngsdt"},
	{"PromptFlashAttention",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] bool[1,1,8,12]",
		"num_heads=6 input_layout=BNSD", "",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [1 1 s! t!] -> [b (n g) s! d!]; "
			"b=2 n=2 g=3 s=8 d=4 t=12", "float16[2,6,8,4]", "bngsdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,24] float16[2,12,8] float16[2,12,8] - bool[2048,2048]",
		"num_heads=6 input_layout=BSH sparse_mode=3", "? ?",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [2048 2048] -> [b s! (n g "
			"d!)], [b (n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,24] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,24] float16[2,12,8] float16[2,12,8] - bool[8,12]",
		"num_heads=6 input_layout=BSH", "? ?",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [s! t!] -> [b s! (n g d!)], [b "
			"(n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,24] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,24] float16[2,12,8] float16[2,12,8] - bool[2,8,12]",
		"num_heads=6 input_layout=BSH sparse_mode=1", "? ?",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [b s! t!] -> [b s! (n g d!)], "
			"[b (n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,24] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,24] float16[2,12,8] float16[2,12,8] - bool[1,1,8,12]",
		"num_heads=6 input_layout=BSH", "? ?",
		"[b s! (n g d!)], [b t! (n d!)], [b t! (n d!)], [1 1 s! t!] -> [b s! (n g "
			"d!)], [b (n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,24] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] - bool[2048,2048]",
		"num_heads=6 input_layout=BNSD sparse_mode=3", "? ?",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [2048 2048] -> [b (n g) s! d!], [b "
			"(n g) s! 1]; b=2 n=2 g=3 s=8 d=4 t=12",
		"float16[2,6,8,4] float32[2,6,8,1]", "bngsdt"},
	{"FusedInferAttentionScore",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] - bool[8,12]",
		"num_heads=6 input_layout=BNSD", "? ?",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [s! t!] -> [b (n g) s! d!], [b (n "
			"g) s! 1]; b=2 n=2 g=3 s=8 d=4 t=12", "float16[2,6,8,4] float32[2,6,8,1]",
		"bngsdt"},
	{"FusedInferAttentionScore",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] - bool[2,8,12]",
		"num_heads=6 input_layout=BNSD sparse_mode=1", "? ?",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [b s! t!] -> [b (n g) s! d!], [b "
			"(n g) s! 1]; b=2 n=2 g=3 s=8 d=4 t=12",
		"float16[2,6,8,4] float32[2,6,8,1]", "bngsdt"},
	{"FusedInferAttentionScore",
		"float16[2,6,8,4] float16[2,2,12,4] float16[2,2,12,4] - bool[1,1,8,12]",
		"num_heads=6 input_layout=BNSD", "? ?",
		"[b (n g) s! d!], [b n t! d!], [b n t! d!], [1 1 s! t!] -> [b (n g) s! d!], [b "
			"(n g) s! 1]; b=2 n=2 g=3 s=8 d=4 t=12",
		"float16[2,6,8,4] float32[2,6,8,1]", "bngsdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,6,4] float16[2,12,2,4] float16[2,12,2,4] - bool[2048,2048]",
		"num_heads=6 input_layout=BSND sparse_mode=3", "? ?",
		"[b s! (n g) d!], [b t! n d!], [b t! n d!], [2048 2048] -> [b s! (n g) d!], [b "
			"(n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,6,4] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,6,4] float16[2,12,2,4] float16[2,12,2,4] - bool[8,12]",
		"num_heads=6 input_layout=BSND", "? ?",
		"[b s! (n g) d!], [b t! n d!], [b t! n d!], [s! t!] -> [b s! (n g) d!], [b (n "
			"g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12", "float16[2,8,6,4] float32[2,6,8,1]",
		"bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,6,4] float16[2,12,2,4] float16[2,12,2,4] - bool[2,8,12]",
		"num_heads=6 input_layout=BSND sparse_mode=1", "? ?",
		"[b s! (n g) d!], [b t! n d!], [b t! n d!], [b s! t!] -> [b s! (n g) d!], [b "
			"(n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,6,4] float32[2,6,8,1]", "bsngdt"},
	{"FusedInferAttentionScore",
		"float16[2,8,6,4] float16[2,12,2,4] float16[2,12,2,4] - bool[1,1,8,12]",
		"num_heads=6 input_layout=BSND", "? ?",
		"[b s! (n g) d!], [b t! n d!], [b t! n d!], [1 1 s! t!] -> [b s! (n g) d!], [b "
			"(n g) s! 1]; b=2 s=8 n=2 g=3 d=4 t=12",
		"float16[2,8,6,4] float32[2,6,8,1]", "bsngdt"},
	{"IncreFlashAttention", "float16[2,1,24] float16[2,12,8] float16[2,12,8] bool[1,12]",
		"num_heads=6 input_layout=BSH", "",
		"[b 1 (n g d!)], [b t! (n d!)], [b t! (n d!)], [1 t!] -> [b 1 (n g d!)]; b=2 "
			"n=2 g=3 d=4 t=12", "float16[2,1,24]", "bngdt"},
	{"IncreFlashAttention", "float16[2,1,24] float16[2,12,8] float16[2,12,8] bool[2,1,12]",
		"num_heads=6 input_layout=BSH", "",
		"[b 1 (n g d!)], [b t! (n d!)], [b t! (n d!)], [b 1 t!] -> [b 1 (n g d!)]; b=2 "
			"n=2 g=3 d=4 t=12", "float16[2,1,24]", "bngdt"},
	{"IncreFlashAttention", "float16[2,1,24] float16[2,12,8] float16[2,12,8] bool[2,1,1,12]",
		"num_heads=6 input_layout=BSH", "",
		"[b 1 (n g d!)], [b t! (n d!)], [b t! (n d!)], [b 1 1 t!] -> [b 1 (n g d!)]; "
			"b=2 n=2 g=3 d=4 t=12", "float16[2,1,24]", "bngdt"},
	{"IncreFlashAttention", "float16[2,6,1,4] float16[2,2,12,4] float16[2,2,12,4] bool[1,12]",
		"num_heads=6 input_layout=BNSD", "",
		"[b (n g) 1 d!], [b n t! d!], [b n t! d!], [1 t!] -> [b (n g) 1 d!]; b=2 n=2 "
			"g=3 d=4 t=12", "float16[2,6,1,4]", "bngdt"},
	{"IncreFlashAttention",
		"float16[2,6,1,4] float16[2,2,12,4] float16[2,2,12,4] bool[2,1,12]",
		"num_heads=6 input_layout=BNSD", "",
		"[b (n g) 1 d!], [b n t! d!], [b n t! d!], [b 1 t!] -> [b (n g) 1 d!]; b=2 n=2 "
			"g=3 d=4 t=12", "float16[2,6,1,4]", "bngdt"},
	{"IncreFlashAttention",
		"float16[2,6,1,4] float16[2,2,12,4] float16[2,2,12,4] bool[2,1,1,12]",
		"num_heads=6 input_layout=BNSD", "",
		"[b (n g) 1 d!], [b n t! d!], [b n t! d!], [b 1 1 t!] -> [b (n g) 1 d!]; b=2 "
			"n=2 g=3 d=4 t=12", "float16[2,6,1,4]", "bngdt"},
};

const size_t attention_nsample = AP_COUNT(attention_samples);
