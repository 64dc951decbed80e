/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of whole plans, of plan files and of strategy checkpoints. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "faults.h"

/* ---- gradients of the loss ---- */

static bool not_divided(struct ex_world *w, uint64_t *seed)
{
	bool was = *seed != 1;

	(void)w;
	*seed = 1;
	return was;
}

static bool divided_twice(struct ex_world *w, uint64_t *seed)
{
	bool was = *seed != 1;

	(void)w;
	*seed = ex_mul(*seed, *seed);
	return was;
}

/* ---- programs ---- */

#define PROGRAM(name) static bool name(struct ex_world *w, struct ex_program *p)

PROGRAM(move_dropped)
{
	(void)w;
	if (p->nmove == 0)
		return false;
	p->nmove--;
	return true;
}

PROGRAM(move_without_steps)
{
	(void)w;
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].nstep > 0) {
			p->move[i].nstep--;
			return true;
		}
	return false;
}

/* The last user of a parameter, or of a tensor, with several does not count. */
static bool forget(struct ex_world *w, struct ex_program *p, enum ap_tensor_kind kind)
{
	for (ap_id i = p->graph->nnode; i-- > 0;)
		for (int k = 0; k < p->oper[i].nin; k++) {
			const struct ap_tensor *t = &p->graph->tensor[p->graph->node[i].in[k]];
			bool *grad;

			if (t->kind != kind || t->nuse < 2 || !p->oper[i].in_grad[k])
				continue;
			grad = ap_arena_memdup(w->ctx->arena, p->oper[i].in_grad,
				p->oper[i].nin * sizeof *grad);
			grad[k] = false;
			p->oper[i].in_grad = grad;
			return true;
		}
	return false;
}

PROGRAM(consumer_forgotten)
{
	return forget(w, p, AP_TENSOR_ACT);
}

PROGRAM(use_forgotten)
{
	return forget(w, p, AP_TENSOR_PARAM);
}

/* Collectives of one phase are gone, at the first operator that has such. */
static bool drop_phase(struct ex_world *w, struct ex_program *p, enum ap_phase phase)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct ex_oper *o = &p->oper[i];
		struct ap_comm *own = ap_arena_memdup(w->ctx->arena, o->comm,
			(o->ncomm + 1) * sizeof *own);
		uint32_t n = 0;

		for (uint32_t c = 0; c < o->ncomm; c++)
			if (o->comm[c].phase != phase)
				own[n++] = o->comm[c];
		if (n == o->ncomm)
			continue;
		o->comm = own;
		o->narrow = NULL; /* of graphs without products in 8 bits */
		o->ncomm = n;
		return true;
	}
	return false;
}

/* It has no copy of its own either. */
PROGRAM(shares_nothing)
{
	(void)w;
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].shares != AP_NONE) {
			p->move[i].shares = AP_NONE;
			return true;
		}
	return false;
}

/* The first one's gradient goes back alone, that of another one beside it. */
PROGRAM(summed_apart)
{
	(void)w;
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].shares != AP_NONE) {
			const struct ex_program_move *own = &p->move[p->move[i].shares];

			p->move[i].shares = AP_NONE;
			p->move[i].step = own->step;
			p->move[i].nstep = own->nstep;
			p->move[i].bytes = own->bytes;
			p->move[i].element_bytes = own->element_bytes;
			p->move[i].back = own->back;
			p->move[i].nback = own->nback - 1;
			return own->nback > 0;
		}
	return false;
}

PROGRAM(no_forward)
{
	return drop_phase(w, p, AP_PHASE_FORWARD);
}

PROGRAM(no_backward)
{
	return drop_phase(w, p, AP_PHASE_BACKWARD);
}

PROGRAM(no_gradient)
{
	return drop_phase(w, p, AP_PHASE_GRADIENT);
}

PROGRAM(parameter_whole)
{
	(void)w;
	for (uint32_t i = 0; i < p->nparam; i++)
		for (int d = 0; d < p->param[i].layout.rank; d++)
			if (p->param[i].layout.dim[d].cut > 1) {
				p->param[i].layout.dim[d] = (struct ap_cut_dim){1, 0};
				return true;
			}
	return false;
}

