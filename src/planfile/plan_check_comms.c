/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a plan file: memory, collectives and buckets of them. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "planfile/plan_check_parts.h"

static const char *const kinds[] = {"weights_bytes", "gathered_bytes", "gradients_bytes",
	"optimizer_bytes", "activations_bytes", "recompute_bytes", "temporary_bytes", "context_bytes",
	"buffers_bytes"};

/* Of the operators of a stage. */
struct held {
	int64_t noperator, weights, gathered, gradients, optimizer, activations, temporary;
	int64_t kept, surely_kept; /* copies of redistributions: those that are recomputed are not */
};

static void add(int64_t *sum, int64_t n)
{
	if (!ap_add(*sum, n, sum))
		*sum = INT64_MAX;
}

static struct held *sum_operators(struct ap_book *b)
{
	struct held *all = AP_NEW_N(b->ctx->scratch, struct held, b->nstage + 1);
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	const struct ap_jv *list = ap_jv_get(b->root, "operators");
	struct {
		int64_t stage;
		bool recompute;
	} *op = ap_arena_alloc(b->ctx->scratch, ap_jv_count(list) + 1, sizeof *op);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const struct ap_jv *m = ap_jv_get(v, "memory");
		int64_t stage = ap_book_int(b, v, "stage");
		struct held *h = &all[stage < b->nstage ? stage : b->nstage];
		ap_id id = ap_map_put_str(names, ap_book_str(v, "name"), NULL);
		int64_t temporary = ap_book_int(b, m, "temporary_bytes");

		op[id].stage = stage < b->nstage ? stage : b->nstage;
		op[id].recompute = ap_book_bool(v, "recompute");
		b->recomputes |= op[id].recompute;
		h->noperator++;
		add(&h->weights, ap_book_int(b, m, "weights_bytes"));
		add(&h->gathered, ap_book_int(b, m, "gathered_bytes"));
		add(&h->gradients, ap_book_int(b, m, "gradients_bytes"));
		add(&h->optimizer, ap_book_int(b, m, "optimizer_bytes"));
		add(&h->activations, ap_book_int(b, m, "activations_bytes"));
		h->temporary = temporary > h->temporary ? temporary : h->temporary;
	}
	for (uint32_t i = 0; i < b->nmove; i++) {
		ap_id to = ap_map_get_str(names, ap_book_str(b->move[i], "to"));
		int64_t kept = ap_book_int(b, b->move[i], "kept_bytes");

		if (to == AP_NONE || !ap_book_at(b->move[i], "from"))
			continue;
		add(&all[op[to].stage].kept, kept);
		if (!op[to].recompute)
			add(&all[op[to].stage].surely_kept, kept);
	}
	return all;
}

static void hold_kinds(struct ap_book *b, const struct ap_jv *m, const struct held *h)
{
	int64_t held = ap_book_int(b, m, "activations_bytes");
	int64_t again = ap_book_int(b, m, "recompute_bytes");
	int64_t sure = again < h->surely_kept ? h->surely_kept - again : 0;

	ap_book_want_int(b, m, "weights_bytes", h->weights, "the sum of the operators");
	ap_book_want_int(b, m, "gathered_bytes", h->gathered, "the sum of the operators");
	ap_book_want_int(b, m, "gradients_bytes", h->gradients, "the sum of the operators");
	ap_book_want_int(b, m, "optimizer_bytes", h->optimizer, "the sum of the operators");
	ap_book_want_int(b, m, "temporary_bytes", h->temporary, "the largest of an operator");
	if (held < h->activations + sure || held > h->activations + h->kept)
		ap_book_fault(b, ap_jv_get(m, "activations_bytes"), "expected %" PRId64
			", the sum of operators and of what redistributions keep",
			h->activations + h->surely_kept);
	if (!b->recomputes && h->kept == 0) /* copies that redistributions leave may be made anew */
		ap_book_want_int(b, m, "recompute_bytes", 0, "for nothing is recomputed");
	if (!b->recomputes && again > h->kept)
		ap_book_fault(b, ap_jv_get(m, "recompute_bytes"), "expected at most %" PRId64
			", what redistributions keep, for no operator is recomputed", h->kept);
}

