/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_walk.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "graph/load.h"
#include "import/onnx_fold.h"
#include "import/onnx_ops.h"
#include "import/onnx_read.h"
#include "rule/binding.h"

enum { MOST_CALLS = 16, MOST_MADE = 1 << 19 }; /* nodes that calls and branches make */

/* ---- inputs and weights ---- */

/* Does a name say that the file keeps it beside the weights, and nothing trains it? */
static bool is_buffer(const char *name)
{
	static const char *const ends[] = {"running_mean", "running_var", "inv_freq", "cos_cached",
		"sin_cached", "masked_bias", "relative_position_index", "attn_mask", "num_batches_tracked"};
	size_t len = strlen(name);

	for (size_t i = 0; i < AP_COUNT(ends); i++) {
		size_t n = strlen(ends[i]);

		if (len >= n && !strcmp(name + len - n, ends[i]))
			return true;
	}
	return false;
}

/* Names that exporters give to constants that they made. */
static bool is_made_name(const char *name)
{
	return strstr(name, "::") || !strncmp(name, "val_", 4) || *name == '/';
}

/* Names of exporters that number all tensors. */
static bool is_number(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

static bool dims_fit(struct ap_onnx_walk *w, const char *name, uint32_t rank, const int64_t *dim,
	struct ap_shape *out)
{
	int64_t count;

	if (rank > AP_MAX_RANK) {
		(void)ap_onnx_say(w, "onnx-shape",
			"tensor \"%s\" has %" PRIu32 " dimensions; at most %d are supported",
			ap_diag_name(w->ctx->diag, name), rank, AP_MAX_RANK);
		return false;
	}
	out->rank = (uint8_t)rank;
	for (uint32_t i = 0; i < rank; i++) {
		if (dim[i] < 0 || dim[i] > INT32_MAX) {
			(void)ap_onnx_say(w, "onnx-shape",
				"dimension %" PRIu32 " of tensor \"%s\" is %" PRId64
				"; 0 to 2147483647 is expected",
				i, ap_diag_name(w->ctx->diag, name), dim[i]);
			return false;
		}
		out->dim[i] = dim[i];
	}
	if (ap_product(out->dim, rank, &count) && count <= AP_MAX_ELEMENTS)
		return true;
	(void)ap_onnx_say(w, "onnx-shape", "tensor \"%s\" has more than 2^53 elements",
		ap_diag_name(w->ctx->diag, name));
	return false;
}

static void add_initializer(struct ap_onnx_walk *w, const struct ap_onnx_tensor *t, bool node)
{
	struct ap_onnx_val v = {.kind = AP_ONNX_CONST, .base = AP_NONE, .op = AP_NONE, .values = t->values};
	int64_t count = 0;
	bool fits;

	v.shape.dtype = ap_onnx_dtype(w, t->type);
	fits = dims_fit(w, t->name, t->rank, t->dim, &v.shape);
	if (fits && v.shape.dtype == AP_DTYPE_COUNT) {
		(void)ap_onnx_say(w, "onnx-dtype", "tensor \"%s\" has the element type %" PRId64
			", which no graph knows", ap_diag_name(w->ctx->diag, t->name), t->type);
		fits = false;
	}
	if (!fits) {
		ap_onnx_put(w, t->name, ap_onnx_broken(w));
		return;
	}
	(void)ap_product(v.shape.dim, v.shape.rank, &count);
	v.initial = !node && !is_buffer(t->name);
	if (!node && ap_dtype_is_float(v.shape.dtype) && v.shape.rank > 0 &&
		(count > 1 || !is_number(t->name)) && !is_made_name(t->name) && !is_buffer(t->name))
		v.kind = AP_ONNX_WEIGHT;
	if (is_buffer(t->name) || v.kind == AP_ONNX_WEIGHT)
		v.values = NULL; /* what training changes is no constant */
	ap_onnx_put(w, t->name, ap_onnx_add(w, v));
}

/* Exporters turn the matrix of a product when they fold constants, so that one that an embedding shares is
 * there twice: it is the other one, turned. */
static void share_turned(struct ap_onnx_walk *w)
{
	const struct ap_onnx_graph *g = &w->model->graph;
	struct ap_map *lengths = ap_map_create(w->ctx->arena);
	AP_VEC(const struct ap_onnx_tensor *) named = {0};
	bool fresh;

	for (size_t i = 0; i < g->initializers.n; i++) {
		const struct ap_onnx_tensor *t = &g->initializers.v[i];

		if (t->rank != 2 || is_made_name(t->name))
			continue;
		(void)ap_map_put(lengths, t->dim, 2 * sizeof *t->dim, &fresh);
		if (fresh)
			AP_PUSH(w->ctx->arena, named, t);
	}
	for (size_t i = 0; i < g->initializers.n; i++) {
		const struct ap_onnx_tensor *t = &g->initializers.v[i];
		int64_t turned[2];
		ap_id key, id;

		if (t->rank != 2 || !is_made_name(t->name))
			continue;
		turned[0] = t->dim[1];
		turned[1] = t->dim[0];
		key = ap_map_get(lengths, turned, sizeof turned);
		if (key == AP_NONE || !ap_onnx_is_turned(w->ctx, w->from, t, named.v[key]))
			continue;
		id = ap_onnx_emit(w, "Transpose", AP_IN(ap_onnx_find(w, named.v[key]->name)),
			AP_ATTRS(AP_INTS_ATTR("perm", ((int64_t[]){1, 0}), 2)), 1);
		if (id == AP_NONE)
			continue;
		w->named.v[ap_map_get_str(w->names, t->name)] = id;
		w->turned++;
	}
}

/* Is an input of the graph a weight that was exported without its values? torch names these as modules do,
 * data as arguments. */
static bool is_weight_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && strspn(dot + 1, "0123456789") < strlen(dot + 1);
}

