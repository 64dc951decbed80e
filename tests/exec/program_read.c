/* SPDX-License-Identifier: Apache-2.0 */
#include "program_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "hw/group.h"

void ex_read_fault(struct ex_reader *r, const char *fmt, ...)
{
	struct ap_str text;
	va_list ap;

	if (r->why)
		return;
	ap_str_init(&text, r->ctx->arena);
	ap_str_addf(&text, "%s: ", r->about);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	r->why = text.s;
}

bool ex_read_open(struct ex_reader *r, struct ap_ctx *ctx, const char *text, size_t len)
{
	*r = (struct ex_reader){.ctx = ctx, .about = "the file"};
	if (ap_json_parse(ctx, "plan.json", text, len, 0, &r->doc) != AP_OK ||
		ap_jv_type(ap_json_root(r->doc)) != AP_JOBJECT)
		ex_read_fault(r, "no JSON object");
	return !r->why;
}

const struct ap_jv *ex_read(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	enum ap_jtype type)
{
	const struct ap_jv *v = obj && ap_jv_type(obj) == AP_JOBJECT ? ap_jv_get(obj, key) : NULL;

	if (v && ap_jv_type(v) == type)
		return v;
	ex_read_fault(r, "no \"%s\"", key);
	return NULL;
}

static int64_t whole_number(struct ex_reader *r, const struct ap_jv *v)
{
	int64_t x = 0;

	if (!v || ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &x))
		ex_read_fault(r, "no whole number");
	return x;
}

int64_t ex_read_int(struct ex_reader *r, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ex_read(r, obj, key, AP_JNUMBER);

	return v ? whole_number(r, v) : 0;
}

double ex_read_number(struct ex_reader *r, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ex_read(r, obj, key, AP_JNUMBER);

	return v ? ap_jv_double(v) : 0;
}

const char *ex_read_str(struct ex_reader *r, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ex_read(r, obj, key, AP_JSTRING);

	return v ? ap_jv_str(v) : "";
}

int ex_read_word(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	const char *const *names)
{
	const char *word = ex_read_str(r, obj, key);

	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], word) == 0)
			return i;
	ex_read_fault(r, "\"%s\" is \"%s\"", key, word);
	return 0;
}

const struct ap_jv *ex_first(const struct ap_jv *v)
{
	return v ? ap_jv_first(v) : NULL;
}

int ex_read_ints(struct ex_reader *r, const struct ap_jv *array, int64_t *out, int most)
{
	int n = 0;

	if (!array || ap_jv_type(array) != AP_JARRAY || ap_jv_count(array) > (size_t)most) {
		ex_read_fault(r, "no list of at most %d numbers", most);
		return 0;
	}
	for (const struct ap_jv *v = ap_jv_first(array); v; v = ap_jv_next(v))
		out[n++] = whole_number(r, v);
	return n;
}

void ex_read_count(struct ex_reader *r, const struct ap_jv *array, size_t n)
{
	if (array && ap_jv_count(array) != n)
		ex_read_fault(r, "%zu entries of %zu", ap_jv_count(array), n);
}

void ex_read_matrix(struct ex_reader *r, const struct ap_jv *obj, int64_t ndev,
	struct ex_matrix *out)
{
	int64_t product = 1;

	out->n = ex_read_ints(r, ex_read(r, obj, "dev_matrix", AP_JARRAY), out->axis,
		AP_MAX_FACTOR + 1);
	for (int i = 0; i < out->n; i++)
		product *= out->axis[i];
	if (product != ndev)
		ex_read_fault(r, "dev_matrix arranges %" PRId64 " of %" PRId64 " devices", product, ndev);
}

void ex_read_map(struct ex_reader *r, const struct ap_jv *map, const struct ex_matrix *m, uint8_t rank,
	struct ap_layout *out)
{
	int64_t axes[AP_MAX_RANK][AP_MAX_DIM_FACTOR] = {{0}};
	uint8_t n[AP_MAX_RANK] = {0};
	int d = 0;

