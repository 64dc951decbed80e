/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What routes make of random graphs, held against their rules in other words: the batch strategy of
 * semi_auto_parallel operator by operator, and that sharding_propagation leaves no operator by element apart
 * from all its neighbours.
 */
#include "base/num.h"
#include "plan/plan.h"
#include "rule/attr.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/strategy.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 14, DEVICES = 16, MOST_IN = 16 };

static const struct ap_route *route_of(const char *name)
{
	const struct ap_route *r;

	for (size_t i = 0; (r = ap_route_at(i)); i++)
		if (strcmp(r->name, name) == 0)
			return r;
	ck_abort_msg("no route %s", name);
	return NULL;
}

struct tally { /* of all cases */
	uint32_t completed, refused;
};

static struct tally batches, propagations;

static bool is_held(const struct ap_node *n)
{
	return n->param != AP_NONE && ap_op_has_strategy(n->bound.row);
}

/* Rows of the route, operators with a parameter cut at random; NULL where it stops at these. */
static const int32_t *const *draw(struct trial *t, const char *route, const int32_t **held,
	struct tally *tally)
{
	const struct ap_route *r = route_of(route);
	const int32_t *const *picked, *const *counts;
	struct ap_ctx ctx = t->f.ctx;
	bool good;

	trial_executor(t, r->executor);
	ctx.diag = ap_diag_create(ctx.arena, false);
	picked = trial_counts(t);
	for (ap_id i = 0; picked && i < t->f.graph->nnode; i++)
		held[i] = is_held(&t->f.graph->node[i]) ? picked[i] : NULL;
	if (!picked)
		return NULL;
	good = r->complete(&ctx, t->f.graph, t->f.machine, &t->f.step, held, &counts) == AP_OK;
	tally->completed += good;
	tally->refused += !good;
	return good ? counts : NULL;
}

static bool is_one_of(const char *words, const char *word)
{
	const char *at = strstr(words, word);
	size_t len = strlen(word);

	return at && at[len] == ' ' && (at == words || at[-1] == ' ');
}

/* ---- semi_auto_parallel ---- */

/* Operators whose first operand is cut along its first dimension, and nothing else is. */
static const char first_only[] = "ReLU GeLU Tanh Softmax Dropout LayerNorm ReduceSum ReduceMean ReduceMax "
	"Transpose RmsNorm BatchNorm MaxPool AvgPool ExpandDims Squeeze BiasAdd Conv2D TopK ";

/* Operators of which every operand is. */
static const char every_operand[] = "AddN Stack SoftmaxCrossEntropyWithLogits "
	"SparseSoftmaxCrossEntropyWithLogits FlashAttentionScore ";

static const struct ap_tensor *operand(const struct trial *t, const struct ap_node *n, int i)
{
	return &t->f.graph->tensor[n->in[i]];
}

/* Operands of two tensors are lined up at their last dimensions. */
static void mark_lined_up(const struct trial *t, const struct ap_node *n, uint8_t *mask)
{
	const struct ap_shape *a = &operand(t, n, 0)->shape, *b = &operand(t, n, 1)->shape;
	int rank = a->rank > b->rank ? a->rank : b->rank;

	mask[0] = a->rank == rank && rank > 0 && a->dim[0] != 1;
	mask[1] = b->rank == rank && rank > 0 && b->dim[0] != 1;
}

/* Which dimensions of each operand the batch strategy cuts; false: of such an operator nothing is said
 * here. */
static bool mark(const struct trial *t, const struct ap_node *n, uint8_t *mask)
{
	memset(mask, 0, MOST_IN);
	if (is_one_of("Add Mul ", n->type))
		mark_lined_up(t, n, mask);
	else if (strcmp(n->type, "MatMul") == 0)
		mask[0] = ap_attr_bool(&n->attrs, "transpose_a", false) ? 2 : 1;
	else if (strcmp(n->type, "BatchMatMul") == 0)
		mask[0] = mask[1] = 1; /* ours have equal ranks, above 2 */
	else if (strcmp(n->type, "Gather") == 0)
		mask[1] = 1;
	else if (strcmp(n->type, "Concat") == 0)
		for (int i = 0; i < n->bound.nin; i++)
			mask[i] = ap_attr_int(&n->attrs, "axis", 0) != 0;
	else if (is_one_of(every_operand, n->type))
		memset(mask, 1, n->bound.nin);
	else if (is_one_of(first_only, n->type))
		mask[0] = operand(t, n, 0)->shape.rank > 0;
	else
		return false;
	return true;
}

/* The one number of parts: what divides the devices and each of these dimensions. */
static int64_t parts(const struct trial *t, const struct ap_node *n, const uint8_t *mask)
{
	int64_t parts = t->f.machine->ndev;

	for (int i = 0; i < n->bound.nin; i++)
		for (int d = 0; d < operand(t, n, i)->shape.rank; d++) {
			const struct ap_tensor *x = operand(t, n, i);

			if (mask[i] >> d & 1)
				parts = ap_gcd(parts, x->shape.dim[d] /
					(x->batch >> d & 1 ? t->f.step.micro_batches : 1));
		}
	return parts;
}