/* Nobody adds it to the gradient that is exchanged. */
PROGRAM(sum_forgotten)
{
	(void)w;
	for (uint32_t i = 0; i < p->nparam; i++)
		if (p->param[i].nsum > 0) {
			p->param[i].nsum = 0;
			return true;
		}
	return false;
}

/* Rows are dealt among other ranks. */
PROGRAM(shard_elsewhere)
{
	(void)w;
	for (uint32_t i = 0; i < p->nparam; i++) {
		struct ap_axes *g = &p->param[i].shard.group;

		if (p->param[i].shard.shards < 2 || g->n != 1 ||
			(int64_t)g->axis[0].stride * g->axis[0].size * 2 > p->ndev)
			continue;
		g->axis[0].stride *= 2;
		return true;
	}
	return false;
}

PROGRAM(shard_forgotten)
{
	(void)w;
	for (uint32_t i = 0; i < p->nparam; i++)
		if (p->param[i].shard.shards > 1) {
			p->param[i].shard.shards = 1;
			return true;
		}
	return false;
}

PROGRAM(part_longer)
{
	(void)w;
	for (uint32_t i = 0; i < p->nparam; i++)
		if (p->param[i].shard.shards > 1 && !p->param[i].shard.by_rows) {
			p->param[i].shard.part++;
			return true;
		}
	return false;
}

/* ---- texts ---- */

/* What stands behind the n-th place of a key, from the list of operators on; NULL where there are
 * fewer. */
static char *value_of(const struct ap_str *s, const char *key, int n)
{
	char *operators = strstr(s->s, "\"operators\": ["), *at = operators ? operators : s->s;

	while ((at = strstr(at, key)) && n-- > 0)
		at += strlen(key);
	return at ? at + strlen(key) : NULL;
}

/* Another number in the place of one, of as many digits or with blanks before it. */
static bool put(char *at, long v)
{
	size_t n = strspn(at, "-0123456789");

	for (size_t i = n; i-- > 0; v /= 10)
		at[i] = (char)(v || i == n - 1 ? '0' + v % 10 : ' ');
	return v == 0;
}

/* The first number in brackets, of all places of the key, that is at least `least`. */
static char *number(const struct ap_str *s, const char *key, long least)
{
	char *at;

	for (int n = 0; (at = value_of(s, key, n)); n++)
		for (; *at && *at != '\n' && *at != '}'; at++)
			if (isdigit((unsigned char)*at) && at[-1] != '-' &&
				!isdigit((unsigned char)at[-1]) && atol(at) >= least)
				return at;
	return NULL;
}

#define TEXT(name) static bool name(struct ex_world *w, struct ap_str *s)

TEXT(map_shifted)
{
	char *at = number(s, "\"in_tensor_map\": ", 0);

	(void)w;
	return at && put(at, atol(at) + 1);
}

TEXT(matrix_changed)
{
	char *at = number(s, "\"dev_matrix\": ", 2);

	(void)w;
	return at && put(at, 1);
}

TEXT(axes_halved)
{
	char *at = number(s, "\"axes\": ", 2);

	(void)w;
	return at && put(at, atol(at) / 2);
}

TEXT(source_changed)
{
	char *at = number(s, "\"from_layout\": ", 2);

	(void)w;
	return at && put(at, 1);
}

TEXT(outer_changed)
{
	char *at = number(s, "\"outer\": ", 1);

	(void)w;
	return at && put(at, atol(at) == 1 ? 2 : 1);
}

TEXT(ranks_changed)
{
	char *at = number(s, "\"ranks\": [0, ", 1);

	(void)w;
	return at && put(at, 0);
}

/* Blanks for a line that another one of its list follows. */
TEXT(collective_deleted)
{
	char *at = strstr(s->s, "{\"phase\": ");

	(void)w;
	for (; at; at = strstr(at + 1, "{\"phase\": ")) {
		size_t n = strcspn(at, "\n");

		if (at[n - 1] != ',')
			continue;
		memset(at, ' ', n);
		return true;
	}
	return false;
}

TEXT(event_of_another)
{
	const char key[] = "\"operator\": ";
	char *at = value_of(s, "\"event\": \"forward\", ", 1);

	(void)w;
	at = at ? strstr(at, key) : NULL;
	return at && put(at + strlen(key), 0);
}

