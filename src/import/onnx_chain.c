/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_chain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "rule/attr.h"
#include "rule/binding.h"

enum { MOST_OPS = 24, LETTERS = 26 };

enum detail { none, axis, norm, rms, softmax };

static const struct {
	const char *type, *pattern, *operands;
	enum detail detail;
} rows[] = {
#define CHAIN(type, pattern, operands, detail) {#type, pattern, operands, detail},
#include "import/onnx_chains.def"
};

struct found { /* of a pattern so far */
	ap_id named[LETTERS]; /* value of a letter; AP_NONE: none yet */
	double number; /* the first # */
	bool numbered;
	ap_id reduction; /* operator: the first reduction */
	uint32_t n;
	ap_id op[MOST_OPS];
};

struct chains {
	struct ap_onnx_walk *w;
	uint32_t *uses; /* of values */
	size_t nuses;
	struct ap_map *types; /* of joined chains */
	AP_VEC(uint32_t) counts, lengths;
	struct ap_map *masks; /* broadcast masks */
	AP_VEC(ap_id) mask_vals;
};

/* The end of a term of a pattern. */
static const char *behind(const char *p)
{
	int open = 0;

	for (; *p && (open || (*p != ',' && *p != ')')); p++)
		open += (*p == '(') - (*p == ')');
	return p;
}

static bool match(const struct chains *c, const char *p, ap_id v, struct found *f);

static bool match_operands(const struct chains *c, const char *p, const struct ap_onnx_made *op, bool turned,
	struct found *f)
{
	uint32_t n = 0;

	for (; *p && *p != ')'; p = behind(p), p += *p == ',', n++)
		if (n >= op->nin || !match(c, p, op->in[turned ? op->nin - 1 - n : n], f))
			return false;
	return n == op->nin;
}

/* Does a term describe a value? f then has what it found. */
static bool match(const struct chains *c, const char *p, ap_id v, struct found *f)
{
	const struct ap_onnx_made *op;
	struct found before;
	size_t len;
	double number, wanted;
	ap_id at;

	if (v == AP_NONE)
		return false;
	if (*p == '#') {
		if (!ap_onnx_number(c->w, v, &number))
			return false;
		if (p[1] != ',' && p[1] != ')' && p[1]) {
			wanted = ap_strtod(p + 1, NULL);
			return fabs(number - wanted) <= 1e-3 * fabs(wanted);
		}
		f->number = f->numbered ? f->number : number;
		f->numbered = true;
		return true;
	}
	if (*p >= 'a' && *p <= 'z' && p[1] != ':') {
		if (f->named[*p - 'a'] != AP_NONE)
			return f->named[*p - 'a'] == v;
		f->named[*p - 'a'] = v;
		return true;
	}
	if (p[1] == ':') {
		if (!match(c, p + 2, v, f))
			return false;
		f->named[*p - 'a'] = v;
		return true;
	}
	op = ap_onnx_maker(c->w, v);
	len = strcspn(p, "(");
	if (!op || op->gone || strlen(op->type) != len || strncmp(op->type, p, len) || f->n >= MOST_OPS)
		return false;
	at = (ap_id)(op - c->w->ops.v);
	for (uint32_t i = 0; i < f->n; i++)
		if (f->op[i] == at)
			at = AP_NONE; /* read twice */
	if (at != AP_NONE)
		f->op[f->n++] = at;
	if (!strncmp(op->type, "Reduce", 6) && f->reduction == AP_NONE)
		f->reduction = at;
	before = *f;
	if (match_operands(c, p + len + 1, op, false, f))
		return true;
	*f = before;
	if (strcmp(op->type, "Add") && strcmp(op->type, "Mul"))
		return false;
	return match_operands(c, p + len + 1, op, true, f);
}

/* Do only the chain's own operators read its steps? The first of f->op makes its result. */
static bool is_closed(const struct chains *c, const struct found *f)
{
	for (uint32_t i = 1; i < f->n; i++) {
		const struct ap_onnx_made *op = &c->w->ops.v[f->op[i]];
		uint32_t inside = 0;

		for (uint32_t k = 0; k < f->n; k++) {
			const struct ap_onnx_made *reader = &c->w->ops.v[f->op[k]];

			for (uint32_t j = 0; j < reader->nin; j++)
				inside += reader->in[j] == op->out;
		}
		if (c->uses[op->out] != inside)
			return false;
	}
	return true;
}

