/* SPDX-License-Identifier: Apache-2.0 */
/* Topological order (Kahn), and the cycle to tell where there is none. No recursion. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "graph/load.h"

enum { NAMES_TOLD = 10 };
#define BFS_BUDGET (INT64_C(1) << 24) /* edges visited in search of the shortest cycle */

/* Producer -> consumer, compressed: successors of v are edge[first[v] .. first[v + 1]). */
struct successors {
	uint32_t n;
	uint32_t *first;
	ap_id *edge;
};

static ap_id producer(const struct ap_load *l, const struct ap_raw_node *n, uint16_t k)
{
	return n->in[k] == AP_NONE ? AP_NONE : l->tensors.v[n->in[k]].t.producer;
}

/* Every slot that reads counts once. Edges of one producer ascend by consumer. O(nodes + slots). */
static struct successors make_successors(struct ap_load *l)
{
	struct successors s = {.n = (uint32_t)l->nodes.n};
	uint32_t *at;

	s.first = AP_NEW_N(l->ctx->scratch, uint32_t, s.n + 1);
	at = AP_NEW_N(l->ctx->scratch, uint32_t, s.n + 1);
	for (uint32_t i = 0; i < s.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			if (producer(l, &l->nodes.v[i], k) != AP_NONE)
				s.first[producer(l, &l->nodes.v[i], k) + 1]++;
	for (uint32_t i = 0; i < s.n; i++)
		s.first[i + 1] += s.first[i];
	s.edge = AP_NEW_N(l->ctx->scratch, ap_id, s.first[s.n]);
	memcpy(at, s.first, (s.n + 1) * sizeof *at);
	for (uint32_t i = 0; i < s.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			if (producer(l, &l->nodes.v[i], k) != AP_NONE)
				s.edge[at[producer(l, &l->nodes.v[i], k)]++] = i;
	return s;
}

struct heap { /* smallest id first */
	ap_id *v;
	uint32_t n;
};

static void swap(ap_id *a, ap_id *b)
{
	ap_id t = *a;

	*a = *b;
	*b = t;
}

static void heap_push(struct heap *h, ap_id x)
{
	uint32_t i = h->n++;

	h->v[i] = x;
	for (; i > 0 && h->v[i] < h->v[(i - 1) / 2]; i = (i - 1) / 2)
		swap(&h->v[i], &h->v[(i - 1) / 2]);
}

static ap_id heap_pop(struct heap *h)
{
	ap_id top = h->v[0];
	uint32_t i = 0, least;

	h->v[0] = h->v[--h->n];
	for (;; i = least) {
		least = i;
		for (uint32_t c = 2 * i + 1; c <= 2 * i + 2 && c < h->n; c++)
			if (h->v[c] < h->v[least])
				least = c;
		if (least == i)
			return top;
		swap(&h->v[i], &h->v[least]);
	}
}

/* Fills order; returns how many could be placed. waits[v]: operands of v not yet produced, 0 for
 * all that were placed. O((nodes + slots) log nodes). */
static uint32_t kahn(struct ap_load *l, const struct successors *s, uint32_t *waits, ap_id *order)
{
	struct heap ready = {AP_NEW_N(l->ctx->scratch, ap_id, s->n), 0};
	uint32_t placed = 0;

	for (uint32_t e = 0; e < s->first[s->n]; e++)
		waits[s->edge[e]]++;
	for (uint32_t i = 0; i < s->n; i++)
		if (waits[i] == 0)
			heap_push(&ready, i);
	while (ready.n > 0) {
		ap_id v = heap_pop(&ready);

		order[placed++] = v;
		for (uint32_t e = s->first[v]; e < s->first[v + 1]; e++)
			if (--waits[s->edge[e]] == 0)
				heap_push(&ready, s->edge[e]);
	}
	return placed;
}

struct search {
	const struct successors *s;
	const uint32_t *waits; /* 0: not on any cycle */
	ap_id *queue, *from; /* from: predecessor on the way from the start */
	uint32_t *seen; /* start + 1 of the search that came by last */
	int64_t budget;
};

/* Length of the shortest cycle through start, shorter than most; 0 when there is none. */
static uint32_t cycle_through(struct search *q, ap_id start, uint32_t most)
{
	uint32_t head = 0, tail = 0, depth = 1, level_end = 1;

	q->queue[tail++] = start;
	while (head < tail && depth < most) {
		ap_id v = q->queue[head++];

		for (uint32_t e = q->s->first[v]; e < q->s->first[v + 1]; e++) {
			ap_id w = q->s->edge[e];

			q->budget--;
			if (w == start) {
				q->from[start] = v;
				return depth;
			}
			if (!q->waits[w] || q->seen[w] == start + 1)
				continue;
			q->seen[w] = start + 1;
			q->from[w] = v;
			q->queue[tail++] = w;
		}
		if (head == level_end) {
			level_end = tail;
			depth++;
		}
	}
	return 0;
}

/* The cycle that ends at start, in order. */
static void keep_cycle(const struct search *q, ap_id start, uint32_t n, ap_id *cycle)
{
	ap_id v = start;

	for (uint32_t i = n; i-- > 0;) {
		v = q->from[v];
		cycle[i] = v;
	}
}

/* Shortest cycle, as long as the budget lasts. cycle[0] is where the search began. */
static uint32_t find_cycle(struct ap_load *l, const struct successors *s, const uint32_t *waits,
	ap_id *cycle)
{
	struct ap_arena *a = l->ctx->scratch;
	struct search q = {s, waits, AP_NEW_N(a, ap_id, s->n), AP_NEW_N(a, ap_id, s->n),
		AP_NEW_N(a, uint32_t, s->n), BFS_BUDGET};
	uint32_t best = 0;

	for (ap_id v = 0; v < s->n && (q.budget > 0 || best == 0) && best != 1; v++) {
		uint32_t n = waits[v] ? cycle_through(&q, v, best ? best : s->n + 1) : 0;

		if (n == 0)
			continue;
		best = n;
		keep_cycle(&q, v, n, cycle);
	}
	return best;
}

static void say_cycle(struct ap_load *l, const ap_id *cycle, uint32_t n)
{
	const struct ap_raw_node *first = &l->nodes.v[cycle[0]];
	struct ap_str text;

	ap_str_init(&text, l->ctx->scratch);
	for (uint32_t i = 0; i <= n && i < NAMES_TOLD; i++)
		ap_str_addf(&text, "%s%s", i ? " -> " : "",
			ap_load_name(l, l->nodes.v[cycle[i % n]].n.name));
	if (n >= NAMES_TOLD)
		ap_str_addf(&text, " -> ... (%u operators)", n);
	ap_load_say(l, AP_CHECK_EDGE_CYCLE, first->at, first->n.name, "cycle: %s", text.s);
}

void ap_check_edge_cycle(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	ap_id *order = AP_NEW_N(l->ctx->arena, ap_id, l->nodes.n);
	struct successors s = make_successors(l);
	uint32_t *waits = AP_NEW_N(l->ctx->scratch, uint32_t, s.n);

	if (kahn(l, &s, waits, order) == s.n) {
		l->order = order;
	} else {
		ap_id *cycle = AP_NEW_N(l->ctx->scratch, ap_id, s.n);

		say_cycle(l, cycle, find_cycle(l, &s, waits, cycle));
	}
	ap_arena_release(l->ctx->scratch, mark);
}