static const struct ap_onnx_length *length_of(const struct ap_onnx_walk *w, const char *symbol)
{
	for (size_t i = 0; i < w->params->ndim; i++)
		if (!strcmp(w->params->dim[i].name, symbol))
			return &w->params->dim[i];
	return NULL;
}

/* Takes the shape of an input; symbols get lengths of the user. Missing ones go into `missing`. */
static bool input_shape(struct ap_onnx_walk *w, const struct ap_onnx_value *in, bool first,
	struct ap_str *missing, int64_t *dim)
{
	bool known = true;

	for (uint32_t i = 0; i < in->rank && i < AP_MAX_RANK; i++) {
		const char *symbol = in->dim[i].symbol;
		const struct ap_onnx_length *said = symbol ? length_of(w, symbol) : NULL;

		dim[i] = in->dim[i].length;
		if (said)
			dim[i] = said->length;
		else if (dim[i] < 1 && i == 0 && w->params->batch &&
			(first || (symbol && w->batch_symbol && !strcmp(symbol, w->batch_symbol))))
			dim[i] = w->params->batch;
		if (dim[i] >= 1)
			continue;
		known = false;
		ap_str_addf(missing, "%s%s of \"%s\" (dimension %" PRIu32 ")", missing->len ? ", " : "",
			symbol ? ap_diag_name(w->ctx->diag, symbol) : "a length",
			ap_diag_name(w->ctx->diag, in->name), i);
	}
	return known;
}

static void add_inputs(struct ap_onnx_walk *w)
{
	const struct ap_onnx_graph *g = &w->model->graph;
	struct ap_str missing;
	bool first = true;

	ap_str_init(&missing, w->ctx->arena);
	for (size_t i = 0; i < g->inputs.n; i++) {
		const struct ap_onnx_value *in = &g->inputs.v[i];
		struct ap_onnx_val v = {.kind = AP_ONNX_INPUT, .base = AP_NONE, .op = AP_NONE};
		int64_t dim[AP_MAX_RANK] = {0};

		if (ap_onnx_find(w, in->name) != AP_NONE)
			continue; /* an initializer, which old versions list here, too */
		v.shape.dtype = ap_onnx_dtype(w, in->type);
		if (!in->shaped || v.shape.dtype == AP_DTYPE_COUNT) {
			(void)ap_onnx_say(w, "onnx-input",
				"input \"%s\" is no tensor of a known type and rank",
				ap_diag_name(w->ctx->diag, in->name));
			ap_onnx_put(w, in->name, ap_onnx_broken(w));
			continue;
		}
		if (is_weight_name(in->name))
			v.kind = ap_dtype_is_float(v.shape.dtype) && !is_buffer(in->name) ? AP_ONNX_WEIGHT
				: AP_ONNX_CONST;
		if (!input_shape(w, in, first && v.kind == AP_ONNX_INPUT, &missing, dim) ||
			!dims_fit(w, in->name, in->rank, dim, &v.shape)) {
			ap_onnx_put(w, in->name, ap_onnx_broken(w));
			continue;
		}
		if (v.kind == AP_ONNX_INPUT && v.shape.rank) {
			if (first) {
				w->batch_from = in->dim[0].length > 0 ? in->dim[0].length : -1;
				w->batch_symbol = in->dim[0].symbol;
				w->batch_to = w->params->batch ? w->params->batch : v.shape.dim[0];
				first = false;
			}
			if (w->params->batch && in->dim[0].length > 0 && in->dim[0].length == w->batch_from)
				v.shape.dim[0] = w->params->batch;
		}
		ap_onnx_put(w, in->name, ap_onnx_add(w, v));
	}
	if (missing.len)
		(void)ap_onnx_say(w, "onnx-dim",
			"the file leaves lengths open: %s; expected --dim NAME=N for each name, or "
			"--batch N for the first",
			missing.s);
}

