/* SPDX-License-Identifier: Apache-2.0 */
#include "move_made.h"

#include <check.h>
#include <string.h>

uint32_t made_draw(struct made *m, uint32_t n)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return (uint32_t)(m->rng >> 32) % n;
}

static int64_t draw(struct made *m, int64_t n)
{
	return made_draw(m, (uint32_t)n);
}

static void set(struct made *m, const char *name, int64_t v)
{
	struct ap_attr *a = &m->attr[m->attrs.n];
	enum ap_attr_type type;

	ck_assert_ptr_nonnull(ap_attr_find("", name, &type));
	m->list[m->attrs.n][0] = v;
	*a = (struct ap_attr){.name = name, .type = type, .i = v, .n = 1,
		.list = m->list[m->attrs.n]};
	m->attrs.n++;
}

static void append(struct made *m, const char *name, int64_t v)
{
	for (uint32_t i = 0; i < m->attrs.n; i++)
		if (strcmp(m->attr[i].name, name) == 0) {
			m->list[i][m->attr[i].n++] = v;
			return;
		}
	set(m, name, v);
}

static int64_t length(struct made *m)
{
	static const int64_t lengths[] = {1, 2, 3, 4, 4, 6, 8};

	return lengths[draw(m, 7)];
}

static struct ap_shape *operand(struct made *m, enum ap_dtype t, uint8_t rank)
{
	struct ap_shape *s = &m->in[m->nin++];

	*s = (struct ap_shape){rank, t, {0}};
	for (uint8_t i = 0; i < rank; i++)
		s->dim[i] = length(m);
	return s;
}

/* A dimension out of rank, from the front or from the back. */
static uint8_t axis(struct made *m, const char *name, uint8_t rank)
{
	uint8_t at = (uint8_t)draw(m, rank);

	set(m, name, draw(m, 2) ? at : at - rank);
	return at;
}

static void make_one(struct made *m)
{
	operand(m, AP_FLOAT32, (uint8_t)(1 + draw(m, 3)));
}

static void make_concat(struct made *m)
{
	uint8_t at;

	make_one(m);
	at = axis(m, "axis", m->in[0].rank);
	while (m->nin < MADE_OPERANDS && draw(m, 3)) {
		m->in[m->nin] = m->in[0];
		m->in[m->nin++].dim[at] = length(m);
	}
}

static void make_sum(struct made *m)
{
	make_one(m);
	for (; m->nin < MADE_OPERANDS && draw(m, 3); m->nin++)
		m->in[m->nin] = m->in[0];
}

static void make_stack(struct made *m)
{
	make_sum(m);
	axis(m, "axis", (uint8_t)(m->in[0].rank + 1));
}

static void make_split(struct made *m)
{
	int64_t n = 1 + draw(m, 3);

	make_one(m);
	m->in[0].dim[axis(m, "axis", m->in[0].rank)] *= n;
	set(m, "output_num", n);
	m->nout = (uint16_t)n;
}

static void make_split_sizes(struct made *m)
{
	bool v = strcmp(m->type, "SplitV") == 0;
	int64_t *sum;

	make_one(m);
	sum = &m->in[0].dim[axis(m, v ? "split_dim" : "dim", m->in[0].rank)];
	*sum = 0;
	for (m->nout = 0; m->nout < 3; m->nout++) {
		int64_t n = length(m);

		*sum += n;
		append(m, v ? "size_splits" : "split_sizes", m->nout == 1 ? -1 : n);
	}
}

static void make_split_chunks(struct made *m)
{
	int64_t size = length(m), total;

	make_one(m);
	total = m->in[0].dim[axis(m, "dim", m->in[0].rank)];
	set(m, "split_size", size);
	m->nout = (uint16_t)((total + size - 1) / size);
}

static void make_slice(struct made *m)
{
	make_one(m);
	for (uint8_t i = 0; i < m->in[0].rank; i++) {
		int64_t n = m->in[0].dim[i], begin = draw(m, 2) ? 0 : draw(m, n);

		append(m, "begin", begin);
		append(m, "size", draw(m, 2) ? -1 : 1 + draw(m, n - begin));
	}
}

static void entry(struct made *m, int64_t begin, int64_t end, int64_t stride)
{
	append(m, "begin", begin);
	append(m, "end", end);
	append(m, "strides", stride);
}

