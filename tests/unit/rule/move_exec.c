/* SPDX-License-Identifier: Apache-2.0 */
#include "move_exec.h"

#include <string.h>

enum { LINE = 64 }; /* longest dimension that is looked at as a whole */

int64_t tensor_count(const struct tensor *t)
{
	int64_t n = 1;

	for (uint8_t i = 0; i < t->rank; i++)
		n *= t->size[i];
	return n;
}

int64_t tensor_get(const struct tensor *t, const int64_t *at)
{
	int64_t flat = 0;

	for (uint8_t i = 0; i < t->rank; i++)
		flat = flat * t->size[i] + at[i];
	return t->v[flat];
}

bool tensor_next(const struct tensor *t, int64_t *at)
{
	for (uint8_t i = t->rank; i-- > 0;) {
		if (++at[i] < t->size[i])
			return true;
		at[i] = 0;
	}
	return false;
}

static int64_t number(const struct job *j, const char *name, int64_t otherwise)
{
	return ap_attr_int(j->attrs, name, otherwise);
}

static int64_t listed(const struct job *j, const char *name, unsigned i)
{
	return ap_attr_get(j->attrs, name)->list[i];
}

static int axis_of(const struct job *j, const char *name, int64_t otherwise, int rank)
{
	int64_t v = number(j, name, otherwise);

	return (int)(v < 0 ? v + rank : v);
}

/* at, right-aligned to a tensor of lower or equal rank whose dimensions of length one repeat. */
static int64_t get_broadcast(const struct tensor *t, const int64_t *at, int rank)
{
	int64_t own[AP_MAX_RANK];

	for (int i = 0; i < t->rank; i++)
		own[i] = t->size[i] == 1 ? 0 : at[rank - t->rank + i];
	return tensor_get(t, own);
}

static int64_t concat(const struct job *j, unsigned r, const int64_t *at)
{
	int axis = axis_of(j, "axis", 0, j->out[r].rank);
	int64_t own[AP_MAX_RANK];
	const struct tensor *t = j->in;

	memcpy(own, at, sizeof own);
	for (; own[axis] >= t->size[axis]; t++)
		own[axis] -= t->size[axis];
	return tensor_get(t, own);
}

static int64_t stack(const struct job *j, unsigned r, const int64_t *at)
{
	int axis = axis_of(j, "axis", 0, j->out[r].rank), n = 0;
	int64_t own[AP_MAX_RANK];

	for (int i = 0; i < j->out[r].rank; i++)
		if (i != axis)
			own[n++] = at[i];
	return tensor_get(&j->in[at[axis]], own);
}

static int64_t split(const struct job *j, unsigned r, const int64_t *at)
{
	const char *name = strcmp(j->type, "Split") == 0 ? "axis"
		: strcmp(j->type, "SplitV") == 0 ? "split_dim" : "dim";
	int axis = axis_of(j, name, 0, j->in->rank);
	int64_t own[AP_MAX_RANK];

	memcpy(own, at, sizeof own);
	for (unsigned i = 0; i < r; i++)
		own[axis] += j->out[i].size[axis];
	return tensor_get(j->in, own);
}

static int64_t slice(const struct job *j, unsigned r, const int64_t *at)
{
	int64_t own[AP_MAX_RANK];

	for (unsigned i = 0; i < j->out[r].rank; i++)
		own[i] = at[i] + listed(j, "begin", i);
	return tensor_get(j->in, own);
}

