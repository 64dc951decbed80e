/* SPDX-License-Identifier: Apache-2.0 */
/* Costs that are priced when asked for are those of the table, and moves lead to its candidates. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "fixture.h"
#include "harness.h"
#include "table/lazy.h"
#include "table/table.h"

/* Look-up and product of one table, so that layouts are tied; a residual; a batched product. */
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'ids','shape':[12,8],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'table','shape':[48,24],'dtype':'float32'}," \
	"{'name':'w','shape':[12,24,24],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]}," \
	"{'name':'act','type':'ReLU','inputs':['e'],'outputs':[{'name':'r'}]}," \
	"{'name':'mix','type':'BatchMatMul','inputs':['r','w'],'outputs':[{'name':'m'}]}," \
	"{'name':'sum','type':'Add','inputs':['m','e'],'outputs':[{'name':'s'}]}," \
	"{'name':'flat','type':'Reshape','inputs':['s'],'outputs':[{'name':'f','shape':[96,24]}]," \
	"'attrs':{'shape':[96,24]}}," \
	"{'name':'head','type':'MatMul','inputs':['f','table'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct both {
	struct fixture f;
	const struct ap_table *table; /* unpruned */
	struct ap_lazy *lazy;
};

static void open_both(struct both *b, int64_t ndev)
{
	const struct ap_table_params params = {0};

	fixture_open(&b->f, ndev, 4, "a100-80");
	fixture_graph(&b->f, GRAPH);
	ck_assert_int_eq(ap_table_make(&b->f.ctx, b->f.graph, b->f.machine, &b->f.step, &params,
		&b->table), AP_OK);
	b->lazy = ap_lazy_create(&b->f.ctx, b->f.graph, b->f.machine, &b->f.step, NULL);
}

static void close_both(struct both *b)
{
	ap_lazy_destroy(b->lazy);
	fixture_close(&b->f);
}

static uint32_t state_of(struct both *b, ap_id node, uint32_t candidate)
{
	return ap_lazy_find(b->lazy, ap_lazy_classes(b->lazy)[node],
		ap_table_counts(b->table, node, candidate));
}

static bool lends(const struct ap_task *t)
{
	bool any = false;

	for (int i = 0; i < t->bound->nin; i++)
		any |= t->in[i].share > 0;
	for (int o = 0; o < t->bound->nout; o++)
		any |= t->out[o].lent;
	return any;
}

START_TEST(prices_are_those_of_the_table)
{
	const struct ap_lazy_link *link;
	const struct ap_problem *p;
	struct both b;

	open_both(&b, 12);
	p = b.table->problem;
	for (ap_id i = 0; i < p->n; i++)
		for (uint32_t c = 0; c < p->node[i].k; c++) {
			const struct ap_lazy_state *s = ap_lazy_state(b.lazy,
				ap_lazy_classes(b.lazy)[i], state_of(&b, i, c));

			ck_assert_double_eq(s->cost_s, p->node[i].cost[c]);
			if (!lends(&b.table->task[i])) /* what is lent is charged where it is made */
				ck_assert_int_eq(s->memory, p->node[i].memory[c]);
			ck_assert_int_eq(s->temporary,
				b.table->cls[b.table->class_of[i]].temporary[c]);
		}
	ck_assert_uint_eq(ap_lazy_links(b.lazy, &link), p->nedge);
	for (uint32_t e = 0; e < p->nedge; e++) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[e].matrix];
		bool forbids = false;

		ck_assert_uint_eq(link[e].u, p->edge[e].u);
		ck_assert_uint_eq(link[e].v, p->edge[e].v);
		for (uint32_t i = 0; i < m->rows * m->cols; i++) {
			struct ap_lazy_move mc = ap_lazy_move(b.lazy, link[e].bond,
				state_of(&b, link[e].u, i / m->cols),
				state_of(&b, link[e].v, i % m->cols));

			ck_assert_double_eq(mc.cost_s, m->cost[i]);
			ck_assert_int_ge(mc.kept_bytes, m->memory ? m->memory[i] : 0);
			forbids |= isinf(mc.cost_s);
		}
		ck_assert(link[e].strict == forbids);
	}
	close_both(&b);
}
END_TEST

static bool listed(struct ap_lazy_list list, uint32_t state)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < list.n; i++)
		found += list.state[i] == state;
	ck_assert_uint_le(found, 1);
	return found;
}