/* Puts type, operands and attributes in the place of the operator `at`, whose other steps go. False, and
 * nothing changes, if its rule gives another shape. */
static bool join(struct chains *c, const struct found *f, const char *type, uint32_t nin, const ap_id *in,
	uint32_t nattr, const struct ap_attr *attr)
{
	struct ap_onnx_walk *w = c->w;
	struct ap_onnx_made op = w->ops.v[f->op[0]];
	bool fresh;
	ap_id id;

	op.type = type;
	op.nin = nin;
	op.in = ap_arena_memdup(w->ctx->arena, in, nin * sizeof *in);
	op.attrs = (struct ap_attrs){
		nattr, nattr ? ap_arena_memdup(w->ctx->arena, attr, nattr * sizeof *attr) : NULL};
	if (!ap_onnx_binds(w, &op))
		return false;
	for (uint32_t i = 0; i < f->n; i++) {
		struct ap_onnx_made *gone = &w->ops.v[f->op[i]];

		gone->gone = true;
		for (uint32_t k = 0; k < gone->nin; k++)
			if (gone->in[k] != AP_NONE)
				c->uses[gone->in[k]]--;
	}
	for (uint32_t k = 0; k < nin; k++)
		if (in[k] != AP_NONE)
			c->uses[in[k]]++;
	w->ops.v[f->op[0]] = op;
	id = ap_map_put_str(c->types, type, &fresh);
	if (fresh) {
		AP_PUSH(w->ctx->arena, c->counts, 0);
		AP_PUSH(w->ctx->arena, c->lengths, 0);
	}
	c->counts.v[id]++;
	c->lengths.v[id] += f->n;
	return true;
}

/* Values have come: their uses are counted from now on. */
static void grow_uses(struct chains *c)
{
	size_t n = 2 * c->w->vals.n + 1;
	uint32_t *more;

	if (c->w->vals.n <= c->nuses)
		return;
	more = AP_NEW_N(c->w->ctx->arena, uint32_t, n);
	memcpy(more, c->uses, c->nuses * sizeof *more);
	c->uses = more;
	c->nuses = n;
}

/* A constant that a chain lacks. */
static ap_id number_like(struct chains *c, const struct ap_shape *x, uint8_t from, double value)
{
	struct ap_shape s = {.rank = (uint8_t)(x->rank - from), .dtype = x->dtype};
	ap_id id;

	memcpy(s.dim, x->dim + from, s.rank * sizeof *s.dim);
	id = ap_onnx_filled(c->w, s, value);
	ap_onnx_val(c->w, id)->name = ap_arena_printf(c->w->ctx->arena, "%s.%s",
		value == 0 ? "zeros" : "ones", ap_shape_text(c->w->ctx->arena, s.dim, s.rank));
	grow_uses(c);
	return id;
}

/* Are reductions over the last dimensions, which stay with length one? *first: of them. */
static bool last_dims(const struct chains *c, const struct found *f, uint8_t rank, uint8_t *first)
{
	bool any = false;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct ap_onnx_made *op = &c->w->ops.v[f->op[i]];
		const struct ap_attr *a;
		uint8_t from;

		if (strncmp(op->type, "Reduce", 6))
			continue;
		a = ap_attr_get(&op->attrs, "axis");
		if (!a || !a->n || a->n > rank || !ap_attr_bool(&op->attrs, "keep_dims", false))
			return false;
		from = (uint8_t)(rank - a->n);
		for (uint32_t k = 0; k < a->n; k++)
			if (a->list[k] != from + k)
				return false;
		if (any && from != *first)
			return false;
		*first = from;
		any = true;
	}
	return any;
}

/* Are reductions over the same dimension, which stays with length one? */
static bool one_dim(const struct chains *c, const struct found *f)
{
	const struct ap_attr *same = NULL;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct ap_attrs *attrs = &c->w->ops.v[f->op[i]].attrs;
		const struct ap_attr *a = ap_attr_get(attrs, "axis");

		if (strncmp(c->w->ops.v[f->op[i]].type, "Reduce", 6))
			continue;
		if (!a || a->n != 1 || !ap_attr_bool(attrs, "keep_dims", false) ||
			(same && same->list[0] != a->list[0]))
			return false;
		same = a;
	}
	return same;
}

