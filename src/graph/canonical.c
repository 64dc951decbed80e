/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/canonical.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

struct step { /* of a walk: a node and its next operand */
	ap_id node;
	uint32_t operand; /* then what it runs behind */
	uint32_t start; /* nodes in order when it was come to */
	uint32_t least; /* place of the first node that it or what was walked for it needs; AP_NONE: none */
	bool fed; /* an input of the graph flows into it */
};

struct keyed {
	const char *key;
	ap_id id;
};

#define AHEAD (AP_NONE - 1)

struct ordering {
	struct ap_load *l;
	ap_id *order;
	uint32_t n; /* nodes in order */
	ap_id *ahead; /* nodes in front of those in order, nahead of them; NULL: none goes there */
	uint32_t nahead;
	uint32_t *place; /* [node] in order; AP_NONE: not yet, AHEAD: in front */
	const uint32_t *reads; /* [node] how often its results are read */
	struct step *path; /* [nodes] */
	uint32_t *leaf; /* [tensor] number among leaves met; AP_NONE: not met */
	uint32_t nleaf;
	uint32_t *rank; /* [node] among those that no output reaches */
};

static ap_id producer(const struct ordering *o, ap_id tensor)
{
	return o->l->tensors.v[tensor].t.producer;
}

static void need(struct step *at, uint32_t place)
{
	if (place < at->least)
		at->least = place;
}

/* What was walked for an operand, of which it is not the only reader, needs nothing that was in order
 * before, but inputs: it goes in front. So a decoder follows the encoder that it reads, and a layer the mask
 * that it is the first to read. */
static void put_ahead(struct ordering *o, uint32_t start)
{
	for (uint32_t i = start; i < o->n; i++) {
		o->ahead[o->nahead++] = o->order[i];
		o->place[o->order[i]] = AHEAD;
	}
	o->n = start;
}

/* Puts a node behind all that it needs and all that it is said to run behind, unless it is placed. */
static void walk(struct ordering *o, ap_id node)
{
	uint32_t depth = 0;

	if (o->place[node] == AP_NONE)
		o->path[depth++] = (struct step){node, 0, o->n, AP_NONE, false};
	while (depth > 0) {
		struct step *at = &o->path[depth - 1];
		const struct ap_raw_node *n = &o->l->nodes.v[at->node];

		if (at->operand == (uint32_t)n->nin + n->nafter) {
			o->place[at->node] = o->n;
			o->order[o->n++] = at->node;
			if (--depth == 0)
				return;
			if (o->ahead && at->fed && at->start > 0 && at->least >= at->start &&
				o->reads[at->node] > 1)
				put_ahead(o, at->start);
			else
				need(at - 1, at->least);
			at[-1].fed |= at->fed;
		} else {
			uint32_t k = at->operand++;
			ap_id tensor = k < n->nin ? n->in[k] : n->after[k - n->nin];
			ap_id from = producer(o, tensor);

			if (k < n->nin && from == AP_NONE && o->leaf[tensor] == AP_NONE)
				o->leaf[tensor] = o->nleaf++;
			if (from == AP_NONE)
				at->fed |= o->l->tensors.v[tensor].t.kind == AP_TENSOR_INPUT;
			else if (o->place[from] == AP_NONE)
				o->path[depth++] = (struct step){from, 0, o->n, AP_NONE, false};
			else if (o->place[from] == AHEAD)
				at->fed = true;
			else
				need(at, o->place[from]);
		}
	}
}

static const uint32_t *count_reads(const struct ap_load *l)
{
	uint32_t *reads = AP_NEW_N(l->ctx->scratch, uint32_t, l->nodes.n);

	for (uint32_t i = 0; i < l->nodes.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++) {
			ap_id from = l->tensors.v[l->nodes.v[i].in[k]].t.producer;

			if (from != AP_NONE)
				reads[from]++;
		}
	return reads;
}

/* Puts nodes that go in front there. */
static void join_ahead(struct ordering *o)
{
	memmove(o->order + o->nahead, o->order, o->n * sizeof *o->order);
	memcpy(o->order, o->ahead, o->nahead * sizeof *o->order);
	o->n += o->nahead;
	for (uint32_t i = 0; i < o->n; i++)
		o->place[o->order[i]] = i;
	o->ahead = NULL;
}

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int d = strcmp(x->key, y->key);

	return d ? d : (x->id > y->id) - (x->id < y->id);
}