/* A range of n elements that is not empty; where masked, other numbers stand in its place. */
static void range(struct made *m, int64_t n, int64_t *begin_mask, int64_t *end_mask, int i)
{
	int64_t from = draw(m, n), step = 1 + draw(m, 2);
	int64_t to = from + 1 + draw(m, n - from);

	switch (draw(m, 5)) {
	case 0:
		entry(m, from, to, step);
		break;
	case 1: /* backward */
		entry(m, to - 1, from - 1 - n, -step);
		break;
	case 2:
		*begin_mask |= INT64_C(1) << i;
		*end_mask |= INT64_C(1) << i;
		entry(m, 7, -7, draw(m, 2) ? 1 : -step);
		break;
	default: /* the whole, in one way of several */
		entry(m, draw(m, 2) ? 0 : -n - draw(m, 3), n + draw(m, 3), 1);
	}
}

static void make_strided(struct made *m)
{
	int64_t begin = 0, end = 0, ellipsis = 0, added = 0, shrunk = 0;
	int i = 0;

	make_one(m);
	for (uint8_t d = 0; d < m->in[0].rank; i++) {
		int64_t what = draw(m, 8);

		if (what == 0 && i < 3) {
			added |= INT64_C(1) << i;
			entry(m, 5, 5, 3);
		} else if (what == 1 && !ellipsis) {
			ellipsis = INT64_C(1) << i;
			entry(m, 5, 5, 3);
			d = (uint8_t)(d + draw(m, m->in[0].rank - d + 1));
		} else if (what == 2) {
			shrunk |= INT64_C(1) << i;
			entry(m, draw(m, m->in[0].dim[d]), 9, 1);
			d++;
		} else if (what == 3 && !ellipsis && i > 0) {
			break;
		} else {
			range(m, m->in[0].dim[d++], &begin, &end, i);
		}
	}
	set(m, "begin_mask", begin);
	set(m, "end_mask", end);
	set(m, "ellipsis_mask", ellipsis);
	set(m, "new_axis_mask", added);
	set(m, "shrink_axis_mask", shrunk);
}

static void make_reshape(struct made *m)
{
	int64_t in[] = {1, 1, 1, 1}, out[] = {1, 1, 1, 1};
	uint8_t i = 0, o = 0;

	for (int k = 0; k < 6; k++) { /* factors in one order, ends of dimensions anywhere */
		int64_t f = 1 + draw(m, 3);

		in[i] *= f;
		out[o] *= f;
		i = (uint8_t)(i + (i < 3 && draw(m, 2)));
		o = (uint8_t)(o + (o < 3 && draw(m, 2)));
	}
	m->in[m->nin++] = (struct ap_shape){4, AP_FLOAT32, {in[0], in[1], in[2], in[3]}};
	for (i = 0; i < 4; i++)
		append(m, "shape", out[i]);
}

static void make_new_dim(struct made *m)
{
	make_one(m);
	axis(m, "axis", (uint8_t)(m->in[0].rank + 1));
}

static void make_squeeze(struct made *m)
{
	make_one(m);
	if (draw(m, 2))
		m->in[0].dim[axis(m, "axis", m->in[0].rank)] = 1;
}

static void make_broadcast(struct made *m)
{
	make_one(m);
	for (int64_t i = draw(m, 2); i > 0; i--)
		append(m, "shape", length(m));
	for (uint8_t i = 0; i < m->in[0].rank; i++) {
		int64_t n = m->in[0].dim[i];

		append(m, "shape", n == 1 ? length(m) : draw(m, 2) ? -1 : n);
	}
}

static void make_tile(struct made *m)
{
	make_one(m);
	for (int64_t i = m->in[0].rank + draw(m, 2); i > 0; i--)
		append(m, "multiples", draw(m, 2) ? 1 : length(m));
}

static void make_repeat(struct made *m)
{
	make_one(m);
	axis(m, "axis", m->in[0].rank);
	set(m, "rep", 1 + draw(m, 3));
}

static void make_transpose(struct made *m)
{
	static const int64_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1},
		{2, 1, 0}};
	int64_t k = draw(m, 6);

	operand(m, AP_FLOAT32, 3);
	for (int i = 0; i < 3; i++)
		append(m, "perm", orders[k][i]);
}

