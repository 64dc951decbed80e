/* SPDX-License-Identifier: Apache-2.0 */
#include "decision/language.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

#define EITHER(...) {{__VA_ARGS__}, {__VA_ARGS__}}
/* SelectiveAC, FullAC. */
#define UNIFORM(...) {.kind = EITHER(__VA_ARGS__), .rule = AP_KINDS_UNIFORM}
#define ALIKE {UNIFORM("none"), UNIFORM("products/2"), UNIFORM("full")}
/* Lists count from a part's first layer on, so each kind has all words of those before it: what saves the
 * most bytes in a second comes first. What a norm gives is gathered where sums are dealt, and again if that
 * is made again. */
#define LISTS {{.kind = { \
	{"none", "activation", "layernorm+activation", "selective+layernorm+activation", "full"}, \
	{"none", "activation", "selective+activation", "selective+communication+activation", \
		"selective+communication+layernorm+activation", "full"}}, .rule = AP_KINDS_LIST}}
#define BLOCK {UNIFORM("none", "full")} /* modules: all or none */
/* By what they save in a second: the core of attention, where no kernel does so itself, and activation
 * functions; norms; queries, keys and values of low rank; feed-forward parts. Of these norms save the fewest
 * bytes, and take the least time, so each set stands with them and without. */
#define SETS(activation) {"layernorm", "selective+" activation, "selective+layernorm+" activation, \
	"selective+mla_up_proj+" activation, "selective+layernorm+mla_up_proj+" activation, \
	"selective+mla_up_proj+mlp+moe", "selective+layernorm+mla_up_proj+mlp+moe"}
#define TURNS {"1f1b", "interleaved"}
#define TORCH {"1f1b", "interleaved", "zero_bubble_v"}
#define WHOLE 1
#define STATES (1 << 1)
#define GRADIENTS (1 << 2)
#define WEIGHTS (1 << 3)
#define DEALT (STATES | GRADIENTS | WEIGHTS)
#define ANY_LEVEL (WHOLE | STATES | GRADIENTS | WEIGHTS)

/* GPipe is left out where 1F1B runs: it takes as long and holds more. */
static const struct ap_executor_language languages[] = {
	{"mindspore", TURNS, ANY_LEVEL, LISTS, .groups = DEALT, .regathers = true, .uneven = true,
		.sums = true, .fills = true},
	{"mindspore-semi-auto", TURNS, ANY_LEVEL, LISTS, .groups = DEALT, .regathers = true, .uneven = true,
		.fills = true},
	{"mindspore-sharding-propagation", TURNS, ANY_LEVEL, LISTS, .groups = DEALT, .regathers = true,
		.uneven = true, .fills = true},
	{"mindformers", TURNS, ANY_LEVEL, LISTS, .groups = DEALT, .regathers = true, .uneven = true,
		.sums = true, .fills = true},
	{"mindspeed", TURNS, WHOLE | STATES, BLOCK, SETS("activation"), .uneven = true, .sums = true,
		.whole_rounds = true, .experts_by_sequence = true},
	/* --num-distributed-optimizer-instances */
	{"megatron", TURNS, ANY_LEVEL, BLOCK, SETS("moe_act"), .groups = STATES, .groups_of_dense = true,
		.uneven = true, .sums = true, .whole_rounds = true, .experts_by_sequence = true},
	/* data_parallel_replicate_degree */
	{"torchtitan", TORCH, GRADIENTS | WEIGHTS, ALIKE, .groups = DEALT, .groups_of_samples = true,
		.groups_of_dense = true, .sums_whole = true, .uneven = true, .sums = true, .fills = true,
		.whole_rounds = true},
	/* mics_shard_size */
	{"deepspeed", {"1f1b"}, ANY_LEVEL,
		{UNIFORM("none"), UNIFORM("full")},
		.groups = WEIGHTS, .groups_of_samples = true, .stage_levels = WHOLE | STATES,
		.sequences_alone = true, .experts_whole = true},
	{"generic", TORCH, ANY_LEVEL, LISTS, .groups = DEALT, .regathers = true, .uneven = true,
		.unequal = true, .sums = true},
};

const struct ap_executor_language *ap_executor_language_free(struct ap_ctx *ctx,
	const struct ap_executor_language *own)
{
	struct ap_executor_language *l = AP_NEW(ctx->arena, struct ap_executor_language);

	*l = *ap_executor_language_of("generic");
	l->route = own->route;
	memcpy(l->modules, own->modules, sizeof l->modules);
	l->sums_whole = own->sums_whole;
	l->regathers = own->regathers;
	return l;
}

const struct ap_executor_language *ap_executor_language_at(size_t i)
{
	return i < AP_COUNT(languages) ? &languages[i] : NULL;
}

const struct ap_executor_language *ap_executor_language_of(const char *route)
{
	size_t i = 0;

	while (i < AP_COUNT(languages) && strcmp(languages[i].route, route) != 0)
		i++;
	assert(i < AP_COUNT(languages));
	return &languages[i];
}