void ap_plan_rule_memory(struct ap_book *b)
{
	const struct ap_jv *list = ap_jv_get(ap_jv_get(b->root, "prediction"), "memory");
	const struct held *all = sum_operators(b);
	int64_t i = 0;

	if ((int64_t)ap_jv_count(list) != b->nstage) {
		ap_book_fault(b, list, "expected an entry for each of the %" PRId64 " stages", b->nstage);
		return;
	}
	for (const struct ap_jv *m = ap_jv_first(list); m; m = ap_jv_next(m), i++) {
		int64_t total = 0;

		for (size_t k = 0; k < AP_COUNT(kinds); k++)
			add(&total, ap_book_int(b, m, kinds[k]));
		ap_book_want_int(b, m, "stage", i, "its place in the list");
		ap_book_want_int(b, m, "total_bytes", total, "the sum of the kinds");
		ap_book_want_int(b, b->stage[i], "memory_bytes", total, "the total in /prediction/memory");
		ap_book_want_int(b, b->stage[i], "operators", all[i].noperator, "those of this stage");
		if (ap_book_int(b, b->stage[i], "peak_bytes") > total)
			ap_book_fault(b, ap_jv_get(b->stage[i], "peak_bytes"), "is more than memory_bytes");
		hold_kinds(b, m, &all[i]);
	}
}

/* Is it made of whole axes of dev_matrix that lie side by side? */
static bool is_of_matrix(const struct ap_book_op *op, const struct ap_axis *axis)
{
	int64_t stride = 1, size = 1;

	for (size_t i = op->dev.n; i-- > 0;) {
		if (stride >= axis->stride)
			size *= op->dev.v[i];
		else
			stride *= op->dev.v[i];
		if (stride == axis->stride && size == axis->size)
			return true;
	}
	return false;
}

static void hold_send(struct ap_book *b, const struct ap_jv *c)
{
	int64_t from, to, low, distance;
	struct ap_axes axes;

	if (!ap_jv_get(c, "from_stage") || !ap_jv_get(c, "to_stage")) {
		ap_book_fault(b, c, "no key \"%s\"", ap_jv_get(c, "from_stage") ? "to_stage" : "from_stage");
		return;
	}
	from = ap_book_int(b, c, "from_stage");
	to = ap_book_int(b, c, "to_stage");
	if (from >= b->nstage || to >= b->nstage) {
		ap_book_fault(b, ap_jv_get(c, from >= b->nstage ? "from_stage" : "to_stage"),
			"is no stage of this plan");
		return;
	}
	low = from < to ? from : to;
	distance = (from < to ? to - from : from - to) * b->ndev;
	if (ap_jv_count(ap_jv_get(c, "axes")) && distance) {
		const struct ap_jv *pair = ap_jv_first(ap_jv_get(c, "axes"));
		struct ap_book_list axis = ap_book_list(b, pair);

		if (axis.n != 2 || axis.v[0] != distance || axis.v[1] != 2 || ap_jv_next(pair)) {
			ap_book_fault(b, pair, "expected [%" PRId64 ", 2], a rank and its counterpart",
				distance);
			return;
		}
	} else if (!ap_jv_count(ap_jv_get(c, "axes")) != !distance) {
		ap_book_fault(b, ap_jv_get(c, "axes"), "contradict from_stage and to_stage");
		return;
	}
	(void)ap_book_group(b, c, low * b->ndev, distance ? 2 * distance : 1, &axes);
}