static void join_row(struct chains *c, size_t row, ap_id at)
{
	struct ap_onnx_walk *w = c->w;
	struct found f = {.reduction = AP_NONE};
	struct ap_attr attr[3];
	uint32_t nin = 0, nattr = 0;
	ap_id in[4];
	const struct ap_attr *a;
	const struct ap_shape *x;
	uint8_t first = 0;

	memset(f.named, 0xff, sizeof f.named);
	if (!match(c, rows[row].pattern, w->ops.v[at].out, &f) || !is_closed(c, &f))
		return;
	x = &ap_onnx_val(w, f.named['x' - 'a'])->shape;
	if ((rows[row].detail == norm || rows[row].detail == rms) && !last_dims(c, &f, x->rank, &first))
		return;
	if (rows[row].detail == softmax && !one_dim(c, &f))
		return;
	if (rows[row].detail == norm) {
		attr[nattr++] = (struct ap_attr)AP_INT_ATTR("begin_norm_axis", first);
		attr[nattr++] = (struct ap_attr)AP_INT_ATTR("begin_params_axis", first);
	}
	if (rows[row].detail == norm || rows[row].detail == rms)
		attr[nattr++] = (struct ap_attr)AP_REAL_ATTR("epsilon", (float)f.number);
	if (rows[row].detail == softmax || rows[row].detail == axis) {
		a = NULL;
		for (uint32_t i = 0; i < f.n && !a; i++)
			a = ap_attr_get(&w->ops.v[f.op[i]].attrs, "axis");
		if (!a)
			return;
		attr[nattr++] = *a;
	}
	for (const char *s = rows[row].operands; *s; s++) {
		if (*s == '0' || *s == '1')
			in[nin++] = number_like(c, x, first, *s - '0');
		else
			in[nin++] = f.named[*s - 'a'];
		if (*s == 'g' || *s == 'b')
			ap_onnx_weigh(w, in[nin - 1]);
	}
	(void)join(c, &f, rows[row].type, nin, in, nattr, attr);
}

/* ---- attention ---- */

struct attention {
	struct found f;
	ap_id q, k, v, shift, mask; /* AP_NONE: none */
	double scale;
};

static void add_op(struct attention *a, const struct chains *c, const struct ap_onnx_made *op)
{
	if (a->f.n < MOST_OPS)
		a->f.op[a->f.n++] = (ap_id)(op - c->w->ops.v);
}

static bool is(const struct ap_onnx_made *op, const char *type)
{
	return op && !op->gone && !strcmp(op->type, type);
}

/* Goes from the softmax's operand back to the product of queries and keys, past scales and masks. */
static bool find_scores(const struct chains *c, ap_id v, struct attention *a, int depth)
{
	const struct ap_onnx_made *op = ap_onnx_maker(c->w, v);
	struct attention before = *a;
	double number;

	if (!op || op->gone || depth > 8)
		return false;
	add_op(a, c, op);
	if (is(op, "BatchMatMul")) {
		a->q = op->in[0];
		a->k = op->in[1];
		return !ap_attr_bool(&op->attrs, "transpose_a", false) &&
			ap_attr_bool(&op->attrs, "transpose_b", false);
	}
	if (is(op, "Cast"))
		return find_scores(c, op->in[0], a, depth + 1);
	if (is(op, "Mul") || is(op, "Div"))
		for (uint32_t i = 0; i < (is(op, "Mul") ? 2u : 1u); i++)
			if (ap_onnx_number(c->w, op->in[1 - i], &number)) {
				a->scale *= is(op, "Mul") ? number : 1 / number;
				return find_scores(c, op->in[i], a, depth + 1);
			}
	if (is(op, "Add"))
		for (uint32_t i = 0; i < 2; i++) {
			if (a->shift == AP_NONE) {
				a->shift = op->in[1 - i];
				if (find_scores(c, op->in[i], a, depth + 1))
					return true;
			}
			*a = before;
			add_op(a, c, op);
		}
	if (is(op, "Select"))
		for (uint32_t i = 1; i < 3; i++) {
			if (a->mask == AP_NONE && ap_onnx_val(c->w, op->in[3 - i])->kind == AP_ONNX_CONST) {
				a->mask = op->in[0];
				if (find_scores(c, op->in[i], a, depth + 1))
					return true;
			}
			*a = before;
			add_op(a, c, op);
		}
	return false;
}

