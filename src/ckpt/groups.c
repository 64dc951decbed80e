/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the communication groups of a rank, and the ranks that hold the same data. */
#include "ckpt/groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/group.h"
#include "plan/terms.h"

struct collecting {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	int32_t stage;
	int64_t first, local; /* first rank of the stage; the rank within it */
	struct ap_map *known; /* ranks of known groups */
	AP_VEC(struct ap_group_ranks) groups;
};

/* The name depends only on the ranks, so plans with the same ranks agree. */
static const char *name_of(struct collecting *c, const int64_t *rank, uint32_t n)
{
	struct ap_str text;
	char hex[AP_SHA256_HEX + 1];

	if (n == c->p->machine->total)
		return *c->p->machine->chip->hccl ? "hccl_world_group" : "nccl_world_group";
	ap_str_init(&text, c->ctx->scratch);
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&text, "%s%" PRId64, i ? "-" : "", rank[i]);
	ap_sha256_hex(text.s, text.len, hex);
	hex[16] = '\0';
	return ap_arena_printf(c->ctx->arena, "%" PRIu32 "-%llu", n, strtoull(hex, NULL, 16));
}

/* Adds a new group; rank: global, ascending. */
static void add_group(struct collecting *c, const int64_t *rank, uint32_t n)
{
	struct ap_group_ranks group = {.n = n};
	bool fresh;

	ap_map_put(c->known, rank, n * sizeof *rank, &fresh);
	if (!fresh)
		return;
	group.name = name_of(c, rank, n);
	group.rank = ap_arena_memdup(c->ctx->arena, rank, n * sizeof *rank);
	AP_PUSH(c->ctx->arena, c->groups, group);
}

static void add_axes(struct collecting *c, const struct ap_axes *axes)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	uint32_t n = (uint32_t)ap_axes_size(axes);
	int64_t *rank = AP_NEW_N(c->ctx->scratch, int64_t, n);

	ap_axes_group(axes, c->local, rank);
	for (uint32_t i = 0; i < n; i++)
		rank[i] += c->first;
	if (n > 1)
		add_group(c, rank, n);
	ap_arena_release(c->ctx->scratch, mark);
}

static void add_comms(struct collecting *c, ap_id node, enum ap_phase phase)
{
	const struct ap_plan_op *op = &c->p->op[node];

	for (uint32_t i = 0; i < op->ncomm; i++)
		if (op->comm[i].comm.phase == phase && op->comm[i].comm.kind != AP_COLL_SEND)
			add_axes(c, &op->comm[i].comm.axes);
}

static bool is_here(const struct collecting *c, ap_id node)
{
	return ap_plan_op_stage(c->p, node) == c->stage;
}

static void add_steps(struct collecting *c, const struct ap_reshard_step *step, int n)
{
	for (int k = 0; k < n; k++) {
		struct ap_axes axes = {0};

		if (step[k].move == AP_MOVE_SLICE)
			continue;
		ap_axes_add(&axes, step[k].axis);
		add_axes(c, &axes);
	}
}

/* Redistributions are in the order of their consumers. */
static void add_forward(struct collecting *c)
{
	uint32_t move = 0;

	for (ap_id i = 0; i < c->p->graph->nnode; i++) {
		int32_t peer = c->p->graph->node[i].peer;

		for (; move < c->p->nmove && c->p->move[move].to == i; move++)
			if (is_here(c, i))
				add_steps(c, c->p->move[move].step, c->p->move[move].nstep);
		if (!is_here(c, i))
			continue;
		add_comms(c, i, AP_PHASE_FORWARD);
		if (peer >= 0 && peer != c->stage) { /* a pair with the same rank there */
			int64_t here = c->first + c->local, there = c->p->stage[peer].first_rank + c->local;
			const int64_t pair[] = {here < there ? here : there, here < there ? there : here};

			add_group(c, pair, 2);
		}
	}
}

/* Of an operator, whose redistributions end before *move. */
static void add_moves_back(struct collecting *c, ap_id node, uint32_t *move)
{
	while (*move > 0 && c->p->move[*move - 1].to > node)
		--*move;
	for (; *move > 0 && c->p->move[*move - 1].to == node; --*move)
		add_steps(c, c->p->move[*move - 1].back, c->p->move[*move - 1].nback);
}

static void add_backward(struct collecting *c)
{
	uint32_t move = c->p->nmove;

	for (ap_id i = c->p->graph->nnode; i-- > 0;)
		if (is_here(c, i)) {
			add_comms(c, i, AP_PHASE_RECOMPUTE);
			add_comms(c, i, AP_PHASE_BACKWARD);
			add_moves_back(c, i, &move);
			add_comms(c, i, AP_PHASE_GRADIENT);
		}
	for (ap_id i = 0; i < c->p->graph->nnode; i++)
		if (is_here(c, i))
			add_comms(c, i, AP_PHASE_OPTIMIZER);
}

