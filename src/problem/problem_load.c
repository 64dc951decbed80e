/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "problem/problem.h"
#include "problem/quantise.h"

#define SCHEMA "autopar-problem/1"
#define MAX_WAYS 4096 /* limit on factors times primes */
#define MAX_BYTES ((int64_t)1 << 53) /* memory sums stay exact in a double, too */

struct loader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct ap_pnode *node;
	struct ap_pmatrix *matrix;
	struct ap_pedge *edge;
	uint32_t n, nmatrix, nedge;
};

#define FAULT(l, v, name, check, ...) \
	ap_json_report((l)->ctx, (l)->doc, (v), AP_ERROR, AP_MEANING, (name), (check), __VA_ARGS__)

/* Returns the first error; reading continues after a fault to report all. */
static enum ap_status first(enum ap_status a, enum ap_status b)
{
	return a != AP_OK ? a : b;
}

static enum ap_status array_of(struct loader *l, const struct ap_jv *obj, const char *key,
	const char *name, size_t want, const struct ap_jv **arr)
{
	AP_TRY(ap_json_get_arr(l->ctx, l->doc, obj, key, arr));
	if (ap_jv_count(*arr) != want)
		return FAULT(l, *arr, name, "problem-size", "%s has %zu elements; expected %zu",
			key, ap_jv_count(*arr), want);
	return AP_OK;
}

static enum ap_status read_costs(struct loader *l, const struct ap_jv *arr, const char *name,
	size_t count, const double **out)
{
	double *cost = ap_arena_alloc_raw(l->ctx->arena, count, sizeof *cost);
	size_t i = 0;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), i++) {
		enum ap_jtype type = ap_jv_type(v);
		if (type == AP_JNUMBER)
			cost[i] = ap_jv_double(v) + 0.0; /* no negative zero */
		else if (type == AP_JNULL)
			cost[i] = INFINITY;
		else
			return FAULT(l, v, name, "problem-number",
				"a cost is a number, or null where the choice is forbidden");
	}
	*out = cost;
	return AP_OK;
}

static enum ap_status read_memory(struct loader *l, const struct ap_jv *obj, const char *name,
	size_t count, const int64_t **out)
{
	const struct ap_jv *arr;
	if (!ap_jv_get(obj, "memory"))
		return AP_OK;
	AP_TRY(array_of(l, obj, "memory", name, count, &arr));
	int64_t *memory = ap_arena_alloc_raw(l->ctx->arena, count, sizeof *memory);
	size_t i = 0;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), i++) {
		if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(l->doc, v, &memory[i]) ||
			memory[i] > MAX_BYTES || memory[i] < -MAX_BYTES)
			return FAULT(l, v, name, "problem-number",
				"memory is a whole number of bytes, at most 2^53");
	}
	*out = memory;
	return AP_OK;
}

/* Reads a candidate's row of next. */
static enum ap_status read_ways(struct loader *l, const struct ap_jv *row, const char *name,
	uint32_t k, int32_t *next)
{
	for (const struct ap_jv *v = ap_jv_first(row); v; v = ap_jv_next(v)) {
		int64_t c;
		if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(l->doc, v, &c) || c < -1 || c >= k)
			return FAULT(l, v, name, "problem-index",
				"next names a candidate, 0 to %" PRIu32 ", or -1", k - 1);
		*next++ = (int32_t)c;
	}
	return AP_OK;
}

static enum ap_status read_next(struct loader *l, const struct ap_jv *obj, struct ap_pnode *node)
{
	const struct ap_jv *arr;
	if (!ap_jv_get(obj, "next"))
		return AP_OK;
	AP_TRY(array_of(l, obj, "next", node->name, node->k, &arr));
	const struct ap_jv *row = ap_jv_first(arr);
	size_t ways = ap_jv_type(row) == AP_JARRAY ? ap_jv_count(row) : 0;
	if (ways > MAX_WAYS)
		return FAULT(l, row, node->name, "problem-size",
			"next knows %zu ways to cut further; at most %d are possible", ways, MAX_WAYS);
	int32_t *next = AP_NEW_N(l->ctx->arena, int32_t, node->k * ways + 1);
	node->nway = (uint32_t)ways;
	node->next = next;
	for (; row; row = ap_jv_next(row), next += ways) {
		if (ap_jv_type(row) != AP_JARRAY || ap_jv_count(row) != ways)
			return FAULT(l, row, node->name, "problem-size",
				"next is one array per candidate, all of one length (%zu)", ways);
		AP_TRY(read_ways(l, row, node->name, node->k, next));
	}
	return AP_OK;
}