/* ---- nodes ---- */

/* Holds a result's shape against what the file says of it. */
static void check_said(struct ap_onnx_walk *w, const char *name)
{
	ap_id key = *w->prefix ? AP_NONE : ap_map_get_str(w->said, name), id = ap_onnx_find(w, name);
	const struct ap_onnx_value *said;
	const struct ap_shape *s;
	bool same;

	if (key == AP_NONE || id == AP_NONE || ap_onnx_val(w, id)->kind == AP_ONNX_BROKEN)
		return;
	said = w->said_values.v[key];
	s = &ap_onnx_val(w, id)->shape;
	if (!said->shaped)
		return;
	same = said->rank == s->rank;
	for (uint32_t i = 0; same && i < s->rank; i++) {
		const struct ap_onnx_dim *d = &said->dim[i];

		/* A changed batch changes lengths that the file says. */
		same = d->length < 0 || d->length == s->dim[i] ||
			(w->batch_from != w->batch_to && w->batch_from > 0 && s->dim[i] % w->batch_to == 0) ||
			(d->symbol && *d->symbol);
	}
	if (!same) {
		struct ap_str text;

		ap_str_init(&text, w->ctx->arena);
		for (uint32_t i = 0; i < said->rank; i++)
			if (said->dim[i].length >= 0)
				ap_str_addf(&text, "%s%" PRId64, i ? ", " : "", said->dim[i].length);
			else
				ap_str_addf(&text, "%s?", i ? ", " : "");
		(void)ap_onnx_say(w, "onnx-shape",
			"the file says that \"%s\" has the shape [%s]; %s is inferred",
			ap_diag_name(w->ctx->diag, name), text.s,
			ap_shape_text(w->ctx->arena, s->dim, s->rank));
	}
}

static void walk_nodes(struct ap_onnx_walk *w, const struct ap_onnx_nodes *nodes);

static const struct ap_onnx_function *function_of(const struct ap_onnx_walk *w)
{
	for (size_t i = 0; i < w->model->functions.n; i++) {
		const struct ap_onnx_function *f = &w->model->functions.v[i];

		if (!strcmp(f->name, w->node->type) && !strcmp(f->domain, w->node->domain))
			return f;
	}
	return NULL;
}