static int64_t within(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Index that a[begin:end:stride] has at place k. */
static int64_t strided_index(const struct job *j, unsigned i, int64_t n, int64_t k)
{
	int64_t step = ap_attr_get(j->attrs, "strides") ? listed(j, "strides", i) : 1;
	int64_t from = listed(j, "begin", i);

	from = from < 0 ? from + n : from;
	from = step > 0 ? within(from, 0, n) : within(from, -1, n - 1);
	if (number(j, "begin_mask", 0) >> i & 1)
		from = step > 0 ? 0 : n - 1;
	return from + k * step;
}

static int64_t strided(const struct job *j, unsigned r, const int64_t *at)
{
	unsigned n = ap_attr_get(j->attrs, "begin")->n;
	int64_t ellipsis = number(j, "ellipsis_mask", 0), added = number(j, "new_axis_mask", 0);
	int64_t own[AP_MAX_RANK], shrunk = number(j, "shrink_axis_mask", 0);
	int d = 0, k = 0, rest = j->in->rank;

	(void)r;
	for (unsigned i = 0; i < n; i++)
		rest -= !((ellipsis | added) >> i & 1);
	for (unsigned i = 0; i < n; i++) {
		if (ellipsis >> i & 1) {
			for (; rest > 0; rest--)
				own[d++] = at[k++];
		} else if (added >> i & 1) {
			k++;
		} else {
			own[d] = strided_index(j, i, j->in->size[d], shrunk >> i & 1 ? 0 : at[k++]);
			d++;
		}
	}
	while (d < j->in->rank)
		own[d++] = at[k++];
	return tensor_get(j->in, own);
}

/* The same elements in the same order. */
static int64_t view(const struct job *j, unsigned r, const int64_t *at)
{
	int64_t flat = 0;

	for (int i = 0; i < j->out[r].rank; i++)
		flat = flat * j->out[r].size[i] + at[i];
	return j->in->v[flat];
}

static int64_t broadcast(const struct job *j, unsigned r, const int64_t *at)
{
	return get_broadcast(j->in, at, j->out[r].rank);
}

static int64_t tile(const struct job *j, unsigned r, const int64_t *at)
{
	int64_t own[AP_MAX_RANK];

	for (int i = 0; i < j->in->rank; i++)
		own[i] = at[j->out[r].rank - j->in->rank + i] % j->in->size[i];
	return tensor_get(j->in, own);
}

static int64_t repeat(const struct job *j, unsigned r, const int64_t *at)
{
	int axis = axis_of(j, "axis", 0, j->in->rank);
	int64_t own[AP_MAX_RANK];

	(void)r;
	memcpy(own, at, sizeof own);
	own[axis] /= number(j, "rep", 1);
	return tensor_get(j->in, own);
}

static int64_t transpose(const struct job *j, unsigned r, const int64_t *at)
{
	int64_t own[AP_MAX_RANK];

	for (unsigned i = 0; i < j->out[r].rank; i++)
		own[listed(j, "perm", i)] = at[i];
	return tensor_get(j->in, own);
}

static int64_t reverse(const struct job *j, unsigned r, const int64_t *at)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, "axis");
	int64_t own[AP_MAX_RANK];

	(void)r;
	memcpy(own, at, sizeof own);
	for (uint32_t i = 0; i < a->n; i++)
		own[a->list[i]] = j->in->size[a->list[i]] - 1 - own[a->list[i]];
	return tensor_get(j->in, own);
}

static int64_t add_all(const struct job *j, unsigned r, const int64_t *at)
{
	int64_t sum = 0;

	(void)r;
	for (uint16_t i = 0; i < j->nin; i++)
		sum += tensor_get(&j->in[i], at);
	return sum;
}

static int64_t choose(const struct job *j, unsigned r, const int64_t *at)
{
	int rank = j->out[r].rank;

	return get_broadcast(&j->in[get_broadcast(&j->in[0], at, rank) & 1 ? 1 : 2], at, rank);
}

static int64_t fill(const struct job *j, unsigned r, const int64_t *at)
{
	int rank = j->out[r].rank;

	return get_broadcast(&j->in[get_broadcast(&j->in[1], at, rank) & 1 ? 2 : 0], at, rank);
}

static int64_t gather_dim(const struct job *j, unsigned r, const int64_t *at)
{
	int dim = axis_of(j, "dim", 0, j->out[r].rank);
	int64_t own[AP_MAX_RANK];

	memcpy(own, at, sizeof own);
	own[dim] = tensor_get(&j->in[1], at) % j->in[0].size[dim];
	return tensor_get(&j->in[0], own);
}