/* Cutting further leads to just the candidates that the table's `next` names. */
START_TEST(cutting_further_is_what_the_table_says)
{
	static const int32_t prime[] = {2, 3};
	uint32_t ways = 0;
	struct both b;

	open_both(&b, 12);
	for (ap_id i = 0; i < b.f.graph->nnode; i++) {
		const struct ap_pnode *n = &b.table->problem->node[i];
		uint32_t cls = ap_lazy_classes(b.lazy)[i], nf = n->nway / 2;

		ck_assert_uint_eq(nf, b.f.graph->node[i].bound.nfactor);
		for (uint32_t c = 0; c < n->k; c++)
			for (int p = 0; p < 2; p++) {
				const int32_t *next = n->next + c * n->nway + (uint32_t)p * nf;
				struct ap_lazy_list list = ap_lazy_further(b.lazy, cls,
					state_of(&b, i, c), prime[p]);
				uint32_t expected = 0;

				for (uint32_t f = 0; f < nf; f++) {
					if (next[f] < 0)
						continue;
					ck_assert(listed(list, state_of(&b, i, (uint32_t)next[f])));
					ck_assert_int_eq(ap_table_counts(b.table, i,
							(uint32_t)next[f])[f],
						prime[p] * ap_table_counts(b.table, i, c)[f]);
					expected++;
				}
				ck_assert_uint_eq(list.n, expected);
				ways += expected;
			}
	}
	ck_assert_uint_gt(ways, 100);
	close_both(&b);
}
END_TEST

static void fixture_find(struct both *b, ap_id node, const char *text, uint32_t *state)
{
	int32_t count[AP_MAX_FACTOR];

	fixture_counts(&b->f, node, text, count);
	*state = ap_lazy_find(b->lazy, ap_lazy_classes(b->lazy)[node], count);
}

START_TEST(what_lies_beside)
{
	static const char *const near[] = {"m=2", "m=6", "m=4 n=3", "m=6 n=2", "m=12", "m=4 k=3",
		"m=6 k=2", "m=2 n=2", "n=6", "k=6", "m=3 n=2", "k=2 m=6", "", "n=12", "k=12", "n=4 k=3"};
	static const bool is_beside[] = {true, false, false, true, true, false, true, false, true,
		true, true, true, true, true, true, false};
	uint32_t from, to;
	struct both b;
	ap_id head;

	open_both(&b, 12);
	head = fixture_node(&b.f, "head");
	fixture_find(&b, head, "m=6", &from);
	for (size_t i = 0; i < AP_COUNT(near); i++) {
		fixture_find(&b, head, near[i], &to);
		ck_assert_uint_ne(to, AP_NONE);
		ck_assert_msg(listed(ap_lazy_beside(b.lazy, ap_lazy_classes(b.lazy)[head], from),
				      to) == (is_beside[i] && to != from), "%s", near[i]);
	}
	fixture_find(&b, head, "m=5", &to);
	ck_assert_uint_eq(to, AP_NONE);
	fixture_find(&b, head, "m=12 n=2", &to);
	ck_assert_uint_eq(to, AP_NONE);
	close_both(&b);
}
END_TEST

START_TEST(a_fixed_operator_has_one_state)
{
	const int32_t *fixed[8] = {0};
	int32_t count[AP_MAX_FACTOR];
	const struct ap_lazy_link *link;
	struct ap_lazy_list list;
	uint32_t cls, start, n;
	struct both b;
	ap_id look, head;

	open_both(&b, 12);
	look = fixture_node(&b.f, "look");
	head = fixture_node(&b.f, "head");
	fixture_counts(&b.f, look, "v=4", count);
	fixed[look] = count;
	ap_lazy_destroy(b.lazy);
	b.lazy = ap_lazy_create(&b.f.ctx, b.f.graph, b.f.machine, &b.f.step, fixed);
	cls = ap_lazy_classes(b.lazy)[look];
	start = ap_lazy_start(b.lazy, cls);
	ck_assert_mem_eq(ap_lazy_state(b.lazy, cls, start)->count, count,
		b.f.graph->node[look].bound.nfactor * sizeof *count);
	ck_assert_uint_eq(ap_lazy_further(b.lazy, cls, start, 2).n, 0);
	ck_assert_uint_eq(ap_lazy_beside(b.lazy, cls, start).n, 0);
	n = ap_lazy_links(b.lazy, &link);
	while (!link[n - 1].strict)
		n--;
	link += n - 1; /* look and head read one table */
	ck_assert_uint_eq(link->u, look);
	ck_assert_uint_eq(link->v, head);
	list = ap_lazy_matching(b.lazy, link->bond, true, start);
	ck_assert_uint_gt(list.n, 0);
	for (uint32_t i = 0; i < list.n; i++)
		ck_assert_double_eq(
			ap_lazy_move(b.lazy, link->bond, start, list.state[i]).cost_s, 0);
	ck_assert_ptr_eq(ap_lazy_matching(b.lazy, link->bond, true, start).state, list.state);
	close_both(&b);
}
END_TEST