/* Removes ranks that hold another part of a parameter. */
static void keep_equals(struct collecting *c, const struct ap_plan_param *param, bool *equal)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	uint32_t n = (uint32_t)ap_axes_size(&param->shard.replicas), own = 0;
	int64_t *rank = AP_NEW_N(c->ctx->scratch, int64_t, n), shards = param->shard.shards;
	bool *holds = AP_NEW_N(c->ctx->scratch, bool, c->p->machine->ndev);

	ap_axes_group(&param->shard.replicas, c->local, rank);
	while (rank[own] != c->local)
		own++;
	for (uint32_t i = 0; i < n; i++)
		holds[rank[i]] = i % shards == own % shards; /* consecutive replicas get different shards */
	for (uint32_t r = 0; r < c->p->machine->ndev; r++)
		equal[r] &= holds[r];
	ap_arena_release(c->ctx->scratch, mark);
}

static void find_restore(struct collecting *c, struct ap_groups *out)
{
	const struct ap_plan *p = c->p;
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	bool *equal = AP_NEW_N(c->ctx->scratch, bool, p->machine->ndev), fresh;
	struct ap_map *seen = ap_map_create(c->ctx->scratch);
	int64_t *restore = AP_NEW_N(c->ctx->arena, int64_t, p->machine->ndev);

	memset(equal, true, p->machine->ndev);
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_opt_shard *shard = &p->param[i].shard;
		struct {
			int64_t shards;
			struct ap_axis axis[AP_MAX_AXES];
		} key = {.shards = shard->shards};

		if (!p->graph->tensor[p->param[i].tensor].trainable || !is_here(c, p->param[i].node))
			continue;
		memcpy(key.axis, shard->replicas.axis,
			(size_t)shard->replicas.n * sizeof *shard->replicas.axis);
		ap_map_put(seen, &key, sizeof key, &fresh);
		if (fresh)
			keep_equals(c, &p->param[i], equal);
	}
	for (uint32_t r = 0; r < p->machine->ndev; r++)
		if (equal[r])
			restore[out->nrestore++] = c->first + r;
	out->restore = restore;
	ap_arena_release(c->ctx->scratch, mark);
}

void ap_groups_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, int64_t rank, struct ap_groups *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct collecting c = {.ctx = ctx, .p = p, .stage = (int32_t)(rank / p->machine->ndev),
		.local = rank % p->machine->ndev, .known = ap_map_create(ctx->arena)};

	c.first = p->stage[c.stage].first_rank;
	add_forward(&c);
	add_backward(&c);
	*out = (struct ap_groups){.n = (uint32_t)c.groups.n, .group = c.groups.v};
	find_restore(&c, out);
	ap_arena_release(ctx->scratch, mark);
}

/* Ranks have control characters as tags. */
static bool is_text(const char *bytes, size_t len)
{
	bool text = true;

	for (size_t i = 0; i < len && text; i++)
		text = (unsigned char)bytes[i] >= ' ' || (bytes[i] && strchr("\t\n\f\r", bytes[i]));
	return text;
}

/* A file begins with groups or, if there are none, with the list of ranks to restore from, which
 * are numbers. */
bool ap_groups_look_like(const char *bytes, size_t len)
{
	const unsigned char group = 0x0A, restore = 0x12, rank = 0x08;
	const unsigned char *b = (const unsigned char *)bytes;
	size_t at = 1;

	if (len < 2 || is_text(bytes, len))
		return false;
	if (*b == group)
		return true;
	while (at < len && b[at] >= 0x80) /* length of the list */
		at++;
	return *b == restore && at + 1 < len && b[at + 1] == rank;
}

static bool ascend(const int64_t *rank, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (rank[i] <= rank[i - 1])
			return false;
	return true;
}

enum ap_status ap_groups_check(struct ap_ctx *ctx, const char *file, const struct ap_groups *g)
{
	struct ap_where where = {.file = file};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);
	enum ap_status st = AP_OK;

	for (uint32_t i = 0; i < g->n; i++) {
		const char *name = ap_diag_name(ctx->diag, g->group[i].name);
		bool fresh;

		ap_map_put_str(names, g->group[i].name, &fresh);
		if (!fresh)
			st = ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "groups-names",
				"two groups are called \"%s\"", name);
		if (!g->group[i].n || !ascend(g->group[i].rank, g->group[i].n))
			st = ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "groups-ranks",
				"group \"%s\": its ranks should ascend, at least one", name);
	}
	if (!g->nrestore || !ascend(g->restore, g->nrestore))
		st = ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "groups-restore",
			"ckpt_restore_rank_list: ranks should ascend, at least one; MindSpore's "
			"restore_group_info_list() refuses an empty list");
	ap_arena_release(ctx->scratch, mark);
	return st;
}