static void sort(struct keyed *v, uint32_t n)
{
	if (n > 0)
		qsort(v, n, sizeof *v, by_key);
}

static void add_shape(struct ap_str *key, const int64_t *dim, uint8_t rank, enum ap_dtype type)
{
	ap_str_addf(key, " %d[", (int)type);
	for (uint8_t d = 0; d < rank; d++)
		ap_str_addf(key, "%" PRId64 ",", dim[d]);
	ap_str_addc(key, ']');
}

/* As text that is the same in every locale. */
static void add_double(struct ap_str *key, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	ap_str_addf(key, "%" PRIx64 ",", bits);
}

static void add_leaf(struct ap_str *key, const struct ap_raw_tensor *t)
{
	ap_str_addf(key, " leaf %d %d %d%d%d %d %" PRId64, (int)t->t.kind, (int)t->t.read_as, t->t.trainable,
		t->t.layerwise_parallel, t->t.parallel_optimizer, (int)t->t.comm_fusion, t->batch_dim);
	add_shape(key, t->said.dim, t->said.rank, t->said.dtype);
}

static int by_attr(const void *a, const void *b)
{
	return strcmp((*(const struct ap_attr *const *)a)->name, (*(const struct ap_attr *const *)b)->name);
}

static void add_attrs(struct ap_str *key, const struct ap_attrs *attrs)
{
	const struct ap_attr **v = AP_NEW_N(key->arena, const struct ap_attr *, attrs->n);

	for (uint32_t i = 0; i < attrs->n; i++)
		v[i] = &attrs->v[i];
	if (attrs->n > 0)
		qsort(v, attrs->n, sizeof *v, by_attr);
	for (uint32_t i = 0; i < attrs->n; i++) {
		ap_str_addf(key, " %s=", v[i]->name);
		if (v[i]->type == AP_ATTR_STRING)
			ap_str_add(key, v[i]->s);
		else if (v[i]->type == AP_ATTR_FLOAT)
			add_double(key, v[i]->f);
		else if (v[i]->type != AP_ATTR_INTS)
			ap_str_addf(key, "%" PRId64, v[i]->i);
		for (uint32_t k = 0; v[i]->type == AP_ATTR_INTS && k < v[i]->n; k++)
			ap_str_addf(key, "%" PRId64 ",", v[i]->list[k]);
	}
}

static void add_pin(struct ap_str *key, const struct ap_pin *pin)
{
	ap_str_addf(key, " pin %u", pin->n);
	for (uint32_t i = 0; i < pin->n; i++) {
		ap_str_addc(key, ':');
		for (uint8_t d = 0; d < pin->v[i].rank; d++)
			ap_str_addf(key, "%d,", (int)pin->v[i].cut[d]);
	}
}

/* All that a node is but for names, where the nodes that it needs have a place or a rank. */
static const char *key_of(const struct ordering *o, ap_id node)
{
	const struct ap_raw_node *raw = &o->l->nodes.v[node];
	const struct ap_node *n = &raw->n;
	struct ap_str key;

	ap_str_init(&key, o->l->ctx->scratch);
	ap_str_addf(&key, "%s %d %d %d %d %d %d ", n->type, (int)n->stage, (int)n->segment, n->recompute,
		n->cross_batch, (int)n->fusion, n->measured);
	add_double(&key, n->measured_forward_s);
	add_double(&key, n->measured_backward_s);
	add_double(&key, n->measured_share);
	add_pin(&key, &n->in_pin);
	add_pin(&key, &n->out_pin);
	add_attrs(&key, &n->attrs);
	for (uint16_t k = 0; k < n->bound.nout; k++)
		add_shape(&key, n->bound.out[k].size, n->bound.out[k].rank, n->bound.out[k].dtype);
	for (uint16_t k = 0; k < raw->nin; k++) {
		const struct ap_raw_tensor *t = &o->l->tensors.v[raw->in[k]];
		ap_id from = t->t.producer;

		ap_str_addf(&key, " %u:", raw->slot[k]);
		if (from == AP_NONE && o->leaf[raw->in[k]] == AP_NONE)
			add_leaf(&key, t);
		else if (from == AP_NONE)
			ap_str_addf(&key, "met %u", o->leaf[raw->in[k]]);
		else
			ap_str_addf(&key, "%s %u.%u", o->place[from] == AP_NONE ? "like" : "of",
				o->place[from] == AP_NONE ? o->rank[from] : o->place[from], t->t.result);
	}
	return key.s;
}