static int64_t gather_points(const struct job *j, unsigned r, const int64_t *at)
{
	const struct tensor *x = &j->in[0], *index = &j->in[1];
	int last = index->rank - 1, n = (int)index->size[last];
	int64_t own[AP_MAX_RANK], place[AP_MAX_RANK];

	memcpy(place, at, sizeof place);
	for (place[last] = 0; place[last] < n; place[last]++)
		own[place[last]] = tensor_get(index, place) % x->size[place[last]];
	for (int i = n; i < x->rank; i++)
		own[i] = at[last + i - n];
	(void)r;
	return tensor_get(x, own);
}

/* A part of the table gives zero for rows that it does not hold. */
static int64_t look_up(const struct job *j, unsigned r, const int64_t *at)
{
	bool second = strcmp(j->type, "Embedding") == 0;
	const struct tensor *table = &j->in[second], *index = &j->in[!second];
	int64_t row = tensor_get(index, at) % 8 - table->first[0], own[AP_MAX_RANK];

	(void)r;
	if (row < 0 || row >= table->size[0])
		return 0;
	own[0] = row;
	for (int i = 1; i < table->rank; i++)
		own[i] = at[index->rank + i - 1];
	return tensor_get(table, own);
}

static int64_t merge(enum ap_reduction how, int64_t a, int64_t b)
{
	switch (how) {
	case AP_REDUCE_MAX:
		return a > b ? a : b;
	case AP_REDUCE_MIN:
		return a < b ? a : b;
	case AP_REDUCE_PROD:
		return a * b % 10007;
	default:
		return a + b;
	}
}

static enum ap_reduction reduction(const struct job *j)
{
	return strstr(j->type, "Max") ? AP_REDUCE_MAX : strstr(j->type, "Min") ? AP_REDUCE_MIN
		: strstr(j->type, "Prod") ? AP_REDUCE_PROD : AP_REDUCE_SUM;
}

static int64_t neutral(enum ap_reduction how)
{
	return how == AP_REDUCE_MAX ? INT32_MIN : how == AP_REDUCE_MIN ? INT32_MAX
		: how == AP_REDUCE_PROD;
}

static int64_t segments(const struct job *j, unsigned r, const int64_t *at)
{
	const struct tensor *x = &j->in[0], *id = &j->in[1];
	int64_t sum = neutral(reduction(j)), own[AP_MAX_RANK] = {0};

	do
		if (tensor_get(id, own) % number(j, "num_segments", 1) == at[0] &&
			memcmp(own + id->rank, at + 1,
				(size_t)(x->rank - id->rank) * sizeof *at) == 0)
			sum = merge(reduction(j), sum, tensor_get(x, own));
	while (tensor_next(x, own));
	(void)r;
	return sum;
}

static int64_t reduce(const struct job *j, unsigned r, const int64_t *at)
{
	int axis = axis_of(j, "axis", 0, j->in->rank);
	int64_t sum = neutral(reduction(j)), own[AP_MAX_RANK];

	(void)r;
	for (int i = 0; i < j->in->rank; i++)
		own[i] = i < axis ? at[i] : i > axis ? at[i - 1] : 0;
	for (; own[axis] < j->in->size[axis]; own[axis]++)
		sum = merge(reduction(j), sum, tensor_get(j->in, own));
	return sum;
}

/* The line of the operand along an axis through at; its length. */
static int64_t line_at(const struct tensor *t, const int64_t *at, int axis, int64_t v[LINE])
{
	int64_t own[AP_MAX_RANK];

	memcpy(own, at, sizeof own);
	for (own[axis] = 0; own[axis] < t->size[axis]; own[axis]++)
		v[own[axis]] = tensor_get(t, own);
	return t->size[axis];
}

