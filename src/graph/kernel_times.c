/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/kernel_times.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "rule/op.h"

enum { OPERANDS = 8, LISTED = 8 };

static const double most_s = 1e6;

struct shapes { /* of a kernel's operands or results */
	int n; /* those that are looked at */
	struct { int rank; int64_t dim[AP_MAX_RANK]; } v[OPERANDS];
};

struct kernel { /* all that are alike */
	const char *name; /* of the only operator that it is of; NULL: of those with its shapes */
	const char *type; /* without a version */
	const char *scope; /* that its operator lies in; NULL: not known */
	struct shapes in, out;
	double share; /* stated; 0: as the shapes say */
	double forward_s, backward_s; /* sums; of backward 0: not known */
	int64_t runs;
	uint32_t used; /* operators that it is of */
};

enum column { NAME, TYPE, IN, OUT, SHARE, FORWARD, BACKWARD };

static const struct { const char *name; enum column column; double times; } columns[] = {
	{"op name", NAME, 0}, {"name", NAME, 0}, {"op type", TYPE, 0}, {"type", TYPE, 0},
	{"input shapes", IN, 0}, {"input_shapes", IN, 0},
	{"output shapes", OUT, 0}, {"output_shapes", OUT, 0},
	{"share", SHARE, 1}, {"task duration(us)", FORWARD, 1e-6}, {"duration(us)", FORWARD, 1e-6},
	{"forward_us", FORWARD, 1e-6}, {"forward_ms", FORWARD, 1e-3}, {"forward_s", FORWARD, 1},
	{"backward_us", BACKWARD, 1e-6}, {"backward_ms", BACKWARD, 1e-3}, {"backward_s", BACKWARD, 1},
};

struct gradient { /* a kernel of the backward pass */
	const char *scope, *type; /* of its operator */
	double s;
};

struct reading {
	struct ap_ctx *ctx;
	const char *file;
	AP_VEC(struct kernel) kernels;
	struct ap_map *keys; /* of kernels: type and shapes, or a name */
	AP_VEC(struct gradient) gradients;
};

/* "MatMulV2" as "MatMul". */
static const char *without_version(struct ap_arena *arena, const char *type)
{
	size_t len = strlen(type), end = len;

	while (end && isdigit((unsigned char)type[end - 1]))
		end--;
	if (end == len || end < 2 || type[end - 1] != 'V')
		return type;
	return ap_arena_strndup(arena, type, end - 1);
}

/* Numbers between anything else; operands are parted by semicolons. */
static struct shapes read_shapes(const char *text)
{
	struct shapes s = {.n = *text ? 1 : 0};

	while (*text) {
		int64_t v = 0;
		size_t digits = strspn(text, "0123456789");

		if (*text == ';') {
			if (s.n == OPERANDS)
				break;
			s.n++;
		}
		if (!digits) {
			text++;
			continue;
		}
		for (size_t i = 0; i < digits; i++)
			v = v > INT64_MAX / 16 ? v : v * 10 + (text[i] - '0');
		text += digits;
		if (s.v[s.n - 1].rank < AP_MAX_RANK)
			s.v[s.n - 1].dim[s.v[s.n - 1].rank++] = v;
	}
	return s;
}

/* The scope of a gradient's kernel and the type of its operator: "Default/net" and "MatMul" of
 * "Gradients/Default/net/gradMatMul-expand/MatMul-op7". False: it is none. */
static bool read_gradient(struct ap_arena *arena, const char *name, struct gradient *out)
{
	static const char begins[] = "Gradients/", inside[] = "/grad";
	const char *grad = !strncmp(name, begins, strlen(begins)) ? strstr(name, inside) : NULL;
	const char *type = grad ? grad + strlen(inside) : NULL;

	if (!grad)
		return false;
	name += strlen(begins);
	out->scope = ap_arena_strndup(arena, name, (size_t)(grad - name));
	out->type = ap_arena_strndup(arena, type, strcspn(type, "-/"));
	return true;
}

static const char *scope_of(struct ap_arena *arena, const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? ap_arena_strndup(arena, name, (size_t)(slash - name)) : NULL;
}

static enum ap_status fault(struct reading *r, int64_t line, const char *text)
{
	const struct ap_where where = {.file = r->file, .line = line};

	return ap_diag_add(r->ctx->diag, AP_ERROR, AP_MEANING, &where, "kernel-times", "%s", text);
}

static enum ap_status read_row(struct reading *r, const int *of, const struct ap_csv_record *row)
{
	struct ap_arena *arena = r->ctx->arena;
	const char *text[SHARE] = {"", "", "", ""}, *key;
	double v[BACKWARD + 1] = {0};
	struct gradient gradient;
	struct kernel *k;
	bool is_profile = false;
	ap_id at;