static enum ap_status read_node(struct loader *l, const struct ap_jv *v, struct ap_pnode *node)
{
	static const char *const known[] = {"name", "cost", "memory", "fixed", "next", NULL};
	const struct ap_jv *cost;
	if (ap_jv_type(v) != AP_JOBJECT)
		return FAULT(l, v, NULL, "key-type", "a node is an object");
	AP_TRY(ap_json_known(l->ctx, l->doc, v, known));
	AP_TRY(ap_json_get_str(l->ctx, l->doc, v, "name", &node->name));
	node->name = ap_arena_strdup(l->ctx->arena, node->name);
	AP_TRY(ap_json_get_arr(l->ctx, l->doc, v, "cost", &cost));
	size_t k = ap_jv_count(cost);
	if (k < 1 || k > UINT32_MAX / 2)
		return FAULT(l, cost, node->name, "problem-size",
			"a node has at least one candidate");
	node->k = (uint32_t)k;
	AP_TRY(read_costs(l, cost, node->name, k, &node->cost));
	AP_TRY(read_memory(l, v, node->name, k, &node->memory));
	AP_TRY(ap_json_opt_bool(l->ctx, l->doc, v, "fixed", &node->fixed));
	return read_next(l, v, node);
}

static enum ap_status read_matrix(struct loader *l, const struct ap_jv *v, struct ap_pmatrix *m)
{
	static const char *const known[] = {"rows", "cols", "cost", "memory", NULL};
	const struct ap_jv *cost;
	int64_t rows, cols;
	if (ap_jv_type(v) != AP_JOBJECT)
		return FAULT(l, v, NULL, "key-type", "a matrix is an object");
	AP_TRY(ap_json_known(l->ctx, l->doc, v, known));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, v, "rows", 1, UINT32_MAX / 2, &rows));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, v, "cols", 1, UINT32_MAX / 2, &cols));
	m->rows = (uint32_t)rows;
	m->cols = (uint32_t)cols;
	size_t cells = (size_t)rows * (size_t)cols;
	AP_TRY(array_of(l, v, "cost", NULL, cells, &cost));
	AP_TRY(read_costs(l, cost, NULL, cells, &m->cost));
	return read_memory(l, v, NULL, cells, &m->memory);
}

static enum ap_status read_edge(struct loader *l, const struct ap_jv *v, struct ap_pedge *e)
{
	static const char *const known[] = {"from", "to", "matrix", NULL};
	int64_t from, to, matrix;
	if (ap_jv_type(v) != AP_JOBJECT)
		return FAULT(l, v, NULL, "key-type", "an edge is an object");
	AP_TRY(ap_json_known(l->ctx, l->doc, v, known));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, v, "from", 0, (int64_t)l->n - 1, &from));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, v, "to", 0, (int64_t)l->n - 1, &to));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, v, "matrix", 0, (int64_t)l->nmatrix - 1, &matrix));
	if (from == to)
		return FAULT(l, v, l->node[from].name, "problem-self-edge",
			"an edge joins two different nodes");
	*e = (struct ap_pedge){(ap_id)from, (ap_id)to, (ap_id)matrix};
	const struct ap_pmatrix *m = &l->matrix[matrix];
	if (m->rows != l->node[from].k || m->cols != l->node[to].k)
		return FAULT(l, v, l->node[from].name, "problem-size",
			"matrix %" PRId64 " is %" PRIu32 " x %" PRIu32
			"; the candidates of the two nodes need %" PRIu32 " x %" PRIu32,
			matrix, m->rows, m->cols, l->node[from].k, l->node[to].k);
	return AP_OK;
}

static enum ap_status list_of(struct loader *l, const char *key, const struct ap_jv **arr,
	uint32_t *n)
{
	AP_TRY(ap_json_get_arr(l->ctx, l->doc, ap_json_root(l->doc), key, arr));
	size_t count = ap_jv_count(*arr);
	if (count > UINT32_MAX / 2)
		return ap_json_report(l->ctx, l->doc, *arr, AP_ERROR, AP_LIMIT, NULL, NULL,
			"more than 2^31 %s", key);
	*n = (uint32_t)count;
	return AP_OK;
}

static enum ap_status read_lists(struct loader *l)
{
	const struct ap_jv *nodes, *edges, *matrices;
	struct ap_arena *arena = l->ctx->arena;
	AP_TRY(list_of(l, "nodes", &nodes, &l->n));
	AP_TRY(list_of(l, "edges", &edges, &l->nedge));
	AP_TRY(list_of(l, "matrices", &matrices, &l->nmatrix));
	l->node = AP_NEW_N(arena, struct ap_pnode, l->n);
	l->matrix = AP_NEW_N(arena, struct ap_pmatrix, l->nmatrix);
	l->edge = AP_NEW_N(arena, struct ap_pedge, l->nedge);
	enum ap_status st = AP_OK;
	uint32_t i = 0;
	for (const struct ap_jv *v = ap_jv_first(nodes); v; v = ap_jv_next(v))
		st = first(st, read_node(l, v, &l->node[i++]));
	i = 0;
	for (const struct ap_jv *v = ap_jv_first(matrices); v; v = ap_jv_next(v))
		st = first(st, read_matrix(l, v, &l->matrix[i++]));
	AP_TRY(st); /* edges can only be checked against sound nodes and matrices */
	i = 0;
	for (const struct ap_jv *v = ap_jv_first(edges); v; v = ap_jv_next(v))
		st = first(st, read_edge(l, v, &l->edge[i++]));
	return st;
}

