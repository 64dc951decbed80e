/* SPDX-License-Identifier: Apache-2.0 */
/* A random operator as the only one of a graph file: the loader must bind it alike. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "graph/graph.h"
#include "oper.h"

static const char *name_of(struct ap_ctx *ctx, char kind, int i)
{
	return ap_arena_printf(ctx->arena, "%c%d", kind, i);
}

static void write_shape(struct ap_jw *w, const struct ap_shape *s)
{
	ap_jw_kints(w, "shape", s->dim, s->rank);
	ap_jw_kstr(w, "dtype", ap_dtype_name(s->dtype));
}

static void write_attr(struct ap_jw *w, const struct ap_attr *a)
{
	switch (a->type) {
	case AP_ATTR_INT:
		ap_jw_kint(w, a->name, a->i);
		break;
	case AP_ATTR_BOOL:
		ap_jw_kbool(w, a->name, a->i);
		break;
	case AP_ATTR_FLOAT:
		ap_jw_knum(w, a->name, a->f);
		break;
	case AP_ATTR_STRING:
		ap_jw_kstr(w, a->name, a->s);
		break;
	case AP_ATTR_INTS:
	case AP_ATTR_PAIR:
		ap_jw_kints(w, a->name, a->list, a->n);
		break;
	case AP_ATTR_ANY:
		break;
	}
}

/* The file's list of operands, null where an optional one is left out. */
static void write_operands(struct ap_ctx *ctx, struct ap_jw *w, const struct ex_sample *s)
{
	ap_jw_key(w, "inputs");
	ap_jw_arr(w);
	for (int i = 0, slot = 0; i < s->nin; slot++)
		if (s->slot[i] == slot)
			ap_jw_str(w, name_of(ctx, 'x', i++));
		else
			ap_jw_null(w);
	ap_jw_end(w);
}

static void write_strategy(struct ap_jw *w, const struct ap_pin *pin)
{
	ap_jw_key(w, "in_strategy");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < pin->n; i++) {
		ap_jw_arr(w);
		for (int d = 0; d < pin->v[i].rank; d++)
			ap_jw_int(w, pin->v[i].cut[d]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_operator(struct ap_ctx *ctx, struct ap_jw *w, const struct ex_sample *s,
	const struct ap_pin *pin)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", "op");
	ap_jw_kstr(w, "type", s->type);
	write_operands(ctx, w, s);
	ap_jw_key(w, "attrs");
	ap_jw_obj(w);
	for (uint32_t i = 0; i < s->attrs.n; i++)
		write_attr(w, &s->attrs.v[i]);
	ap_jw_end(w);
	if (pin)
		write_strategy(w, pin);
	ap_jw_key(w, "outputs");
	ap_jw_arr(w);
	for (int i = 0; i < (s->nout ? s->nout : 1); i++) {
		ap_jw_obj(w);
		ap_jw_kstr(w, "name", name_of(ctx, 'y', i));
		if (s->nout && s->declared[i].rank != AP_RANK_UNKNOWN)
			ap_jw_kints(w, "shape", s->declared[i].dim, s->declared[i].rank);
		if (s->nout && s->declared[i].dtype != AP_DTYPE_COUNT)
			ap_jw_kstr(w, "dtype", ap_dtype_name(s->declared[i].dtype));
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

static void write_graph(struct ap_ctx *ctx, struct ap_jw *w, const struct ex_sample *s,
	const struct ap_pin *pin)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "schema", "autopar-graph/1");
	ap_jw_kstr(w, "name", "sample");
	ap_jw_key(w, "inputs");
	ap_jw_arr(w);
	for (int i = 0; i < s->nin; i++) {
		ap_jw_obj(w);
		ap_jw_kstr(w, "name", name_of(ctx, 'x', i));
		write_shape(w, &s->in[i]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_key(w, "parameters");
	ap_jw_arr(w);
	ap_jw_end(w);
	ap_jw_key(w, "operators");
	ap_jw_arr(w);
	write_operator(ctx, w, s, pin);
	ap_jw_end(w);
	ap_jw_key(w, "outputs");
	ap_jw_arr(w);
	ap_jw_str(w, "y0");
	ap_jw_end(w);
	ap_jw_end(w);
	ap_jw_finish(w);
}

void ex_sample_write(struct ap_ctx *ctx, const struct ex_sample *s, const struct ap_pin *pin,
	struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 0);
	write_graph(ctx, &w, s, pin);
}

static bool same_tensor(const struct ap_operand *a, const struct ap_operand *b)
{
	return a->rank == b->rank && a->dtype == b->dtype && a->differentiable == b->differentiable &&
		a->silent == b->silent && a->saved == b->saved && a->factors == b->factors &&
		memcmp(a->size, b->size, a->rank * sizeof *a->size) == 0 &&
		memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* But for what a graph adds: which factors carry the batch. */
static bool same_bound(const struct ap_bound *a, const struct ap_bound *b)
{
	bool same = a->row == b->row && a->nfactor == b->nfactor && a->nin == b->nin &&
		a->nout == b->nout && a->left == b->left && a->ndev == b->ndev &&
		memcmp(a->dev, b->dev, a->ndev) == 0;

	for (int f = 0; same && f < a->nfactor; f++)
		same = a->factor[f].letter == b->factor[f].letter &&
			a->factor[f].size == b->factor[f].size;
	for (int i = 0; same && i < a->nin; i++)
		same = same_tensor(&a->in[i], &b->in[i]);
	for (int i = 0; same && i < a->nout; i++)
		same = same_tensor(&a->out[i], &b->out[i]);
	return same;
}

void ex_sample_load(struct ex_world *w, const struct ex_sample *s, const struct ap_bound *b)
{
	struct ap_ctx ctx = *w->ctx;
	const struct ap_graph_params params = {0};
	const struct ap_graph *g;
	struct ap_json *doc;
	struct ap_str text;

	ctx.diag = ap_diag_create(ctx.arena, false);
	ap_str_init(&text, ctx.arena);
	ex_sample_write(&ctx, s, NULL, &text);
	if (ap_json_parse(&ctx, "sample.json", text.s, text.len, 0, &doc) != AP_OK ||
		ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK) {
		struct ap_str said;

		ap_str_init(&said, ctx.arena);
		ap_diag_render(ctx.diag, AP_ERROR, 3, &said);
		ex_trouble(w, "as a graph file: %s", said.s);
	} else if (g->nnode != 1 || !same_bound(&g->node[0].bound, b)) {
		ex_trouble(w, "a graph file with it is bound in another way");
	}
}
