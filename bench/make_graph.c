/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator graphs of any length, for measurements.
 *
 *   make_graph chain OPERATORS [different]      MatMuls, one after the other
 *   make_graph transformer LAYERS [different]   12 operators a layer
 *
 * different: no two layers have operators of the same sizes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_write.h"

enum { BATCH = 64, SEQUENCE = 256, HIDDEN = 1024, WIDE = 4096, STEP = 64 };

struct maker {
	struct ap_jw w;
	long layer; /* that is made */
	long layers;
	bool different;
};

static void add_shape(struct ap_jw *w, size_t rank, const int64_t *dim)
{
	ap_jw_kints(w, "shape", dim, rank);
	ap_jw_kstr(w, "dtype", "float16");
}

static void add_tensor(struct ap_jw *w, const char *name, size_t rank, const int64_t *dim)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", name);
	add_shape(w, rank, dim);
}

/* A parameter "<layer>.<name>". */
static void add_param(struct maker *m, const char *name, int64_t rows, int64_t cols)
{
	char full[64];

	snprintf(full, sizeof full, "%ld.%s", m->layer, name);
	add_tensor(&m->w, full, 2, (int64_t[]){rows, cols});
	ap_jw_end(&m->w);
}

/* Operands are of the same layer unless their name begins with '<': then of the one before. */
static void add_operand(struct maker *m, const char *name)
{
	char full[64];
	bool before = *name == '<';

	if (before && !m->layer)
		snprintf(full, sizeof full, "x");
	else
		snprintf(full, sizeof full, "%ld.%s", m->layer - before, name + before);
	ap_jw_str(&m->w, full);
}

static void begin_operator(struct maker *m, const char *cell, const char *type)
{
	char full[128];

	snprintf(full, sizeof full, "Default/network/%ld-Layer/%s/%s-op%ld", m->layer, cell, type,
		m->layer);
	ap_jw_obj_flat(&m->w);
	ap_jw_kstr(&m->w, "name", full);
	ap_jw_kstr(&m->w, "type", type);
}