static uint64_t matrix_hash(const struct ap_pmatrix *m)
{
	size_t cells = (size_t)m->rows * m->cols;
	uint64_t h = ap_hash(m->cost, cells * sizeof *m->cost, m->rows);
	return m->memory ? ap_hash(m->memory, cells * sizeof *m->memory, h) : h;
}

static bool matrix_equal(const struct ap_pmatrix *a, const struct ap_pmatrix *b)
{
	size_t cells = (size_t)a->rows * a->cols;
	if (a->rows != b->rows || a->cols != b->cols || !a->memory != !b->memory)
		return false;
	return memcmp(a->cost, b->cost, cells * sizeof *a->cost) == 0 &&
		(!a->memory || memcmp(a->memory, b->memory, cells * sizeof *a->memory) == 0);
}

/* Lets edges with equal content share a matrix. On a hash collision, the later one stays
 * unshared. */
static void share_matrices(struct loader *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_map *seen = ap_map_create(l->ctx->scratch);
	ap_id *same = AP_NEW_N(l->ctx->scratch, ap_id, l->nmatrix);
	ap_id *owner = AP_NEW_N(l->ctx->scratch, ap_id, l->nmatrix); /* by id in seen */
	uint32_t kept = 0;
	for (uint32_t i = 0; i < l->nmatrix; i++) {
		uint64_t h = matrix_hash(&l->matrix[i]);
		bool fresh;
		ap_id id = ap_map_put(seen, &h, sizeof h, &fresh);
		if (!fresh && matrix_equal(&l->matrix[owner[id]], &l->matrix[i])) {
			same[i] = owner[id];
			continue;
		}
		if (fresh)
			owner[id] = kept;
		same[i] = kept;
		l->matrix[kept++] = l->matrix[i];
	}
	l->nmatrix = kept;
	for (uint32_t i = 0; i < l->nedge; i++)
		l->edge[i].matrix = same[l->edge[i].matrix];
	ap_arena_release(l->ctx->scratch, mark);
}

static int64_t max_bytes(const int64_t *memory, size_t n)
{
	int64_t most = 0;
	for (size_t i = 0; memory && i < n; i++) {
		int64_t a = memory[i] < 0 ? -memory[i] : memory[i];
		if (a > most)
			most = a;
	}
	return most;
}

static bool memory_fits(struct loader *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	int64_t *most = AP_NEW_N(l->ctx->scratch, int64_t, l->nmatrix);
	int64_t sum = 0;
	for (uint32_t i = 0; i < l->nmatrix; i++) {
		const struct ap_pmatrix *m = &l->matrix[i];
		most[i] = max_bytes(m->memory, (size_t)m->rows * m->cols);
	}
	for (uint32_t i = 0; i < l->n && sum <= MAX_BYTES; i++)
		sum += max_bytes(l->node[i].memory, l->node[i].k);
	for (uint32_t i = 0; i < l->nedge && sum <= MAX_BYTES; i++)
		sum += most[l->edge[i].matrix];
	ap_arena_release(l->ctx->scratch, mark);
	return sum <= MAX_BYTES;
}

static enum ap_status read_head(struct loader *l, const struct ap_jv *root, int64_t *limit)
{
	static const char *const known[] = {"schema", "memory_limit", "nodes", "edges", "matrices",
		NULL};
	const char *schema;
	if (ap_jv_type(root) != AP_JOBJECT)
		return FAULT(l, root, NULL, "key-type", "a problem is an object");
	AP_TRY(ap_json_get_str(l->ctx, l->doc, root, "schema", &schema));
	if (strcmp(schema, SCHEMA) != 0)
		return FAULT(l, ap_jv_get(root, "schema"), NULL, "schema-known",
			"schema is \"%s\"; expected \"" SCHEMA "\"",
			ap_diag_name(l->ctx->diag, schema));
	AP_TRY(ap_json_known(l->ctx, l->doc, root, known));
	*limit = AP_NO_LIMIT;
	const struct ap_jv *v = ap_jv_get(root, "memory_limit");
	if (!v || ap_jv_type(v) == AP_JNULL)
		return AP_OK;
	return ap_json_get_int(l->ctx, l->doc, root, "memory_limit", -MAX_BYTES, MAX_BYTES, limit);
}

enum ap_status ap_problem_load(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_problem **out)
{
	struct loader l = {.ctx = ctx, .doc = doc};
	const struct ap_jv *root = ap_json_root(doc);
	int64_t limit;
	AP_TRY(read_head(&l, root, &limit));
	AP_TRY(read_lists(&l));
	share_matrices(&l);
	if (!memory_fits(&l))
		return FAULT(&l, root, NULL, "problem-range",
			"memory adds up to more than 2^53 bytes");
	struct ap_problem *p = AP_NEW(ctx->arena, struct ap_problem);
	*p = (struct ap_problem){
		.n = l.n, .node = l.node,
		.nedge = l.nedge, .edge = l.edge,
		.nmatrix = l.nmatrix, .matrix = l.matrix,
		.memory_limit = limit,
	};
	if (!ap_problem_quantise(ctx, p))
		return FAULT(&l, root, NULL, "problem-range", "costs add up to more than 1e308");
	*out = p;
	return AP_OK;
}
