/* SPDX-License-Identifier: Apache-2.0 */
#include "route/route.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "route/propagation.h"
#include "route/semi_auto.h"

#define AS_PLANNED "every operator as planned"
#define DEGREES "degrees of parallelism, and nothing else of a plan: --hybrid says them; "

#define FLAT .dealing = AP_DEALING_FLAT
#define PADDED_ROWS .dealing = AP_DEALING_PADDED_ROWS
#define GATHER .cp_algo = AP_CP_ALL_GATHER, .cp_algos = 1 << AP_CP_ALL_GATHER
#define ALSO(algorithms) .cp_algo = AP_CP_ALL_GATHER, .cp_algos = 1 << AP_CP_ALL_GATHER | (algorithms)
#define ROUND .cp_algo = AP_CP_RING, .cp_algos = (1 << AP_CP_ALGOS) - (1 << AP_CP_ALL_GATHER)

static const struct ap_route routes[] = {
	{"mindspore", "mindspore", AS_PLANNED ": by an operator strategy file, or shard() of each operator",
		AP_EXECUTOR_MINDSPORE, GATHER},
	{"mindspore-semi-auto", "mindspore",
		"a strategy checkpoint in semi_auto_parallel: operators without a parameter by their batch",
		AP_EXECUTOR_MINDSPORE, GATHER, .fix = ap_semi_auto_fix, .complete = ap_semi_auto_complete},
	{"mindspore-sharding-propagation", "mindspore",
		"a strategy checkpoint in sharding_propagation: other operators as their neighbours are cut",
		AP_EXECUTOR_MINDSPORE, GATHER, .complete = ap_propagation_complete,
		.completer = ap_propagation_completer},
	{"mindformers", "mindspore", DEGREES "MindFormers' networks call shard() by them",
		AP_EXECUTOR_MINDSPORE, ALSO(1 << AP_CP_ALL_TO_ALL), .degrees = true},
	{"mindspeed", "mindspeed", DEGREES "MindSpeed runs Megatron's networks on Ascend",
		AP_EXECUTOR_GENERIC, FLAT, ROUND, .cp_even = true, .vocabulary_parallel = true,
		.degrees = true, .recompute_whole = true},
	{"megatron", "megatron", DEGREES "Megatron-LM", AP_EXECUTOR_GENERIC, FLAT, ROUND,
		.cp_even = true, .relays = true,
		.vocabulary_parallel = true, .degrees = true, .recompute_whole = true},
	{"torchtitan", "torchtitan", DEGREES "torchtitan, its parameters dealt by FSDP2",
		AP_EXECUTOR_GENERIC, PADDED_ROWS, ALSO(1 << AP_CP_RING), .cp_even = true, .degrees = true,
		.relays = true, .fsdp2 = true, .recompute_whole = true},
	{"deepspeed", "generic", DEGREES "DeepSpeed: ZeRO, autotp, Ulysses, stages of PipelineModule",
		AP_EXECUTOR_GENERIC, FLAT, .cp_algo = AP_CP_ALL_TO_ALL, .cp_algos = 1 << AP_CP_ALL_TO_ALL,
		.degrees = true, .recompute_whole = true},
	{"generic", "generic",
		AS_PLANNED ", gradients of replicated activations summed where they arise",
		AP_EXECUTOR_GENERIC, FLAT, ALSO(1 << AP_CP_RING | 1 << AP_CP_ALL_TO_ALL), .relays = true,
		.recompute_whole = true},
};

const struct ap_route *ap_route_at(size_t i)
{
	return i < AP_COUNT(routes) ? &routes[i] : NULL;
}

/* A completer that keeps nothing between runs. */
struct plain {
	struct ap_completer base;
	const struct ap_route *route;
	const struct ap_graph *g;
	const struct ap_machine *m;
	const struct ap_step *step;
};

static enum ap_status complete_anew(struct ap_completer *c, struct ap_ctx *ctx,
	const int32_t *const *held, const int32_t *const **out)
{
	const struct plain *p = (const struct plain *)c;

	return p->route->complete(ctx, p->g, p->m, p->step, held, out);
}

static void leave(struct ap_completer *c)
{
	(void)c;
}

struct ap_completer *ap_route_completer(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step)
{
	struct plain *p;

	if (route->completer)
		return route->completer(ctx, g, m, step);
	p = AP_NEW(ctx->arena, struct plain);
	*p = (struct plain){{complete_anew, leave}, route, g, m, step};
	return &p->base;
}