/* Only partly: the parts of dealt weights and gradients may be fewer than the devices that are alike. */
static void hold_group(struct ap_book *b, const struct ap_book_op *op, const struct ap_jv *c,
	const char *phase)
{
	bool gathers = !strcmp(ap_book_str(c, "kind"), "AllGather") && ap_jv_get(c, "operand");
	bool dealt = !strcmp(phase, "gradient") || !strcmp(phase, "optimizer") || gathers;
	struct ap_axes axes;

	if (!ap_book_group(b, c, op->stage * b->ndev, b->ndev, &axes) || dealt)
		return;
	for (int a = 0; a < axes.n; a++)
		if (!is_of_matrix(op, &axes.axis[a])) {
			ap_book_fault(b, ap_jv_get(c, "axes"), "expected axes of dev_matrix");
			return;
		}
}

static void hold_tensor(struct ap_book *b, const struct ap_book_op *op, const struct ap_jv *c)
{
	const struct ap_jv *result = ap_jv_get(c, "result"), *operand = ap_jv_get(c, "operand");
	int64_t i;

	if (!result == !operand) {
		ap_book_fault(b, c, result ? "expected \"operand\" or \"result\", not both"
			: "no key \"operand\" or \"result\"");
		return;
	}
	i = ap_book_whole(b, result ? result : operand);
	if (i >= (result ? op->nout : op->nin)) {
		ap_book_fault(b, result ? result : operand, "is none of this operator");
		return;
	}
	ap_book_want_str(b, c, "tensor", ap_jv_str(b->tensor.v[result ? op->out[i] : op->in[i]].where),
		result ? "that result" : "that operand");
}

static void hold_comm(struct ap_book *b, const struct ap_book_op *op, const struct ap_jv *c)
{
	const char *kind = ap_book_str(c, "kind"), *phase = ap_book_str(c, "phase");
	bool send = !strcmp(kind, "Send"), each = ap_jv_get(c, "each_micro_batch") != NULL;

	hold_tensor(b, op, c);
	if (send)
		hold_send(b, c);
	else
		hold_group(b, op, c, phase);
	if (!send && (ap_jv_get(c, "from_stage") || ap_jv_get(c, "to_stage")))
		ap_book_fault(b, c, "has a stage that it is sent from or to, and is no Send");
	if (b->inference && strcmp(phase, "forward") != 0)
		ap_book_fault(b, ap_jv_get(c, "phase"), "expected forward, for /settings/run_phase is "
			"inference");
	if (each && (!ap_book_bool(c, "each_micro_batch") || strcmp(phase, "gradient") != 0))
		ap_book_fault(b, ap_jv_get(c, "each_micro_batch"),
			"expected true of a gradient, else no such key");
}

/* What an operator's collectives cost in a step. */
static void hold_costs(struct ap_book *b, const struct ap_book_op *op)
{
	static const struct {
		const char *key;
		const char *phase[2];
	} costs[] = {
		{"forward_communication_s", {"forward", "forward"}},
		{"backward_communication_s", {"backward", "recompute"}},
	};
	const struct ap_jv *cost = ap_jv_get(op->v, "cost");
	double times = ap_book_bool(op->v, "once") ? 1 : (double)b->micro_batches;

	for (size_t i = 0; i < AP_COUNT(costs); i++) {
		double sum = 0;

		for (uint32_t k = 0; k < op->ncomm; k++) {
			const char *phase = ap_book_str(op->comm[k], "phase");

			if (!strcmp(phase, costs[i].phase[0]) || !strcmp(phase, costs[i].phase[1]))
				sum += times * ap_book_num(op->comm[k], "time_s");
		}
		ap_book_want_near(b, cost, costs[i].key, sum, "the collectives of a step");
	}
}

void ap_plan_rule_communications(struct ap_book *b)
{
	for (uint32_t i = 0; i < b->nop; i++) {
		b->oper = b->op[i].name;
		for (uint32_t k = 0; k < b->op[i].ncomm; k++)
			hold_comm(b, &b->op[i], b->op[i].comm[k]);
		hold_costs(b, &b->op[i]);
	}
}