static void check_batch(struct trial *t, const struct ap_node *n, const int32_t *count)
{
	uint8_t mask[MOST_IN], rank[MOST_IN];
	int32_t cut[MOST_IN][AP_MAX_RANK];
	struct ap_placement place;
	int64_t expected;

	if (n->bound.nin > MOST_IN || !mark(t, n, mask))
		return;
	expected = parts(t, n, mask);
	t->telling |= expected > 1;
	ap_placement_make(&n->bound, count, t->f.machine->ndev, &place);
	REQUIRE(t, ap_space_to_strategy(&place, rank, cut, MOST_IN) == n->bound.nin, "%s", n->name);
	for (int i = 0; i < n->bound.nin; i++)
		for (int d = 0; d < rank[i]; d++)
			REQUIRE(t, cut[i][d] == (mask[i] >> d & 1 ? expected : 1),
				"%s: operand %d, dimension %d: %d parts, not %" PRId64, n->name, i, d, cut[i][d],
				mask[i] >> d & 1 ? expected : 1);
}

static void batch(struct trial *t)
{
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	const int32_t *const *counts = draw(t, "mindspore-semi-auto", held, &batches);

	for (ap_id i = 0; counts && i < t->f.graph->nnode; i++)
		if (!held[i])
			check_batch(t, &t->f.graph->node[i], counts[i]);
}

START_TEST(semi_auto_cuts_the_batch)
{
	trial_each(600, OPERATORS, DEVICES, batch);
}
END_TEST

/* ---- sharding_propagation ---- */

static const char by_element[] = "ReLU GeLU Tanh Dropout Cast ";

/* Is it a view, or one that is changed afterwards, so that all users of a parameter hold it alike? */
static bool is_odd(const struct trial *t, ap_id node)
{
	const struct ap_node *n = &t->f.graph->node[node];

	for (int i = 0; i < n->bound.nin; i++)
		if (operand(t, n, i)->kind == AP_TENSOR_PARAM && operand(t, n, i)->nuse > 1)
			return true;
	return !ap_op_has_strategy(n->bound.row);
}

/* Does something have to be fetched from other devices along the way to an operand? */
static bool is_fetched(const struct ap_plan *p, ap_id node, uint32_t at)
{
	for (uint32_t i = 0; i < p->nmove; i++)
		if (p->move[i].to == node && p->move[i].operand == at)
			for (int k = 0; k < p->move[i].nstep; k++)
				if (p->move[i].step[k].move != AP_MOVE_SLICE)
					return true;
	return false;
}

/* Is a neighbour reached without that? */
static bool has_company(const struct trial *t, const struct ap_plan *p, ap_id node)
{
	const struct ap_node *n = &t->f.graph->node[node];
	const struct ap_tensor *out = &t->f.graph->tensor[n->out[0]];
	bool company = !is_fetched(p, node, 0);

	for (uint32_t u = 0; u < out->nuse; u++)
		company |= !is_fetched(p, out->use[u].node, out->use[u].operand);
	return company;
}

/* Could operand and result of it lie so? */
static bool can_lie(struct trial *t, ap_id node, const struct ap_layout *l)
{
	const struct ap_bound *b = &t->f.graph->node[node].bound;
	const struct ap_space *s = &t->space[node];

	for (uint32_t c = 0; c < s->n; c++) {
		struct ap_placement p;
		struct ap_layout own = {0};

		ap_placement_make(b, s->count + (size_t)c * s->nfactor, t->f.machine->ndev, &p);
		if (ap_layout_make(&p, &b->in[0], &own) && ap_layout_equal(&own, l))
			return true;
	}
	return false;
}

/* Is it propagated to by candidates alone, not by what a Reshape hands on, and could it lie as each of its
 * neighbours does? Where the devices are no power of two, MindSpore does not try all that could. */
static bool is_plain(struct trial *t, const struct ap_plan *p, ap_id node)
{
	const struct ap_node *n = &t->f.graph->node[node];
	const struct ap_tensor *in = operand(t, n, 0), *out = &t->f.graph->tensor[n->out[0]];
	bool plain = is_one_of(by_element, n->type) && in->kind == AP_TENSOR_ACT && !is_odd(t, in->producer) &&
		can_lie(t, node, &p->op[in->producer].out[in->result]);

	for (uint32_t u = 0; plain && u < out->nuse; u++)
		plain = !is_odd(t, out->use[u].node) &&
			can_lie(t, node, &p->op[out->use[u].node].in[out->use[u].operand]);
	return plain;
}

static void company(struct trial *t)
{
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);
	const int32_t *const *counts = draw(t, "mindspore-sharding-propagation", held, &propagations);
	struct ap_plan p;

	if (!counts || (t->f.machine->ndev & (t->f.machine->ndev - 1)))
		return;
	trial_plan(t, counts, &p);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		if (!held[i] && is_plain(t, &p, i)) {
			t->telling = true;
			REQUIRE(t, has_company(t, &p, i), "%s", t->f.graph->node[i].name);
		}
}

START_TEST(propagation_keeps_company)
{
	trial_each(1500, OPERATORS, DEVICES, company);
	printf("%" PRIu32 " completed, %" PRIu32 " refused\n", propagations.completed, propagations.refused);
	ck_assert(propagations.completed < 100 || 500 * propagations.refused <= propagations.completed);
}
END_TEST