/* Puts the nodes of a function in the place of a call. */
static void call(struct ap_onnx_walk *w, const struct ap_onnx_function *f)
{
	struct ap_onnx_walk outer = *w;
	const struct ap_onnx_node *node = w->node;
	const char *prefix = ap_arena_printf(w->ctx->arena, "call.%" PRIu32 "/", ++w->calls);
	struct ap_onnx_attr *args = AP_NEW_N(w->ctx->arena, struct ap_onnx_attr, node->nattr + f->nattr + 1);
	uint32_t nargs = 0;
	ap_id *in = AP_NEW_N(w->ctx->arena, ap_id, f->nin + 1),
	      *out = AP_NEW_N(w->ctx->arena, ap_id, f->nout + 1);

	if (w->depth >= MOST_CALLS) {
		(void)ap_onnx_fail(w, "functions call each other more than %d deep", MOST_CALLS);
		return;
	}
	for (uint32_t i = 0; i < node->nattr; i++) {
		const struct ap_onnx_attr *a = ap_onnx_attr(w, node->attr[i].name);

		if (a) {
			args[nargs] = *a;
			args[nargs++].name = node->attr[i].name;
		}
	}
	for (uint32_t i = 0; i < f->nattr; i++)
		args[nargs++] = f->attr[i];
	for (uint32_t i = 0; i < f->nin; i++)
		in[i] = ap_onnx_in(w, i);
	w->prefix = prefix;
	w->scope = node->cell ? node->cell : w->scope;
	w->args = args;
	w->nargs = nargs;
	w->depth++;
	for (uint32_t i = 0; i < f->nin; i++)
		ap_onnx_put(w, f->in[i], in[i]);
	walk_nodes(w, &f->nodes);
	for (uint32_t i = 0; i < f->nout; i++)
		out[i] = ap_onnx_find(w, f->out[i]);
	w->depth--;
	w->prefix = outer.prefix;
	w->scope = outer.scope;
	w->args = outer.args;
	w->nargs = outer.nargs;
	w->node = node;
	w->failed = false;
	for (uint32_t i = 0; i < node->nout; i++)
		ap_onnx_out(w, i, i < f->nout ? out[i] : AP_NONE);
}

/* A branch whose condition is known takes the place of its If. */
static bool branch(struct ap_onnx_walk *w)
{
	const struct ap_onnx_node *node = w->node;
	const struct ap_onnx_attr *a;
	double chosen;

	if (strcmp(node->type, "If") || *node->domain || !ap_onnx_number(w, ap_onnx_in(w, 0), &chosen))
		return false;
	a = ap_onnx_attr(w, chosen != 0 ? "then_branch" : "else_branch");
	if (!a || !a->graph || w->depth >= MOST_CALLS)
		return false;
	w->depth++;
	for (size_t i = 0; i < a->graph->initializers.n; i++)
		add_initializer(w, &a->graph->initializers.v[i], true);
	walk_nodes(w, &a->graph->nodes);
	w->depth--;
	w->node = node;
	w->failed = false;
	for (uint32_t i = 0; i < node->nout; i++)
		if (i < a->graph->outputs.n) {
			ap_id id = ap_onnx_find(w, a->graph->outputs.v[i].name);

			ap_onnx_out(w, i, id);
		} else {
			ap_onnx_out(w, i, AP_NONE);
		}
	return true;
}

static void count_unknown(struct ap_onnx_walk *w)
{
	const char *full = *w->node->domain ? ap_arena_printf(w->ctx->arena, "%s.%s", w->node->domain,
		w->node->type) : w->node->type;
	bool fresh;
	ap_id id = ap_map_put_str(w->unknown, full, &fresh);

	if (fresh)
		AP_PUSH(w->ctx->arena, w->counts, 0);
	w->counts.v[id]++;
}

/* An operator of an unknown type, as its user has it: its results are what the file says. */
static bool take_unknown(struct ap_onnx_walk *w)
{
	struct ap_onnx_made op = {.node = w->node, .type = w->node->type, .nout = 0, .cell = w->node->cell};
	struct ap_arena *a = w->ctx->arena;

	if (!w->params->unknown_batch_parallel || !w->node->nin || !w->node->nout)
		return false;
	op.in = AP_NEW_N(a, ap_id, w->node->nin);
	for (uint32_t i = 0; i < w->node->nin; i++) {
		ap_id id = ap_onnx_in(w, i);

		if (id != AP_ONNX_LEFT_OUT)
			op.in[op.nin++] = id;
	}
	op.out = (ap_id)w->vals.n;
	for (uint32_t i = 0; i < w->node->nout; i++) {
		ap_id key = ap_map_get_str(w->said, w->node->out[i]);
		const struct ap_onnx_value *said = key == AP_NONE ? NULL : w->said_values.v[key];
		struct ap_onnx_val v = {.kind = AP_ONNX_RESULT, .base = AP_NONE, .op = (ap_id)w->ops.n};
		int64_t dim[AP_MAX_RANK];

		if (!said || !said->shaped || said->rank > AP_MAX_RANK)
			return false;
		for (uint32_t k = 0; k < said->rank; k++) {
			const struct ap_onnx_length *l =
				said->dim[k].symbol ? length_of(w, said->dim[k].symbol) : NULL;

			dim[k] = l ? l->length : said->dim[k].length;
			if (dim[k] < 1)
				return false;
		}
		v.shape.dtype = ap_onnx_dtype(w, said->type);
		if (v.shape.dtype == AP_DTYPE_COUNT || !dims_fit(w, said->name, said->rank, dim, &v.shape))
			return false;
		(void)ap_onnx_add(w, v);
		op.nout++;
	}
	AP_PUSH(a, w->ops, op);
	for (uint32_t i = 0; i < op.nout; i++)
		ap_onnx_out(w, i, op.out + i);
	return true;
}