	*out = (struct ap_layout){.rank = rank};
	ex_read_count(r, map, rank);
	for (const struct ap_jv *v = ex_first(map); v && !r->why; v = ap_jv_next(v), d++)
		if (ap_jv_type(v) == AP_JARRAY) {
			n[d] = (uint8_t)ex_read_ints(r, v, axes[d], AP_MAX_DIM_FACTOR);
		} else {
			axes[d][0] = whole_number(r, v);
			n[d] = axes[d][0] >= 0;
		}
	if (!r->why && !ex_layout_of_map(m->n, m->axis, rank, n,
			       (const int64_t(*)[AP_MAX_DIM_FACTOR])axes, out))
		ex_read_fault(r, "a tensor_map names no axis of dev_matrix");
}

void ex_read_layout(struct ex_reader *r, const struct ap_jv *v, uint8_t rank, struct ap_layout *out)
{
	int d = 0;

	*out = (struct ap_layout){.rank = rank};
	ex_read_count(r, v, rank);
	for (const struct ap_jv *dim = ex_first(v); dim && !r->why; dim = ap_jv_next(dim)) {
		int64_t pair[2] = {1, 0};

		if (ex_read_ints(r, dim, pair, 2) != 2 || pair[0] < 1)
			ex_read_fault(r, "a layout without parts and stride");
		out->dim[d++] = (struct ap_cut_dim){(int32_t)pair[0], (int32_t)pair[1]};
	}
}

struct ap_axis ex_read_axis(struct ex_reader *r, const struct ap_jv *v)
{
	int64_t pair[2] = {1, 1};

	if (ex_read_ints(r, v, pair, 2) != 2 || pair[0] < 1 || pair[1] < 1)
		ex_read_fault(r, "an axis without stride and size");
	return (struct ap_axis){(int32_t)pair[0], (int32_t)pair[1]};
}

/* Is `ranks`, ascending, what combinations of the axes' coordinates give? */
static void check_ranks(struct ex_reader *r, const struct ap_axes *axes, const int64_t *ranks, int n,
	int64_t ndev)
{
	bool in[EX_MAX_DEV] = {false};
	int64_t size = ap_axes_size(axes), next = 0;

	for (int64_t i = 0; i < size; i++) {
		int64_t rank = 0, left = i;

		for (int a = 0; a < axes->n; a++) {
			rank += left % axes->axis[a].size * axes->axis[a].stride;
			left /= axes->axis[a].size;
		}
		if (rank >= ndev || in[rank]) {
			ex_read_fault(r, "axes that name rank %" PRId64, rank);
			return;
		}
		in[rank] = true;
	}
	for (int64_t rank = 0; rank < ndev; rank++)
		if (in[rank] && (next >= n || ranks[next++] != rank))
			ex_read_fault(r, "rank %" PRId64 " is not in \"ranks\"", rank);
	if (next != n)
		ex_read_fault(r, "too many \"ranks\"");
}

void ex_read_group(struct ex_reader *r, const struct ap_jv *obj, int64_t first, int64_t ndev,
	struct ap_axes *out)
{
	const struct ap_jv *v = ex_first(ex_read(r, obj, "axes", AP_JARRAY));
	int64_t ranks[EX_MAX_DEV];
	int n = ex_read_ints(r, ex_read(r, obj, "ranks", AP_JARRAY), ranks, EX_MAX_DEV);

	*out = (struct ap_axes){0};
	for (int i = 0; i < n; i++)
		ranks[i] -= first;
	for (; v && !r->why; v = ap_jv_next(v))
		ap_axes_add(out, ex_read_axis(r, v));
	if (!r->why && ap_axes_size(out) <= EX_MAX_DEV)
		check_ranks(r, out, ranks, n, ndev);
}

void ex_read_slice(struct ex_reader *r, const struct ap_jv *v, const struct ap_shape *shape,
	const struct ap_layout *l)
{
	int64_t slice[AP_MAX_RANK];
	int n = ex_read_ints(r, v, slice, AP_MAX_RANK);

	for (int d = 0; d < shape->rank && !r->why; d++)
		if (n != shape->rank || slice[d] * l->dim[d].cut != shape->dim[d])
			ex_read_fault(r, "a slice that is not that of the layout");
}