	for (size_t i = 0; i < row->n; i++) {
		enum column c = of[i] < 0 ? NAME : columns[of[i]].column;

		if (of[i] >= 0 && c < SHARE) {
			text[c] = row->field[i];
		} else if (of[i] >= 0 && *row->field[i]) {
			if (!ap_parse_double(row->field[i], &v[c]) || v[c] < 0)
				return fault(r, row->line, ap_arena_printf(arena,
					"expected a number, not below 0, under %s", columns[of[i]].name));
			v[c] *= columns[of[i]].times;
			is_profile = is_profile || strstr(columns[of[i]].name, "duration") != NULL;
			if (v[c] > most_s || (c == SHARE && (v[c] > 1 || !(v[c] > 0))))
				return fault(r, row->line, c == SHARE ? "a share is above 0 and at most 1"
					: "no kernel takes so long");
		}
	}
	if (read_gradient(arena, text[NAME], &gradient)) {
		gradient.s = v[FORWARD];
		AP_PUSH(arena, r->gradients, gradient);
		return AP_OK;
	}
	if (!(v[FORWARD] > 0) || !strcmp(text[TYPE], "N/A") || (!*text[TYPE] && !*text[NAME]))
		return AP_OK; /* what takes no time, and communication, which has no type there */
	text[TYPE] = without_version(arena, text[TYPE]);
	key = !is_profile && *text[NAME] ? text[NAME]
		: ap_arena_printf(arena, "%s %s %s", text[TYPE], text[IN], text[OUT]);
	at = ap_map_get_str(r->keys, key);
	if (at == AP_NONE) {
		ap_map_put_str(r->keys, key, NULL);
		at = (ap_id)r->kernels.n;
		AP_PUSH(arena, r->kernels, ((struct kernel){.type = text[TYPE], .share = v[SHARE],
			.name = is_profile || !*text[NAME] ? NULL : text[NAME],
			.scope = scope_of(arena, text[NAME]), .in = read_shapes(text[IN]),
			.out = read_shapes(text[OUT])}));
	}
	k = &r->kernels.v[at];
	k->forward_s += v[FORWARD];
	k->backward_s += v[BACKWARD];
	k->runs++;
	return AP_OK;
}

static enum ap_status read_table(struct reading *r, const char *text, size_t len)
{
	struct ap_csv csv = ap_csv_begin(r->file, text, len);
	bool any, seen[BACKWARD + 1] = {false};
	struct ap_csv_record row;
	size_t n;
	int *of;

	AP_TRY(ap_csv_next(r->ctx, &csv, &row, &any));
	n = any ? row.n : 0;
	of = AP_NEW_N(r->ctx->arena, int, n + 1);
	for (size_t i = 0; i < n; i++) {
		of[i] = -1;
		for (size_t k = 0; k < AP_COUNT(columns); k++)
			if (!strcasecmp(row.field[i], columns[k].name) && !seen[columns[k].column]) {
				of[i] = (int)k;
				seen[columns[k].column] = true;
			}
	}
	if (!seen[FORWARD] || (!seen[TYPE] && !seen[NAME]))
		return fault(r, 1, "is no table of kernels; expected columns Op Name, OP Type and Task "
			"Duration(us), or type, input_shapes and forward_us");
	for (;;) {
		AP_TRY(ap_csv_next(r->ctx, &csv, &row, &any));
		if (!any)
			return AP_OK;
		if (row.n == n) /* the last record may be cut */
			AP_TRY(read_row(r, of, &row));
		else if (csv.at < csv.end)
			return fault(r, row.line, "has not as many fields as the first line");
	}
}

/* Adds what gradients took to the kernels of the same scope and type, if there is one such. */
static void add_gradients(struct reading *r)
{
	struct ap_map *scopes = ap_map_create(r->ctx->arena);
	AP_VEC(ap_id) of = {0};

	for (size_t i = 0; i < r->kernels.n; i++) {
		const struct kernel *k = &r->kernels.v[i];
		const char *key = k->scope ? ap_arena_printf(r->ctx->arena, "%s %s", k->scope, k->type)
			: NULL;
		ap_id at = key ? ap_map_get_str(scopes, key) : AP_NONE;

		if (key && at == AP_NONE) {
			ap_map_put_str(scopes, key, NULL);
			AP_PUSH(r->ctx->arena, of, (ap_id)i);
		} else if (key) {
			of.v[at] = AP_NONE; /* several */
		}
	}
	for (size_t i = 0; i < r->gradients.n; i++) {
		const struct gradient *g = &r->gradients.v[i];
		ap_id at = ap_map_get_str(scopes, ap_arena_printf(r->ctx->arena, "%s %s", g->scope,
			without_version(r->ctx->arena, g->type)));

		if (at != AP_NONE && of.v[at] != AP_NONE)
			r->kernels.v[of.v[at]].backward_s += g->s;
	}
}