/* An operator of at most two operands, its result named as its cell. */
static void add_operator(struct maker *m, const char *cell, const char *type, const char *a,
	const char *b, bool transpose_b, size_t rank, const int64_t *dim)
{
	struct ap_jw *w = &m->w;
	char full[64];

	begin_operator(m, cell, type);
	ap_jw_key(w, "inputs");
	ap_jw_arr_flat(w);
	add_operand(m, a);
	if (b)
		add_operand(m, b);
	ap_jw_end(w);
	snprintf(full, sizeof full, "%ld.%s", m->layer, cell);
	ap_jw_key(w, "outputs");
	ap_jw_arr_flat(w);
	add_tensor(w, full, rank, dim);
	ap_jw_end(w);
	ap_jw_end(w);
	if (transpose_b) {
		ap_jw_key(w, "attrs");
		ap_jw_obj_flat(w);
		ap_jw_kbool(w, "transpose_b", true);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void begin_graph(struct maker *m, const char *name, size_t rank, const int64_t *dim)
{
	struct ap_jw *w = &m->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "schema", "autopar-graph/1");
	ap_jw_kstr(w, "name", name);
	ap_jw_kstr(w, "optimizer", "adam");
	ap_jw_key(w, "inputs");
	ap_jw_arr(w);
	add_tensor(w, "x", rank, dim);
	ap_jw_kint(w, "batch_dim", 0);
	ap_jw_end(w);
	ap_jw_end(w);
}

/* The parameters of all layers, then their operators; the result is `last` of the last layer. */
static void write_layers(struct maker *m, void (*params)(struct maker *),
	void (*operators)(struct maker *), const char *last)
{
	ap_jw_key(&m->w, "parameters");
	ap_jw_arr(&m->w);
	for (m->layer = 0; m->layer < m->layers; m->layer++)
		params(m);
	ap_jw_end(&m->w);
	ap_jw_key(&m->w, "operators");
	ap_jw_arr(&m->w);
	for (m->layer = 0; m->layer < m->layers; m->layer++)
		operators(m);
	ap_jw_end(&m->w);
	ap_jw_key(&m->w, "outputs");
	ap_jw_arr_flat(&m->w);
	add_operand(m, last);
	ap_jw_end(&m->w);
	ap_jw_end(&m->w);
	ap_jw_finish(&m->w);
}

/* Columns of the product of a layer of a chain. */
static int64_t chain_size(const struct maker *m, long layer)
{
	return m->different && layer >= 0 ? 1024 + STEP * layer : 1024;
}

static void add_chain_params(struct maker *m)
{
	add_param(m, "weight", chain_size(m, m->layer - 1), chain_size(m, m->layer));
}

static void add_chain_operators(struct maker *m)
{
	add_operator(m, "product", "MatMul", "<product", "weight", false, 2,
		(int64_t[]){1024, chain_size(m, m->layer)});
}

static void write_chain(struct maker *m)
{
	begin_graph(m, "chain", 2, (int64_t[]){1024, 1024});
	write_layers(m, add_chain_params, add_chain_operators, "<product");
}

static int64_t wide(const struct maker *m)
{
	return WIDE + (m->different ? STEP * m->layer : 0);
}

static int64_t heads(const struct maker *m)
{
	return HIDDEN + (m->different ? STEP * m->layer : 0);
}

static void add_transformer_params(struct maker *m)
{
	add_param(m, "query.weight", HIDDEN, heads(m));
	add_param(m, "key.weight", HIDDEN, heads(m));
	add_param(m, "value.weight", HIDDEN, heads(m));
	add_param(m, "projection.weight", heads(m), HIDDEN);
	add_param(m, "up.weight", HIDDEN, wide(m));
	add_param(m, "down.weight", wide(m), HIDDEN);
}

static void add_product(struct maker *m, const char *cell, const char *a, const char *b,
	bool transpose_b, int64_t cols)
{
	add_operator(m, cell, "BatchMatMul", a, b, transpose_b, 3,
		(int64_t[]){BATCH, SEQUENCE, cols});
}

static void add_transformer_operators(struct maker *m)
{
	static const int64_t x[] = {BATCH, SEQUENCE, HIDDEN}, probs[] = {BATCH, SEQUENCE, SEQUENCE};

	add_product(m, "query", "<out", "query.weight", false, heads(m));
	add_product(m, "key", "<out", "key.weight", false, heads(m));
	add_product(m, "value", "<out", "value.weight", false, heads(m));
	add_product(m, "scores", "query", "key", true, SEQUENCE);
	add_operator(m, "probs", "Softmax", "scores", NULL, false, 3, probs);
	add_product(m, "context", "probs", "value", false, heads(m));
	add_product(m, "projection", "context", "projection.weight", false, HIDDEN);
	add_operator(m, "middle", "Add", "<out", "projection", false, 3, x);
	add_product(m, "up", "middle", "up.weight", false, wide(m));
	add_operator(m, "gelu", "GeLU", "up", NULL, false, 3,
		(int64_t[]){BATCH, SEQUENCE, wide(m)});
	add_product(m, "down", "gelu", "down.weight", false, HIDDEN);
	add_operator(m, "out", "Add", "middle", "down", false, 3, x);
}

static void write_transformer(struct maker *m)
{
	begin_graph(m, "transformer", 3, (int64_t[]){BATCH, SEQUENCE, HIDDEN});
	write_layers(m, add_transformer_params, add_transformer_operators, "<out");
}

static void to_stdout(void *user, const char *bytes, size_t len)
{
	(void)user;
	fwrite(bytes, 1, len, stdout);
}

int main(int argc, char **argv)
{
	struct maker m = {.layers = argc > 2 ? atol(argv[2]) : 0, .different = argc > 3};
	bool chain = argc > 1 && !strcmp(argv[1], "chain");

	if (m.layers < 1 || (!chain && strcmp(argv[1], "transformer") != 0) ||
		(m.different && strcmp(argv[3], "different") != 0)) {
		fputs("usage: make_graph chain|transformer COUNT [different]\n", stderr);
		return 2;
	}
	ap_jw_init(&m.w, to_stdout, NULL, 1);
	if (chain)
		write_chain(&m);
	else
		write_transformer(&m);
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