/* Same group, same kind: can this collective of a parameter be in that bucket? */
static bool is_part(struct ap_book *b, const struct ap_jv *bucket, const struct ap_jv *c)
{
	struct ap_book_list p, q;
	const struct ap_jv *x = ap_jv_first(ap_jv_get(bucket, "axes"));
	const struct ap_jv *y = ap_jv_first(ap_jv_get(c, "axes"));

	if (strcmp(ap_book_str(bucket, "kind"), ap_book_str(c, "kind")) != 0)
		return false;
	for (; x && y; x = ap_jv_next(x), y = ap_jv_next(y)) {
		p = ap_book_list(b, x);
		q = ap_book_list(b, y);
		if (p.v[0] != q.v[0] || p.v[1] != q.v[1])
			return false;
	}
	return !x && !y;
}

static bool is_exchanged(const struct ap_jv *c)
{
	const char *phase = ap_book_str(c, "phase");

	return !strcmp(phase, "gradient") || !strcmp(phase, "optimizer");
}

struct fused { /* collectives of a parameter, in the order of the operators */
	uint32_t n;
	const struct ap_jv **comm;
	bool *taken;
};

static struct fused *list_exchanged(struct ap_book *b)
{
	struct fused *all = AP_NEW_N(b->ctx->scratch, struct fused, b->tensor.n);

	for (int fill = 0; fill < 2; fill++) {
		for (size_t t = 0; fill && t < b->tensor.n; t++) {
			all[t].comm = AP_NEW_N(b->ctx->scratch, const struct ap_jv *, all[t].n);
			all[t].taken = AP_NEW_N(b->ctx->scratch, bool, all[t].n);
			all[t].n = 0;
		}
		for (uint32_t i = 0; i < b->nop; i++)
			for (uint32_t k = 0; k < b->op[i].ncomm; k++) {
				const struct ap_jv *c = b->op[i].comm[k];
				ap_id t = ap_map_get_str(b->tensor_names, ap_book_str(c, "tensor"));

				if (t == AP_NONE || !is_exchanged(c))
					continue;
				if (fill)
					all[t].comm[all[t].n] = c;
				all[t].n++;
			}
	}
	return all;
}

static void hold_bucket(struct ap_book *b, const struct ap_jv *bucket, struct fused *all)
{
	int64_t stage = ap_book_int(b, bucket, "stage"), bytes = 0;
	const struct ap_jv *list = ap_jv_get(bucket, "parameters");
	bool whole = true;

	if (stage >= b->nstage) {
		ap_book_fault(b, ap_jv_get(bucket, "stage"), "is no stage of this plan");
		return;
	}
	if (!ap_book_group(b, bucket, stage * b->ndev, b->ndev, NULL))
		return;
	if (!ap_jv_count(list))
		ap_book_fault(b, list, "expected a parameter at least");
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		ap_id t = ap_map_get_str(b->tensor_names, ap_jv_str(v));
		bool found = false;

		for (uint32_t i = 0; t != AP_NONE && i < all[t].n && !found; i++) {
			found = !all[t].taken[i] && is_part(b, bucket, all[t].comm[i]);
			if (!found)
				continue;
			all[t].taken[i] = true;
			add(&bytes, ap_book_int(b, all[t].comm[i], "bytes"));
		}
		if (!found)
			ap_book_fault(b, v, "has no collective of this kind and group that is in no other "
				"bucket");
		whole &= found;
	}
	if (whole)
		ap_book_want_int(b, bucket, "bytes", bytes, "those of its collectives");
}

void ap_plan_rule_fusion(struct ap_book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "fusion");
	struct fused *all = list_exchanged(b);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		hold_bucket(b, v, all);
	for (size_t t = 0; t < b->tensor.n; t++)
		for (uint32_t i = 0; i < all[t].n; i++)
			if (!all[t].taken[i])
				ap_book_fault(b, all[t].comm[i], "is in no bucket of /fusion");
}