/* Do a tensor's extents divide into those of an operand? Their ratio is multiplied to *part. */
static bool is_part(const struct ap_shape *whole, int rank, const int64_t *dim, double *part)
{
	if (rank != whole->rank)
		return false;
	for (int d = 0; d < rank; d++) {
		if (dim[d] <= 0 || whole->dim[d] % dim[d])
			return false;
		*part *= (double)dim[d] / (double)whole->dim[d];
	}
	return true;
}

/* The part of an operator's work that a kernel did; 0: it is none of this operator. */
static double share_of(const struct ap_graph *g, const struct ap_node *n, const struct kernel *k)
{
	int nin = n->bound.nin < k->in.n ? n->bound.nin : k->in.n;
	int nout = n->bound.nout < k->out.n ? n->bound.nout : k->out.n;
	bool is_product = n->bound.row && ap_op_is_product(n->bound.row);
	double in = 1, first = 1, out = 1;

	if (strcasecmp(k->type, n->type) != 0 || !nin || (is_product && nin < 2))
		return 0;
	for (int i = 0; i < nin; i++) {
		if (!is_part(&g->tensor[n->in[i]].shape, k->in.v[i].rank, k->in.v[i].dim, &in))
			return 0;
		first = i ? first : in;
	}
	if (nout && !is_part(&g->tensor[n->out[0]].shape, k->out.v[0].rank, k->out.v[0].dim, &out))
		return 0;
	if (k->share > 0)
		return k->share;
	/* Extents m, k and n of a product are each in two of its three tensors. */
	if (is_product)
		return nout ? sqrt(in * out) : in;
	return nout ? out : first;
}

static void measure(const struct ap_node *of, struct kernel *k, double share, struct ap_node *node)
{
	bool is_product = of->bound.row && ap_op_is_product(of->bound.row);
	double runs = (double)k->runs;

	node->measured = true;
	node->measured_share = share;
	node->measured_forward_s = k->forward_s / runs;
	node->measured_backward_s = !of->backward ? 0 : k->backward_s > 0 ? k->backward_s / runs
		: node->measured_forward_s * (is_product ? 2 : 1);
	k->used++;
}

struct listing { /* names with counts, the first few of which are told */
	struct ap_str text;
	size_t n;
	struct ap_map *seen;
};

static void list(struct ap_arena *arena, struct listing *l, const char *name)
{
	if (!l->seen) {
		l->seen = ap_map_create(arena);
		ap_str_init(&l->text, arena);
	}
	if (ap_map_get_str(l->seen, name) != AP_NONE)
		return;
	ap_map_put_str(l->seen, name, NULL);
	if (l->n++ < LISTED)
		ap_str_addf(&l->text, "%s%s", l->n > 1 ? ", " : "", name);
	else if (l->n == LISTED + 1)
		ap_str_add(&l->text, ", ...");
}

enum ap_status ap_kernel_times_apply(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_graph **out)
{
	struct reading r = {.ctx = ctx, .file = file, .keys = ap_map_create(ctx->arena)};
	struct listing unknown = {.n = 0}, without = {.n = 0};
	const struct ap_where where = {.file = file};
	struct ap_node *node;
	uint32_t known = 0;

	AP_TRY(read_table(&r, text, len));
	if (!r.kernels.n)
		return fault(&r, 0, "holds no kernel with a time");
	add_gradients(&r);
	*out = ap_graph_with_nodes(ctx, g, &node);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct kernel *best = NULL;
		double share = 0;

		for (size_t k = 0; k < r.kernels.n && !n->measured; k++) {
			struct kernel *kernel = &r.kernels.v[k];
			bool is_named = kernel->name && !strcmp(kernel->name, n->name);
			double s = is_named && !kernel->in.n ? kernel->share > 0 ? kernel->share : 1
				: kernel->name && !is_named ? 0 : share_of(g, n, kernel);

			if (s > share) {
				share = s;
				best = kernel;
			}
		}
		if (best)
			measure(n, best, fmax(share, 1e-9), &node[i]);
		known += node[i].measured;
		if (!node[i].measured)
			list(ctx->arena, &without, n->type);
	}
	for (size_t k = 0; k < r.kernels.n; k++)
		if (!r.kernels.v[k].used)
			list(ctx->arena, &unknown, ap_diag_name(ctx->diag,
				r.kernels.v[k].name ? r.kernels.v[k].name : r.kernels.v[k].type));
	AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "kernel-times", "%" PRIu32 " of %" PRIu32
		" operators have measured times, from %zu kernels%s%s", known, g->nnode, r.kernels.n,
		without.n ? "; none is known of " : "", without.n ? without.text.s : ""));
	if (!unknown.n)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "kernel-times",
		"kernels that are of no operator of %s: %s", g->file, unknown.text.s);
}
