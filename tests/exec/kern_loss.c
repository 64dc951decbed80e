/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, and what is dropped at random. */
#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* A row of logits with its softmax: parts[c] of the sum, and the logarithm of the sum. */
struct row {
	const struct ex_job *j;
	int64_t n, first; /* classes; element that begins it */
	ex_id sum, log;
};

static ex_id logit(const struct row *r, int64_t c)
{
	return r->j->in[0].id[r->first + c];
}

static struct row read_row(const struct ex_job *j, int64_t b)
{
	struct row r = {.j = j, .n = j->in[0].box.size[1], .first = b * j->in[0].box.size[1]};

	for (int64_t c = 0; c < r.n; c++)
		r.sum = ex_plus(j->tape, r.sum, ex_fn1(j->tape, "exp", logit(&r, c)));
	r.log = ex_fn1(j->tape, "log", r.sum);
	return r;
}

static ex_id share_of(const struct row *r, int64_t c)
{
	return ex_over(r->j->tape, ex_fn1(r->j->tape, "exp", logit(r, c)), r->sum);
}

static ex_id loss_of(const struct row *r, int64_t c)
{
	return ex_minus(r->j->tape, r->log, logit(r, c));
}

/* The second result is a gradient that is ready: nothing flows through it. */
static bool loss_by_labels(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	struct ex_tape *t = j->tape;

	if (x->size[0] != j->in[1].box.size[0] || x->size[1] != j->in[1].box.size[1] ||
		x->size[0] != j->out[0].box.size[0])
		return false;
	for (int64_t b = 0; b < x->size[0]; b++) {
		struct row r = read_row(j, b);
		ex_id loss = 0;

		for (int64_t c = 0; c < r.n; c++) {
			ex_id label = j->in[1].id[r.first + c];
			uint64_t y = ex_value_of(t, label);

			loss = ex_mad(t, loss, label, loss_of(&r, c));
			if (j->nout > 1)
				j->out[1].id[r.first + c] = ex_leaf(t,
					ex_sub(ex_value_of(t, share_of(&r, c)), y));
		}
		j->out[0].id[b] = loss;
	}
	return true;
}

/* The mean over the batch that is here, or its gradient. */
static bool loss_by_classes(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	bool grad = ap_attr_bool(j->attrs, "is_grad", false);
	uint64_t one = ex_inverse((uint64_t)x->size[0]);
	ex_id loss = 0;

	if (x->size[0] != j->in[1].box.size[0])
		return false;
	for (int64_t b = 0; b < x->size[0]; b++) {
		struct row r = read_row(j, b);
		int64_t label = (int64_t)ex_value_of(j->tape, j->in[1].id[b]);

		if (label >= r.n)
			return false;
		loss = ex_plus(j->tape, loss, loss_of(&r, label));
		for (int64_t c = 0; grad && c < r.n; c++)
			j->out[0].id[r.first + c] = ex_leaf(j->tape, ex_mul(one,
				ex_sub(ex_value_of(j->tape, share_of(&r, c)), c == label)));
	}
	if (!grad)
		j->out[0].id[0] = ex_scale(j->tape, loss, one);
	return true;
}

/* Of rows less what operand 2 says: the sum of exponentials, and the logit of the class, if it is here. */
static bool sums_of_classes(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;
	struct ex_tape *t = j->tape;

	for (unsigned i = 1; i < j->nin; i++)
		if (x->size[0] != j->in[i].box.size[0])
			return false;
	for (unsigned i = 0; i < j->nout; i++)
		if (x->size[0] != j->out[i].box.size[0])
			return false;
	for (int64_t b = 0; b < x->size[0]; b++) {
		int64_t label = (int64_t)ex_value_of(t, j->in[1].id[b]) - x->first[1];
		ex_id most = ex_leaf(t, ex_value_of(t, j->in[2].id[b])), sum = 0;

		for (int64_t c = 0; c < x->size[1]; c++) {
			ex_id v = ex_minus(t, j->in[0].id[b * x->size[1] + c], most);

			sum = ex_plus(t, sum, ex_fn1(t, "exp", v));
			if (c == label && j->nout > 1)
				j->out[1].id[b] = v;
		}
		j->out[0].id[b] = sum;
	}
	return true;
}

static ex_id each_class_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_fn2(j->tape, j->type, ex_operand(j, 0, at), ex_operand(j, 1, at));
}

/* By the element's place in the whole: what its rank is must not matter. */
static bool is_kept(const struct ex_job *j, const int64_t *at)
{
	const struct ex_box *b = &j->in[0].box;
	uint64_t seed = (uint64_t)ap_attr_int(j->attrs, "Seed0", 0), i = 0;

	for (int d = 0; d < b->rank; d++)
		i = i * (uint64_t)b->whole[d] + (uint64_t)(b->first[d] + at[d]);
	return ex_hash(seed, i) & 1;
}

static ex_id drop_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	bool kept = is_kept(j, at);

	if (r > 0)
		return ex_leaf(j->tape, kept);
	return kept ? ex_scale(j->tape, ex_operand(j, 0, at), 2) : 0;
}

EX_EACH(each_class)
EX_EACH(drop)

static int64_t limit_classes(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? n->bound.in[0].size[1] : 0;
}

const struct ex_kernel ex_kernels_loss[] = {
	{.type = "SoftmaxCrossEntropyWithLogits", .forward = loss_by_labels,
		.make = ex_make_loss_by_labels, .no_grad = 1 << 1},
	{.type = "SparseSoftmaxCrossEntropyWithLogits", .forward = loss_by_classes,
		.make = ex_make_loss_by_classes, .limit = limit_classes, .no_grad = 1 << 1,
		.no_grad_if = "is_grad"},
	{.type = "CrossEntropySums", .forward = sums_of_classes, .make = ex_make_loss_sums,
		.limit = limit_classes, .no_grad = 1 << 1 | 1 << 2},
	{.type = "SigmoidCrossEntropyWithLogits", .forward = each_class,
		.make = ex_make_loss_of_each},
	{.type = "Dropout", .forward = drop, .make = ex_make_dropout},
	{0}
};