static void take_constant(struct ap_onnx_walk *w)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, "value");
	struct ap_onnx_numbers *n = AP_NEW(w->ctx->arena, struct ap_onnx_numbers);
	struct ap_shape s = {.dtype = AP_INT64};

	if (a && a->tensor) {
		struct ap_onnx_tensor t = *a->tensor;

		t.name = w->node->nout ? w->node->out[0] : "";
		if (*t.name)
			add_initializer(w, &t, true);
		return;
	}
	if ((a = ap_onnx_attr(w, "value_int")) || (a = ap_onnx_attr(w, "value_float"))) {
		bool real = !strcmp(a->name, "value_float");

		s.dtype = real ? ap_onnx_dtype(w, 1) : AP_INT64;
		n->n = 1;
		n->i = real ? NULL : &a->i;
		n->f = real ? &a->f : NULL;
	} else if ((a = ap_onnx_attr(w, "value_ints")) || (a = ap_onnx_attr(w, "value_floats"))) {
		bool real = !strcmp(a->name, "value_floats");
		static const int64_t none;
		static const double no_real;

		s.dtype = real ? ap_onnx_dtype(w, 1) : AP_INT64;
		s.rank = 1;
		s.dim[0] = n->n = real ? a->nfloats : a->nints;
		n->i = real ? NULL : a->nints ? a->ints : &none;
		n->f = !real ? NULL : a->nfloats ? a->floats : &no_real;
	} else {
		(void)ap_onnx_fail(w, "has no value that a graph can hold");
		ap_onnx_out(w, 0, AP_NONE);
		return;
	}
	ap_onnx_out(w, 0, ap_onnx_constant(w, s, n));
}

/* Are two names the same but for numbers, as those of layers are? */
static bool differ_by_numbers(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	while (*a && *b) {
		size_t na = strspn(a, digits), nb = strspn(b, digits);

		if (!na != !nb || (!na && *a != *b))
			return false;
		a += na ? na : 1;
		b += nb ? nb : 1;
	}
	return *a == *b;
}

/* Equal weights are stated once, and Identity gives the others their names. Vectors are equal because they
 * have just been initialised, and matrices of layers because a layer was copied; a matrix with another name
 * is one that two modules share. */
static bool take_identity(struct ap_onnx_walk *w)
{
	ap_id id = ap_onnx_in(w, 0);
	struct ap_onnx_val v;

	if (strcmp(w->node->type, "Identity") || id >= w->vals.n || !w->node->nout)
		return false;
	v = *ap_onnx_val(w, id);
	if (v.kind != AP_ONNX_WEIGHT || is_made_name(w->node->out[0]) ||
		(v.shape.rank > 1 && !(v.name && differ_by_numbers(v.name, w->node->out[0])))) {
		w->joined += v.initial && v.shape.rank > 1 && ap_dtype_is_float(v.shape.dtype);
		ap_onnx_out(w, 0, id);
		return true;
	}
	v.name = NULL;
	v.shared = true;
	v.state = is_buffer(w->node->out[0]);
	ap_onnx_out(w, 0, ap_onnx_add(w, v));
	return true;
}