/* Ranks nodes without a place, alike ones equally. Returns their number; *left: them, by the longest path
 * to them, then in the order of their ranks. */
static uint32_t rank_rest(struct ordering *o, ap_id **left)
{
	struct ap_arena *scratch = o->l->ctx->scratch;
	uint32_t nnode = (uint32_t)o->l->nodes.n, nlevel = 0, nrank = 0, n = 0;
	uint32_t *level = AP_NEW_N(scratch, uint32_t, nnode), *first;
	struct keyed *v;

	for (uint32_t i = 0; i < nnode; i++) {
		const struct ap_raw_node *raw = &o->l->nodes.v[o->l->order[i]];
		uint32_t *own = &level[o->l->order[i]];

		for (uint32_t k = 0; k < (uint32_t)raw->nin + raw->nafter; k++) {
			ap_id from = producer(o, k < raw->nin ? raw->in[k] : raw->after[k - raw->nin]);

			if (from != AP_NONE && o->place[from] == AP_NONE && level[from] >= *own)
				*own = level[from] + 1;
		}
		nlevel = *own >= nlevel ? *own + 1 : nlevel;
		n += o->place[o->l->order[i]] == AP_NONE;
	}
	first = AP_NEW_N(scratch, uint32_t, (size_t)nlevel + 2);
	v = AP_NEW_N(scratch, struct keyed, n);
	*left = AP_NEW_N(scratch, ap_id, n);
	for (ap_id i = 0; i < nnode; i++)
		if (o->place[i] == AP_NONE)
			first[level[i] + 2]++;
	for (uint32_t k = 2; k < nlevel + 2; k++)
		first[k] += first[k - 1];
	for (ap_id i = 0; i < nnode; i++)
		if (o->place[i] == AP_NONE)
			v[first[level[i] + 1]++].id = i;
	for (uint32_t k = 0; k < nlevel; k++) {
		struct ap_mark mark = ap_arena_mark(scratch);

		for (uint32_t i = first[k]; i < first[k + 1]; i++)
			v[i].key = key_of(o, v[i].id);
		sort(v + first[k], first[k + 1] - first[k]);
		for (uint32_t i = first[k]; i < first[k + 1]; i++) {
			nrank += i == first[k] || strcmp(v[i - 1].key, v[i].key) != 0;
			o->rank[v[i].id] = nrank;
			(*left)[i] = v[i].id;
		}
		ap_arena_release(scratch, mark);
	}
	return n;
}

/* Moves nodes from the one at `reached` on behind the last before it that they depend on. */
static void merge_rest(struct ordering *o, uint32_t reached)
{
	struct ap_arena *scratch = o->l->ctx->scratch;
	uint32_t *behind = AP_NEW_N(scratch, uint32_t, o->n); /* number of nodes reached before it */
	uint32_t *at = AP_NEW_N(scratch, uint32_t, (size_t)reached + 2), n = 0;
	ap_id *rest = AP_NEW_N(scratch, ap_id, o->n - reached);
	ap_id *kept = ap_arena_memdup(scratch, o->order, reached * sizeof *kept);

	for (uint32_t i = reached; i < o->n; i++) {
		const struct ap_raw_node *raw = &o->l->nodes.v[o->order[i]];

		for (uint32_t k = 0; k < (uint32_t)raw->nin + raw->nafter; k++) {
			ap_id from = producer(o, k < raw->nin ? raw->in[k] : raw->after[k - raw->nin]);
			uint32_t place = from == AP_NONE ? AP_NONE : o->place[from];
			uint32_t least = from == AP_NONE ? 0 : place < reached ? place + 1 : behind[place];

			behind[i] = least > behind[i] ? least : behind[i];
		}
		at[behind[i] + 1]++;
	}
	for (uint32_t k = 0; k <= reached; k++)
		at[k + 1] += at[k];
	for (uint32_t i = reached; i < o->n; i++)
		rest[at[behind[i]]++] = o->order[i];
	/* at[k]: now the end of those behind k nodes */
	for (uint32_t k = 0; k <= reached; k++) {
		for (uint32_t i = k > 0 ? at[k - 1] : 0; i < at[k]; i++)
			o->order[n++] = rest[i];
		if (k < reached)
			o->order[n++] = kept[k];
	}
}

