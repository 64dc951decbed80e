/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a tensor. A dimension may be cut only where all of it is taken, in order. */
#include <inttypes.h>

#include "rule/expand.h"

/* Takes dimension d of the operand as it is. */
static bool take_whole(struct ap_binding *b, uint8_t d)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id;

	if (!ap_expand_factor(b, (char)('A' + d), 0, in->size[d], &id))
		return false;
	ap_expand_put(&in->dim[d], id);
	return ap_expand_add(b, &b->bout[0], in->size[d], id);
}

static bool check_values(struct ap_binding *b, const struct ap_attr *a, uint32_t wanted)
{
	return a->n == wanted || ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRIu32
		" values; %" PRIu32 " are expected", a->name, a->n, wanted);
}

static bool slice_dim(struct ap_binding *b, uint8_t d, int64_t begin, int64_t size)
{
	int64_t have = b->bin[0].size[d];

	if (begin < 0 || begin >= have)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin has %" PRId64
			" at %d; for a length of %" PRId64 " 0..%" PRId64 " is allowed", begin, d,
			have, have - 1);
	if (size == -1)
		size = have - begin;
	if (size < 1 || size > have - begin)
		return ap_bind_fail(b, "operator-attr", -1, "attribute size has %" PRId64
			" at %d; from %" PRId64 " on 1..%" PRId64 " or -1 is allowed", size, d,
			begin, have - begin);
	return size == have ? take_whole(b, d)
			    : ap_expand_add(b, &b->bout[0], size, AP_NO_FACTOR);
}

bool ap_expand_slice(struct ap_binding *b)
{
	const struct ap_attr *begin = ap_expand_list(b, "begin");
	const struct ap_attr *size = begin ? ap_expand_list(b, "size") : NULL;
	uint8_t rank = b->bin[0].rank;

	if (!size || !check_values(b, begin, rank) || !check_values(b, size, rank))
		return false;
	for (uint8_t d = 0; d < rank; d++)
		if (!slice_dim(b, d, begin->list[d], size->list[d]))
			return false;
	return true;
}

/* A place along a dimension of length n, counted from the end where negative, kept inside. */
static int64_t clamp(int64_t at, int64_t n)
{
	at = at < 0 ? at + n : at;
	return at < 0 ? 0 : at > n ? n : at;
}

/* Every step-th element from start to end of one dimension. */
bool ap_expand_slice_one(struct ap_binding *b)
{
	const struct ap_operand *in = &b->bin[0];
	int64_t start, end, step, have;
	uint8_t dim;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "dim", 0, in->rank, &dim))
		return false;
	have = in->size[dim];
	if (!ap_expand_number(b, "start", 0, &start) || !ap_expand_number(b, "end", have, &end) ||
		!ap_expand_number(b, "step", 1, &step))
		return false;
	if (step < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute step is %" PRId64 "; at least 1 is expected", step);
	start = clamp(start, have);
	end = clamp(end, have);
	if (end <= start)
		return ap_bind_fail(b, "operator-attr", -1, "attributes start and end leave nothing of "
			"dimension %d of length %" PRId64 "; at least one element is expected", dim, have);
	for (uint8_t d = 0; d < in->rank; d++)
		if (d == dim && (end - start < have || step > 1)
			? !ap_expand_add(b, &b->bout[0], (end - start - 1) / step + 1, AP_NO_FACTOR)
			: !take_whole(b, d))
			return false;
	return true;
}

/* The sums of diagonals through two dimensions, which stay whole. */
bool ap_expand_trace(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t first, second, id[AP_MAX_RANK];
	uint32_t whole;

	if (!ap_expand_rank(b, 0, 2) || !ap_expand_axis(b, "axis1", 1, in->rank, &first) ||
		!ap_expand_axis(b, "axis2", 0, in->rank, &second))
		return false;
	if (first == second)
		return ap_bind_fail(b, "operator-attr", -1, "attributes axis1 and axis2 both name "
			"dimension %d; two dimensions are expected", first);
	whole = UINT32_C(1) << first | UINT32_C(1) << second;
	if (!ap_expand_dims(b, in, whole, id))
		return false;
	for (uint8_t d = 0; d < in->rank; d++)
		if (!(whole >> d & 1) && !ap_expand_add(b, &b->bout[0], in->size[d], id[d]))
			return false;
	return true;
}

enum { MAX_SPEC = 2 * AP_MAX_RANK }; /* as many new dimensions as old ones */

/* Attributes of a strided slice: entry i speaks of a dimension as the masks' bits i say. */
struct strided {
	const struct ap_attr *begin, *end, *strides; /* strides NULL: all 1 */
	uint32_t begin_mask, end_mask, ellipsis, new_axis, shrink;
	uint8_t n;
	uint8_t d; /* next dimension of the operand */
};