static void walk_node(struct ap_onnx_walk *w)
{
	const struct ap_onnx_op *row;
	bool whole = true;

	w->failed = false;
	w->nodes++;
	for (uint32_t i = 0; i < w->node->nin; i++) {
		ap_id id = ap_onnx_in(w, i);

		if (id == AP_NONE)
			(void)ap_onnx_fail(w, "reads \"%s\", which nothing makes%s",
				ap_diag_name(w->ctx->diag, w->node->in[i]),
				is_weight_name(w->node->in[i]) ? "; weights were left out of the file with "
								 "their shapes: see docs/onnx.md"
								: "");
		else if (id != AP_ONNX_LEFT_OUT && ap_onnx_val(w, id)->kind == AP_ONNX_BROKEN)
			whole = false;
	}
	row = ap_onnx_op_find(w->node->domain, w->node->type);
	if (w->failed) {
		whole = false;
	} else if (function_of(w)) {
		if (whole) {
			call(w, function_of(w));
			return;
		}
	} else if (!strcmp(w->node->type, "Constant") && !*w->node->domain) {
		take_constant(w);
		w->folded++;
		return;
	}
	if (whole && (take_identity(w) || ap_onnx_fold(w))) {
		w->folded++;
		return;
	}
	if (whole && branch(w))
		return;
	if (!row && !w->failed) {
		if (whole && take_unknown(w))
			return;
		count_unknown(w);
		whole = false;
	}
	if (whole) {
		size_t before = w->ops.n;

		if (w->node->nin < row->least)
			(void)ap_onnx_fail(w, "has %" PRIu32 " operands; at least %" PRIu32 " are expected",
				w->node->nin, row->least);
		else
			row->make(w, row);
		w->folded += !w->failed && w->ops.n == before;
	}
	for (uint32_t i = 0; (!whole || w->failed) && i < w->node->nout; i++)
		if (*w->node->out[i] && ap_onnx_find(w, w->node->out[i]) == AP_NONE)
			ap_onnx_out(w, i, AP_NONE);
	for (uint32_t i = 0; i < w->node->nout; i++)
		if (*w->node->out[i])
			check_said(w, w->node->out[i]);
}

/* In scratch: order of nodes in which each comes behind those whose results it reads, else as in the file;
 * NULL after a message if they go round in a circle. O(nodes + operands). */
static const uint32_t *order_of(struct ap_onnx_walk *w, const struct ap_onnx_nodes *nodes)
{
	struct ap_arena *a = w->ctx->scratch;
	struct ap_map *makers = ap_map_create(a);
	AP_VEC(uint32_t) maker = {0};
	uint32_t *order = AP_NEW_N(a, uint32_t, nodes->n + 1), *waits = AP_NEW_N(a, uint32_t, nodes->n + 1);
	uint32_t *first = AP_NEW_N(a, uint32_t, nodes->n + 2), *reader, n = 0;
	bool sorted = true, fresh;
	ap_id key;

	for (uint32_t i = 0; i < nodes->n; i++)
		for (uint32_t k = 0; k < nodes->v[i].nout; k++) {
			key = ap_map_put_str(makers, nodes->v[i].out[k], &fresh);
			if (fresh)
				AP_PUSH(a, maker, i);
		}
	for (uint32_t i = 0; i < nodes->n; i++)
		for (uint32_t k = 0; k < nodes->v[i].nin; k++) {
			key = *nodes->v[i].in[k] ? ap_map_get_str(makers, nodes->v[i].in[k]) : AP_NONE;
			if (key == AP_NONE)
				continue;
			waits[i]++;
			first[maker.v[key] + 2]++;
			sorted &= maker.v[key] < i;
		}
	for (uint32_t i = 0; i < nodes->n; i++)
		order[i] = i;
	if (sorted)
		return order;
	/* readers of each node, in the order of the file */
	for (uint32_t i = 1; i <= nodes->n + 1; i++)
		first[i] += first[i - 1];
	reader = AP_NEW_N(a, uint32_t, first[nodes->n + 1] + 1);
	for (uint32_t i = 0; i < nodes->n; i++)
		for (uint32_t k = 0; k < nodes->v[i].nin; k++) {
			key = *nodes->v[i].in[k] ? ap_map_get_str(makers, nodes->v[i].in[k]) : AP_NONE;
			if (key != AP_NONE)
				reader[first[maker.v[key] + 1]++] = i;
		}
	for (uint32_t i = 0; i < nodes->n; i++)
		if (!waits[i])
			order[n++] = i;
	for (uint32_t at = 0; at < n; at++)
		for (uint32_t k = first[order[at]]; k < first[order[at] + 1]; k++)
			if (!--waits[reader[k]])
				order[n++] = reader[k];
	if (n == nodes->n)
		return order;
	for (uint32_t i = 0; i < nodes->n; i++)
		if (waits[i]) {
			w->node = &nodes->v[i];
			(void)ap_onnx_say(w, "onnx-cycle",
				"the nodes go round in a circle; this one needs its own results");
			break;
		}
	return NULL;
}