static void order_rest(struct ordering *o)
{
	uint32_t nnode = (uint32_t)o->l->nodes.n, reached = o->n, n;
	bool *read = AP_NEW_N(o->l->ctx->scratch, bool, nnode);
	ap_id *left;

	o->rank = AP_NEW_N(o->l->ctx->scratch, uint32_t, nnode);
	n = rank_rest(o, &left);
	for (uint32_t i = 0; i < n; i++)
		for (uint16_t k = 0; k < o->l->nodes.v[left[i]].nin; k++) {
			ap_id from = producer(o, o->l->nodes.v[left[i]].in[k]);

			if (from != AP_NONE)
				read[from] = true;
		}
	for (uint32_t i = 0; i < n; i++)
		if (!read[left[i]])
			walk(o, left[i]);
	merge_rest(o, reached);
}

static void order_leaves(struct ordering *o)
{
	struct ap_load *l = o->l;
	ap_id *met = AP_NEW_N(l->ctx->scratch, ap_id, l->tensors.n);
	struct keyed *unused = AP_NEW_N(l->ctx->scratch, struct keyed, l->tensors.n);
	uint32_t n = 0, nunused = 0;

	for (uint32_t t = 0; t < l->tensors.n; t++)
		o->leaf[t] = AP_NONE;
	for (uint32_t i = 0; i < o->n; i++) {
		const struct ap_raw_node *raw = &l->nodes.v[o->order[i]];

		for (uint16_t k = 0; k < raw->nin; k++)
			if (producer(o, raw->in[k]) == AP_NONE && o->leaf[raw->in[k]] == AP_NONE) {
				o->leaf[raw->in[k]] = n;
				met[n++] = raw->in[k];
			}
	}
	for (size_t i = 0; i < l->outputs.n; i++) {
		ap_id t = ap_load_tensor(l, ap_jv_str(l->outputs.v[i]));

		if (producer(o, t) == AP_NONE && o->leaf[t] == AP_NONE) {
			o->leaf[t] = n;
			met[n++] = t;
		}
	}
	for (ap_id t = 0; t < l->tensors.n; t++)
		if (producer(o, t) == AP_NONE && o->leaf[t] == AP_NONE) {
			struct ap_str key;

			ap_str_init(&key, l->ctx->scratch);
			add_leaf(&key, &l->tensors.v[t]);
			unused[nunused++] = (struct keyed){key.s, t};
		}
	sort(unused, nunused);
	for (uint32_t i = 0; i < nunused; i++)
		met[n++] = unused[i].id;
	l->leaves = AP_NEW_N(l->ctx->arena, ap_id, n);
	l->nleaf = 0;
	for (int kind = AP_TENSOR_INPUT; kind < AP_TENSOR_ACT; kind++)
		for (uint32_t i = 0; i < n; i++)
			if ((int)l->tensors.v[met[i]].t.kind == kind)
				l->leaves[l->nleaf++] = met[i];
}

void ap_load_order(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ordering o = {.l = l, .order = AP_NEW_N(l->ctx->arena, ap_id, l->nodes.n),
		.place = AP_NEW_N(l->ctx->scratch, uint32_t, l->nodes.n),
		.path = AP_NEW_N(l->ctx->scratch, struct step, l->nodes.n),
		.ahead = AP_NEW_N(l->ctx->scratch, ap_id, l->nodes.n), .reads = count_reads(l),
		.leaf = AP_NEW_N(l->ctx->scratch, uint32_t, l->tensors.n)};

	for (size_t i = 0; i < l->nodes.n; i++)
		o.place[i] = AP_NONE;
	for (size_t t = 0; t < l->tensors.n; t++)
		o.leaf[t] = AP_NONE;
	for (size_t i = 0; i < l->outputs.n; i++) {
		ap_id from = producer(&o, ap_load_tensor(l, ap_jv_str(l->outputs.v[i])));

		if (from != AP_NONE)
			walk(&o, from);
	}
	join_ahead(&o);
	if (o.n < l->nodes.n)
		order_rest(&o);
	order_leaves(&o);
	l->order = o.order;
	ap_arena_release(l->ctx->scratch, mark);
}