/* The one reader of each value; AP_NONE if there are several. */
static ap_id *readers_of(const struct chains *c)
{
	struct ap_onnx_walk *w = c->w;
	ap_id *reader = AP_NEW_N(w->ctx->arena, ap_id, w->vals.n + 1);

	for (size_t i = 0; i < w->ops.n; i++)
		for (uint32_t k = 0; !w->ops.v[i].gone && k < w->ops.v[i].nin; k++)
			if (w->ops.v[i].in[k] != AP_NONE)
				reader[w->ops.v[i].in[k]] = (ap_id)i;
	return reader;
}

/* Goes from the softmax on to the product with values: *last makes the result. */
static bool find_values(const struct chains *c, const ap_id *reader, const struct ap_onnx_made *from,
	struct attention *a, ap_id *last)
{
	for (int depth = 0; depth < 4; depth++) {
		const struct ap_onnx_made *next;

		if (c->uses[from->out] != 1)
			return false;
		next = &c->w->ops.v[reader[from->out]];
		if (is(next, "BatchMatMul") && next->in[0] == from->out) {
			a->v = next->in[1];
			*last = (ap_id)(next - c->w->ops.v);
			return !ap_attr_bool(&next->attrs, "transpose_a", false) &&
				!ap_attr_bool(&next->attrs, "transpose_b", false);
		}
		if (!is(next, "Cast") && !is(next, "Dropout"))
			return false;
		add_op(a, c, next);
		from = next;
	}
	return false;
}

/* Takes a scale off queries or keys. */
static void unscale(const struct chains *c, ap_id *v, struct attention *a)
{
	const struct ap_onnx_made *op = ap_onnx_maker(c->w, *v);
	double number;

	if (!is(op, "Mul") || c->uses[*v] != 1 || !ap_onnx_number(c->w, op->in[1], &number))
		return;
	add_op(a, c, op);
	a->scale *= number;
	*v = op->in[0];
}

/* A mask as large as its rule wants: of all queries and keys. */
static ap_id mask_of(struct chains *c, ap_id mask, const struct ap_shape *q, const struct ap_shape *k)
{
	struct ap_onnx_walk *w = c->w;
	struct ap_shape s = ap_onnx_val(w, mask)->shape;
	int64_t dim[4] = {1, 1, q->dim[2], k->dim[2]};
	bool fresh;
	ap_id id, key;

	if (s.rank > 4)
		return AP_NONE;
	for (uint8_t d = 0; d + 2 < s.rank; d++)
		dim[4 - s.rank + d] = s.dim[d];
	if (s.rank == 4 && !memcmp(dim, s.dim, sizeof dim))
		return mask;
	key = ap_map_put(c->masks, &mask, sizeof mask, &fresh);
	if (fresh) {
		struct ap_attr attr = AP_INTS_ATTR("shape", dim, 4);

		id = ap_onnx_emit(w, "BroadcastTo", AP_IN(mask), 1, &attr, 1);
		w->failed = false;
		if (id != AP_NONE && !ap_onnx_val(w, id)->name && ap_onnx_val(w, id)->kind == AP_ONNX_CONST)
			ap_onnx_val(w, id)->name = ap_arena_printf(w->ctx->arena, "mask.%" PRIu32, key);
		AP_PUSH(w->ctx->arena, c->mask_vals, id);
		grow_uses(c);
		c->uses[mask] += id != AP_NONE;
	}
	return c->mask_vals.v[key];
}