static void walk_nodes(struct ap_onnx_walk *w, const struct ap_onnx_nodes *nodes)
{
	struct ap_mark mark = ap_arena_mark(w->ctx->scratch);
	const uint32_t *order = order_of(w, nodes);

	for (size_t i = 0; order && i < nodes->n && !w->stopped; i++) {
		w->node = &nodes->v[order[i]];
		if (w->nodes > w->model->graph.nodes.n + MOST_MADE) {
			w->stopped = true;
			(void)ap_diag_add(w->ctx->diag, AP_ERROR, AP_LIMIT,
				&(struct ap_where){.file = w->model->file}, NULL,
				"calls of its functions make more than %d nodes of it", MOST_MADE);
			w->status = w->status == AP_OK ? AP_LIMIT : w->status;
		} else {
			walk_node(w);
		}
	}
	ap_arena_release(w->ctx->scratch, mark);
}

/* Lists the types that have no row, each with how often it occurs and rows that are near. */
static void tell_unknown(struct ap_onnx_walk *w)
{
	struct ap_str text;

	if (!ap_map_size(w->unknown))
		return;
	w->node = NULL;
	ap_str_init(&text, w->ctx->arena);
	for (ap_id id = 0; id < ap_map_size(w->unknown); id++) {
		const char *name = ap_map_key(w->unknown, id, NULL), *near = ap_onnx_ops_near(w->ctx, name);

		ap_str_addf(&text, "%s%s (%" PRIu32 "%s%s)", id ? ", " : "", ap_diag_name(w->ctx->diag, name),
			w->counts.v[id], *near ? "; near: " : "", near);
	}
	(void)ap_onnx_say(w, "onnx-operator",
		"holds operators without a row: %s; --unknown-operators batch-parallel takes "
		"those whose results' shapes the file states, as operators on samples",
		text.s);
}

enum ap_status ap_onnx_walk(struct ap_onnx_walk *w)
{
	const struct ap_onnx_graph *g = &w->model->graph;
	struct ap_arena *a = w->ctx->arena;
	const struct ap_onnx_values *said[] = {&g->values, &g->outputs};
	bool fresh;

	w->prefix = "";
	AP_RESERVE(a, w->vals, g->initializers.n + g->nodes.n + g->nodes.n / 2);
	AP_RESERVE(a, w->ops, g->nodes.n + g->nodes.n / 8);
	w->names = ap_map_create(a);
	w->said = ap_map_create(a);
	w->bound = ap_map_create(a);
	w->scalars = ap_map_create(a);
	w->unknown = ap_map_create(a);
	for (size_t i = 0; i < AP_COUNT(said); i++)
		for (size_t k = 0; k < said[i]->n; k++) {
			(void)ap_map_put_str(w->said, said[i]->v[k].name, &fresh);
			if (fresh)
				AP_PUSH(a, w->said_values, &said[i]->v[k]);
		}
	for (size_t i = 0; i < g->initializers.n; i++)
		add_initializer(w, &g->initializers.v[i], false);
	add_inputs(w);
	AP_TRY(w->status);
	share_turned(w);
	walk_nodes(w, &g->nodes);
	w->node = NULL;
	for (size_t i = 0; i < g->outputs.n; i++) {
		ap_id id = ap_onnx_find(w, g->outputs.v[i].name);

		if (id == AP_NONE)
			(void)ap_onnx_say(w, "onnx-output", "output \"%s\" is made by nothing",
				ap_diag_name(w->ctx->diag, g->outputs.v[i].name));
		else if (ap_onnx_val(w, id)->kind == AP_ONNX_RESULT)
			AP_PUSH(a, w->outputs, id);
	}
	tell_unknown(w);
	if (w->status != AP_OK && w->batch_from > 0 && w->batch_from != w->batch_to)
		(void)ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = w->model->file},
			"onnx-batch",
			"the file was exported with a fixed batch of %" PRId64 ", of which more than its "
			"inputs may know; export it with a dynamic one, as docs/onnx.md shows, or leave "
			"out --batch",
			w->batch_from);
	return w->status;
}