static void make_along(struct made *m)
{
	make_one(m);
	set(m, "axis", draw(m, m->in[0].rank));
}

/* Operands that broadcast against the first one. */
static void add_broadcast(struct made *m, enum ap_dtype t)
{
	struct ap_shape *s = &m->in[m->nin++];

	*s = m->in[0];
	s->dtype = t;
	for (uint8_t i = 0; i < s->rank; i++)
		s->dim[i] = draw(m, 3) ? s->dim[i] : 1;
}

static void make_choice(struct made *m)
{
	bool select = strcmp(m->type, "Select") == 0;

	operand(m, select ? AP_BOOL : AP_FLOAT32, (uint8_t)(1 + draw(m, 3)));
	add_broadcast(m, select ? AP_FLOAT32 : AP_BOOL);
	if (select)
		add_broadcast(m, AP_FLOAT32);
	else
		operand(m, AP_FLOAT32, 0);
}

static void make_gather_dim(struct made *m)
{
	uint8_t at;

	make_one(m);
	m->in[m->nin] = m->in[0];
	m->in[m->nin].dtype = AP_INT32;
	at = axis(m, "dim", m->in[0].rank);
	m->in[m->nin++].dim[at] = length(m);
}

static void make_gather_points(struct made *m)
{
	struct ap_shape *index;

	make_one(m);
	index = operand(m, AP_INT32, (uint8_t)(1 + draw(m, 3)));
	index->dim[index->rank - 1] = 1 + draw(m, m->in[0].rank);
}

static void make_look_up(struct made *m)
{
	bool embedding = strcmp(m->type, "Embedding") == 0;

	if (embedding)
		operand(m, AP_INT32, 2);
	operand(m, AP_FLOAT32, 2)->dim[0] = 8;
	if (!embedding)
		operand(m, AP_INT32, (uint8_t)(1 + draw(m, 3)));
}

static void make_segments(struct made *m)
{
	make_one(m);
	m->in[m->nin] = m->in[0];
	m->in[m->nin].dtype = AP_INT32;
	m->in[m->nin++].rank = (uint8_t)(1 + draw(m, m->in[0].rank));
	set(m, "num_segments", length(m));
}

static void make_topk(struct made *m)
{
	make_one(m);
	set(m, "k", 1 + draw(m, m->in[0].dim[m->in[0].rank - 1]));
	m->nout = 2;
}

static void make_pair(struct made *m)
{
	make_along(m);
	m->nout = 2;
}

const struct made_kind made_kinds[] = {
	{"Concat", make_concat}, {"Stack", make_stack}, {"AddN", make_sum}, {"Split", make_split},
	{"SplitV", make_split_sizes}, {"SplitWithSize", make_split_sizes},
	{"SplitTensor", make_split_chunks}, {"Slice", make_slice}, {"StridedSlice", make_strided},
	{"Reshape", make_reshape}, {"Flatten", make_one}, {"ExpandDims", make_new_dim},
	{"Squeeze", make_squeeze}, {"BroadcastTo", make_broadcast}, {"Tile", make_tile},
	{"RepeatElements", make_repeat}, {"Transpose", make_transpose}, {"ReverseV2", make_along},
	{"Select", make_choice}, {"MaskedFill", make_choice}, {"GatherD", make_gather_dim},
	{"GatherNd", make_gather_points}, {"Gather", make_look_up},
	{"EmbeddingLookup", make_look_up}, {"Embedding", make_look_up},
	{"UnsortedSegmentSum", make_segments}, {"UnsortedSegmentMax", make_segments},
	{"UnsortedSegmentMin", make_segments}, {"UnsortedSegmentProd", make_segments},
	{"ReduceSum", make_along}, {"ReduceMax", make_along}, {"ReduceMin", make_along},
	{"ReduceProd", make_along}, {"CumSum", make_along}, {"CumProd", make_along},
	{"TopK", make_topk}, {"Sort", make_pair}, {"ArgMaxWithValue", make_pair},
	{"ArgMinWithValue", make_pair}, {"Argmax", make_along}, {"Argmin", make_along},
};

const size_t made_nkind = sizeof made_kinds / sizeof *made_kinds;

void made_make(struct made *m, const struct made_kind *kind)
{
	*m = (struct made){.rng = m->rng, .type = kind->type, .nout = 1};
	m->attrs.v = m->attr;
	kind->make(m);
}