/* [2,1] for [1,2] in a checkpoint's strategy. */
TEXT(strategy_turned)
{
	char *at = strstr(s->s, "\"parallel_strategy\":[["), first;

	(void)w;
	for (; at; at = strstr(at + 1, "\"parallel_strategy\":[[")) {
		char *v = at + strlen("\"parallel_strategy\":[[");

		if (isdigit((unsigned char)v[0]) && v[1] == ',' && isdigit((unsigned char)v[2]) &&
			v[3] == ']' && v[0] != v[2]) {
			first = v[0];
			v[0] = v[2];
			v[2] = first;
			return true;
		}
	}
	return false;
}

TEXT(step_doubled)
{
	char *at = number(s, "\"opt_weight_shard_step\":", 1);

	(void)w;
	return at && atol(at) < 5 && put(at, 2 * atol(at));
}

TEXT(saved_map_changed)
{
	char *at = strstr(s->s, "\"tensor_map\":[");

	(void)w;
	for (; at; at = strstr(at + 1, "\"tensor_map\":[")) {
		char *v = at + strlen("\"tensor_map\":[");

		if (isdigit((unsigned char)*v)) {
			*v = *v == '0' ? '1' : '0';
			return true;
		}
	}
	return false;
}

const struct ex_fault ex_faults_program[] = {
	{"loss-not-divided", "the gradient of a repeated loss is not divided", "mlp attention",
		.seed = not_divided},
	{"loss-divided-twice", "it is divided twice", "mlp", .seed = divided_twice},
	{"plan-move-dropped", "a redistribution is missing", "mlp attention", .program = move_dropped},
	{"plan-step-dropped", "a step of a redistribution is missing", "mlp attention",
		.program = move_without_steps},
	{"plan-consumer-forgotten", "the gradient of one consumer is lost", "five attention",
		.program = consumer_forgotten},
	{"plan-use-forgotten", "the gradient of one use of a parameter is lost", "twice tied",
		.program = use_forgotten},
	{"plan-sum-forgotten", "a gradient that goes through another use's exchange is not in it", "together",
		.program = sum_forgotten},
	{"plan-shares-nothing", "a copy that another one's was to stand for is missing", "attention transformer",
		.program = shares_nothing},
	{"plan-summed-apart", "a gradient is brought back apart from those that it shares the way with, but for the "
		"last step", "attention transformer", .program = summed_apart},
	{"plan-no-forward", "an operator of a plan exchanges nothing forward", "mlp",
		.program = no_forward},
	{"plan-no-backward", "an operator of a plan exchanges nothing backward", "mlp",
		.program = no_backward},
	{"plan-no-gradient", "a parameter of a plan is not exchanged", "mlp twice",
		.program = no_gradient},
	{"plan-parameter-whole", "a parameter that is cut lies there whole", "mlp",
		.program = parameter_whole},
	{"plan-shard-elsewhere", "optimizer states are dealt among other ranks", "mlp",
		.program = shard_elsewhere},
	{"plan-shard-forgotten", "optimizer states are not dealt", "mlp",
		.program = shard_forgotten},
	{"plan-part-longer", "parts of rows that do not divide have an element more", "mlp",
		.program = part_longer},
	{"file-map", "a tensor_map of the plan file is one more", "mlp", .text = map_shifted},
	{"file-matrix", "an axis of a dev_matrix is gone", "mlp", .text = matrix_changed},
	{"file-axes", "an axis of a group has half of the ranks or of the stride", "mlp",
		.text = axes_halved},
	{"file-ranks", "the ranks of a group are others", "mlp", .text = ranks_changed},
	{"file-collective", "a collective is missing in the plan file", "mlp",
		.text = collective_deleted},
	{"file-source", "a redistribution comes from another layout", "mlp", .text = source_changed},
	{"file-outer", "a step puts slices together in another order", "mlp", .text = outer_changed},
	{"file-event", "the schedule has an operator twice", "mlp", .text = event_of_another},
	{"checkpoint-strategy", "a strategy of the checkpoint is transposed", "mlp",
		.ckpt = strategy_turned},
	{"checkpoint-step", "opt_weight_shard_step is doubled", "mlp", .ckpt = step_doubled},
	{"checkpoint-map", "a parameter's tensor_map names another axis", "mlp",
		.ckpt = saved_map_changed},
	{0},
};