static int64_t running(const struct job *j, unsigned r, const int64_t *at)
{
	int axis = axis_of(j, "axis", 0, j->in->rank);
	enum ap_reduction how = strcmp(j->type, "CumProd") == 0 ? AP_REDUCE_PROD : AP_REDUCE_SUM;
	int64_t v[LINE], sum = neutral(how);

	(void)r;
	line_at(j->in, at, axis, v);
	for (int64_t i = 0; i <= at[axis]; i++)
		sum = merge(how, sum, v[i]);
	return sum;
}

/* Place k of the line in order, the first of equals first: result 0 the value, 1 the index. */
static int64_t ordered(const struct job *j, unsigned r, const int64_t *at)
{
	bool down = strcmp(j->type, "TopK") == 0;
	int axis = axis_of(j, "axis", -1, j->in->rank);
	int64_t v[LINE], n = line_at(j->in, at, axis, v);

	for (int64_t i = 0; i < n; i++) {
		int64_t before = 0;

		for (int64_t k = 0; k < n; k++)
			before += v[k] == v[i] ? k < i : (v[k] > v[i]) == down;
		if (before == at[axis])
			return r == 0 ? v[i] : i;
	}
	return -1;
}

/* Result 0 the index, 1 the value. */
static int64_t extreme(const struct job *j, unsigned r, const int64_t *at)
{
	bool most = strncmp(j->type, "ArgMax", 6) == 0 || strcmp(j->type, "Argmax") == 0;
	int axis = axis_of(j, "axis", strncmp(j->type, "Argm", 4) == 0 ? -1 : 0, j->in->rank);
	int64_t v[LINE], own[AP_MAX_RANK], n, best = 0;

	for (int i = 0; i < j->in->rank; i++)
		own[i] = i < axis ? at[i] : i > axis ? at[i - 1] : 0;
	n = line_at(j->in, own, axis, v);
	for (int64_t i = 1; i < n; i++)
		if (most ? v[i] > v[best] : v[i] < v[best])
			best = i;
	return r == 0 ? best : v[best];
}

static const struct {
	const char *type;
	int64_t (*element)(const struct job *j, unsigned r, const int64_t *at);
} operators[] = {
	{"Concat", concat}, {"Stack", stack}, {"Split", split}, {"SplitV", split},
	{"SplitWithSize", split}, {"SplitTensor", split}, {"Slice", slice},
	{"StridedSlice", strided}, {"Reshape", view}, {"Flatten", view}, {"ExpandDims", view},
	{"Squeeze", view}, {"BroadcastTo", broadcast}, {"Tile", tile}, {"RepeatElements", repeat},
	{"Transpose", transpose}, {"ReverseV2", reverse}, {"AddN", add_all}, {"Select", choose},
	{"MaskedFill", fill}, {"GatherD", gather_dim}, {"GatherNd", gather_points},
	{"Gather", look_up}, {"EmbeddingLookup", look_up}, {"Embedding", look_up},
	{"UnsortedSegmentSum", segments}, {"UnsortedSegmentMax", segments},
	{"UnsortedSegmentMin", segments}, {"UnsortedSegmentProd", segments},
	{"ReduceSum", reduce}, {"ReduceMax", reduce}, {"ReduceMin", reduce}, {"ReduceProd", reduce},
	{"CumSum", running}, {"CumProd", running}, {"TopK", ordered}, {"Sort", ordered},
	{"ArgMaxWithValue", extreme}, {"ArgMinWithValue", extreme}, {"Argmax", extreme},
	{"Argmin", extreme},
};

bool job_run(const struct job *j)
{
	size_t n = sizeof operators / sizeof *operators, k = 0;

	while (k < n && strcmp(operators[k].type, j->type) != 0)
		k++;
	for (unsigned r = 0; k < n && r < j->nout; r++) {
		int64_t at[AP_MAX_RANK] = {0}, i = 0;

		do
			j->out[r].v[i++] = operators[k].element(j, r, at);
		while (tensor_next(&j->out[r], at));
	}
	return k < n;
}