static void join_attention(struct chains *c, const ap_id *reader, ap_id at)
{
	struct ap_onnx_walk *w = c->w;
	struct attention a = {.shift = AP_NONE, .mask = AP_NONE, .scale = 1, .f = {.n = 1}};
	const struct ap_onnx_made *soft = &w->ops.v[at];
	const struct ap_attr *over = ap_attr_get(&soft->attrs, "axis");
	const struct ap_shape *q, *k;
	struct ap_attr attr[5];
	uint32_t n = 0;
	ap_id in[7], last;

	if (!over || over->n != 1 || ap_onnx_val(w, soft->out)->shape.rank != 4 || over->list[0] != 3)
		return;
	add_op(&a, c, soft);
	if (!find_values(c, reader, soft, &a, &last) || !find_scores(c, soft->in[0], &a, 0))
		return;
	a.f.op[0] = last;
	unscale(c, &a.q, &a);
	unscale(c, &a.k, &a);
	q = &ap_onnx_val(w, a.q)->shape;
	k = &ap_onnx_val(w, a.k)->shape;
	if (a.f.n >= MOST_OPS || q->rank != 4 || k->rank != 4 || !is_closed(c, &a.f))
		return;
	if (a.shift != AP_NONE)
		a.shift = mask_of(c, a.shift, q, k);
	if (a.mask != AP_NONE)
		a.mask = mask_of(c, a.mask, q, k);
	in[0] = a.q;
	in[1] = a.k;
	in[2] = a.v;
	in[3] = a.shift;
	in[4] = in[5] = AP_NONE;
	in[6] = a.mask;
	attr[n++] = (struct ap_attr)AP_INT_ATTR("head_num", ap_onnx_val(w, a.q)->shape.dim[1]);
	attr[n++] = (struct ap_attr)AP_TEXT_ATTR("input_layout", "BNSD");
	attr[n++] = (struct ap_attr)AP_REAL_ATTR("scale_value", (float)a.scale);
	attr[n++] = (struct ap_attr)AP_INT_ATTR("sparse_mode", 0);
	(void)join(c, &a.f, "FlashAttentionScore",
		a.mask != AP_NONE	     ? 7
			: a.shift != AP_NONE ? 4
						: 3,
		in, n, attr);
}

/* ---- all ---- */

static void tell(struct chains *c)
{
	struct ap_str text;

	if (!ap_map_size(c->types))
		return;
	ap_str_init(&text, c->w->ctx->arena);
	for (ap_id id = 0; id < ap_map_size(c->types); id++)
		ap_str_addf(&text, "%s%" PRIu32 " %s (of %" PRIu32 " operators)", id ? ", " : "",
			c->counts.v[id], ap_map_key(c->types, id, NULL), c->lengths.v[id]);
	(void)ap_diag_add(c->w->ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = c->w->model->file},
		"onnx-chains", "chains that are one operator: %s", text.s);
}

static void count_uses(struct chains *c)
{
	struct ap_onnx_walk *w = c->w;

	c->nuses = w->vals.n + 1;
	c->uses = AP_NEW_N(w->ctx->arena, uint32_t, c->nuses);
	for (size_t i = 0; i < w->ops.n; i++)
		for (uint32_t k = 0; !w->ops.v[i].gone && k < w->ops.v[i].nin; k++)
			if (w->ops.v[i].in[k] != AP_NONE)
				c->uses[w->ops.v[i].in[k]]++;
	for (size_t i = 0; i < w->outputs.n; i++)
		c->uses[w->outputs.v[i]]++;
}

void ap_onnx_join_chains(struct ap_onnx_walk *w, bool flash)
{
	struct ap_arena *a = w->ctx->arena;
	struct chains c = {.w = w, .types = ap_map_create(a), .masks = ap_map_create(a)};

	ap_onnx_drop_unread(w);
	count_uses(&c);
	for (size_t row = 0; row < AP_COUNT(rows); row++) {
		size_t len = strcspn(rows[row].pattern, "(");

		for (ap_id at = 0; at < w->ops.n; at++)
			if (!w->ops.v[at].gone && strlen(w->ops.v[at].type) == len &&
				!strncmp(w->ops.v[at].type, rows[row].pattern, len))
				join_row(&c, row, at);
	}
	if (flash) {
		const ap_id *reader = readers_of(&c);
		size_t n = w->ops.n;

		for (ap_id at = 0; at < n; at++)
			if (!w->ops.v[at].gone && !strcmp(w->ops.v[at].type, "Softmax"))
				join_attention(&c, reader, at);
	}
	tell(&c);
}