static bool read_mask(struct ap_binding *b, const char *name, uint32_t *mask)
{
	int64_t v = ap_attr_int(b->in->attrs, name, 0);

	*mask = (uint32_t)(v & ((1 << MAX_SPEC) - 1));
	return v >= 0 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is %" PRId64 "; at least 0 is expected", name, v);
}

static bool read_masks(struct ap_binding *b, struct strided *s)
{
	return read_mask(b, "begin_mask", &s->begin_mask) &&
		read_mask(b, "end_mask", &s->end_mask) &&
		read_mask(b, "ellipsis_mask", &s->ellipsis) &&
		read_mask(b, "new_axis_mask", &s->new_axis) &&
		read_mask(b, "shrink_axis_mask", &s->shrink);
}

static bool read_strided(struct ap_binding *b, struct strided *s)
{
	s->begin = ap_expand_list(b, "begin");
	s->end = s->begin ? ap_expand_list(b, "end") : NULL;
	s->strides = ap_attr_get(b->in->attrs, "strides");
	if (!s->end || !read_masks(b, s))
		return false;
	if (s->begin->n > MAX_SPEC)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin has %" PRIu32
			" values; at most %d are expected", s->begin->n, MAX_SPEC);
	s->n = (uint8_t)s->begin->n;
	s->ellipsis &= (UINT32_C(1) << s->n) - 1;
	if (s->ellipsis & (s->ellipsis - 1))
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute ellipsis_mask has several bits; one is allowed");
	return check_values(b, s->end, s->n) && (!s->strides || check_values(b, s->strides, s->n));
}

/* An end of a range, counted from the end of the dimension where negative, brought inside. */
static int64_t bound(int64_t v, int64_t have, int64_t stride)
{
	int64_t low = stride > 0 ? 0 : -1;

	v = v < 0 ? v + have : v;
	return v < low ? low : v > have + low ? have + low : v;
}

/* Dimension d, one index of it: it goes. */
static bool take_index(struct ap_binding *b, struct strided *s, uint8_t i)
{
	int64_t have = b->bin[0].size[s->d++];
	int64_t v = s->begin_mask >> i & 1 ? 0 : s->begin->list[i];

	return (v >= -have && v < have) || ap_bind_fail(b, "operator-attr", -1,
		"attribute begin has %" PRId64 " at %d; for a length of %" PRId64 " %" PRId64
		"..%" PRId64 " is allowed", v, i, have, -have, have - 1);
}

static bool take_range(struct ap_binding *b, struct strided *s, uint8_t i)
{
	int64_t have = b->bin[0].size[s->d], step = s->strides ? s->strides->list[i] : 1;
	int64_t sign = step > 0 ? 1 : -1, from, to;

	if (step == 0)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute strides has 0 at %d; another number is expected", i);
	from = s->begin_mask >> i & 1 ? (step > 0 ? 0 : have - 1)
				      : bound(s->begin->list[i], have, step);
	to = s->end_mask >> i & 1 ? (step > 0 ? have : -1) : bound(s->end->list[i], have, step);
	if ((to - from) * sign < 1)
		return ap_bind_fail(b, "operator-shape", 0, "of dimension %d of operand 0, "
			"length %" PRId64 ", nothing is taken; at least one element is expected", s->d,
			have);
	if (step == 1 && to - from == have)
		return take_whole(b, s->d++);
	s->d++;
	return ap_expand_add(b, &b->bout[0], (to - from - sign) / step + 1, AP_NO_FACTOR);
}

/* Dimensions that no entry speaks of. */
static bool take_others(struct ap_binding *b, struct strided *s, int n)
{
	for (; n > 0; n--)
		if (!take_whole(b, s->d++))
			return false;
	return true;
}

static bool take_entry(struct ap_binding *b, struct strided *s, uint8_t i, int others)
{
	if (s->ellipsis >> i & 1)
		return take_others(b, s, others);
	if (s->new_axis >> i & 1)
		return ap_expand_add(b, &b->bout[0], 1, AP_NO_FACTOR);
	return s->shrink >> i & 1 ? take_index(b, s, i) : take_range(b, s, i);
}

bool ap_expand_strided(struct ap_binding *b)
{
	uint8_t rank = b->bin[0].rank;
	struct strided s = {0};
	int others = rank;

	if (!read_strided(b, &s))
		return false;
	for (uint8_t i = 0; i < s.n; i++)
		others -= !((s.ellipsis | s.new_axis) >> i & 1);
	if (others < 0)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin is for %d "
			"dimensions; at most %d are expected", rank - others, rank);
	for (uint8_t i = 0; i < s.n; i++)
		if (!take_entry(b, &s, i, others))
			return false;
	return take_others(b, &s, rank - s.d);
}
