/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of small networks stay, which stand for others, and what those behind a gap read. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/family.h"
#include "graph/fold.h"
#include "graph/staged.h"
#include "graph_fixture.h"
#include "harness.h"

/* Layers in a row, y = kind(x w): what is special, and which stay with keep = 1 and 2, with how many each. */
static const struct net {
	const char *kinds; /* of each layer: r ReLU, t Tanh, s Sigmoid */
	int far, by; /* the result of layer `far` is also read by layer `by`; by -1: nobody */
	int head, output; /* its result is also read behind all layers; is one of the network's; -1: none */
	int fused; /* it says how its gradient is fused; -1: none */
	bool shared, masked; /* they have one weight; each has an input of its own */
	const char *cells; /* "" */
	const char *one, *two;
} nets[] = {
	{"rrrrrrrr", -1, -1, -1, -1, -1, false, false, "", "0 1*6 7", "0 1 2*5 7"},
	{"rrr", -1, -1, -1, -1, -1, false, false, "", "0 1 2", "0 1 2"},
	{"rtrtrtrtrt", -1, -1, -1, -1, -1, false, false, "", "0 1*4 2*4 9", "0 1 2 3*3 4*3 9"},
	{"rrrrtttttt", -1, -1, -1, -1, -1, false, false, "", "0 1*2 3 4 5*4 9", "0 1 2 3 4 5 6*3 9"},
	{"rrtrrtrrtrrtr", -1, -1, -1, -1, -1, false, false, "", "0 1*3 2*3 3*3 10 11 12",
		"0 1 2 3 4*2 5*2 6*2 10 11 12"},
	/* what is read elsewhere, or elsewhere as well */
	{"rrrrrrrrrr", 3, 7, -1, -1, -1, false, false, "", "0 1*2 3 4*2 6 7 8 9",
		"0 1 2 3 4 5 6 7 8 9"},
	{"rrrrrrrrrr", -1, -1, 3, -1, -1, false, false, "", "0 1*2 3 4*5 9", "0 1 2 3 4 5*4 9"},
	{"rrrrrrrrrr", -1, -1, -1, 3, -1, false, false, "", "0 1*2 3 4*5 9", "0 1 2 3 4 5*4 9"},
	/* what is said of one, its neighbours see */
	{"rrrrrrrrrr", -1, -1, -1, -1, 4, false, false, "", "0 1*2 3 4 5 6*3 9", "0 1 2 3 4 5 6 7*2 9"},
	{"rrrrrrrr", -1, -1, -1, -1, -1, true, false, "", "0 1*6 7", "0 1 2*5 7"},
	{"rrrrrrrr", -1, -1, -1, -1, -1, false, true, "", "0 1*6 7", "0 1 2*5 7"},
	/* layers that are recomputed by themselves, all at once, and some of them */
	{"rrrrrr", -1, -1, -1, -1, -1, false, false, "{'name':'net.0','recompute':true},"
		"{'name':'net.1','recompute':true},{'name':'net.2','recompute':true},{'name':'net.3',"
		"'recompute':true},{'name':'net.4','recompute':true},{'name':'net.5','recompute':true}",
		"0 1*4 5", "0 1 2*3 5"},
	{"rrrrrr", -1, -1, -1, -1, -1, false, false, "{'name':'net','recompute':true}", "0 1 2 3 4 5",
		"0 1 2 3 4 5"},
	{"rrrrrrrr", -1, -1, -1, -1, -1, false, false, "{'name':'net.0','recompute':true},"
		"{'name':'net.1','recompute':true},{'name':'net.2','recompute':true}", "0 1 2 3 4*3 7",
		"0 1 2 3 4 5*2 7"},
};

static void add_layer(const struct net *net, int layer, struct ap_str *ops, struct ap_str *params,
	struct ap_str *inputs)
{
	static const char *const names[] = {"ReLU", "Tanh", "Sigmoid"};
	const char *kind = names[strchr("rts", net->kinds[layer]) - "rts"];
	char weight[16] = "w";

	if (!net->shared)
		snprintf(weight, sizeof weight, "w%d", layer);
	if (!net->shared || layer == 0)
		ap_str_addf(params, ",{'name':'%s','shape':[8,8],'dtype':'float32'%s}", weight,
			layer == net->fused ? ",'comm_fusion':7" : "");
	ap_str_addf(ops, "{'name':'p%d','type':'MatMul','cell':'net.%d.inner','inputs':['y%d','%s'],"
		"'outputs':[{'name':'p%d'}]},", layer, layer, layer, weight, layer);
	ap_str_addf(ops, "{'name':'a%d','type':'%s','cell':'net.%d.inner','inputs':['p%d'],"
		"'outputs':[{'name':'a%d'}]},", layer, kind, layer, layer, layer);
	if (net->masked)
		ap_str_addf(inputs, ",{'name':'m%d','shape':[16,8],'dtype':'float32','batch_dim':0}", layer);
	ap_str_addf(ops, "{'name':'y%d','type':'Add','cell':'net.%d.inner','inputs':['a%d','%s%d'],"
		"'outputs':[{'name':'y%d'}]},", layer + 1, layer, layer, net->masked ? "m"
		: layer == net->by ? "y" : "a", net->masked || layer != net->by ? layer : net->far + 1,
		layer + 1);
}

static const struct ap_graph *load_net(const struct net *net)
{
	struct ap_str s, ops, params, inputs;
	int n = (int)strlen(net->kinds);
	char *text;

	ap_str_init(&s, ctx.arena);
	ap_str_init(&ops, ctx.arena);
	ap_str_init(&params, ctx.arena);
	ap_str_init(&inputs, ctx.arena);
	for (int i = 0; i < n; i++)
		add_layer(net, i, &ops, &params, &inputs);
	ap_str_addf(&s, "{'schema':'autopar-graph/1','name':'net','inputs':[{'name':'x','shape':[16,8],"
		"'dtype':'float32','batch_dim':0}%s],'parameters':[{'name':'b','shape':[8],'dtype':"
		"'float32'}%s],'cells':[%s],'operators':[{'name':'stem','type':'Add','inputs':['x','b'],"
		"'outputs':[{'name':'y0'}]},%s", inputs.s, params.s, net->cells, ops.s);
	ap_str_addf(&s, "{'name':'head','type':'Add','inputs':['y%d','y%d'],'outputs':[{'name':'z'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}],'outputs':['l'",
		n, net->head < 0 ? n : net->head + 1);
	if (net->output >= 0)
		ap_str_addf(&s, ",'y%d'", net->output + 1);
	ap_str_add(&s, "]}");
	text = ap_arena_strdup(ctx.arena, s.s);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return load_ok(text);
}

/* "0 1*6 7" */
static const char *words(const struct ap_layer_fold *fold)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint32_t k = 0; k < fold->nkept; k++) {
		ap_str_addf(&s, "%s%u", k ? " " : "", fold->of[k]);
		if (fold->count[k] > 1)
			ap_str_addf(&s, "*%u", fold->count[k]);
	}
	return s.s;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(layers_that_stay, AP_COUNT(nets))
{
	const struct ap_graph *g = load_net(&nets[_i]), *h;
	struct ap_layer_fold fold;

	h = ap_graph_fold(&ctx, g, 1, &fold);
	ck_assert_str_eq(words(&fold), nets[_i].one);
	ck_assert((h == g) == (fold.nkept == fold.nlayer));
	ck_assert_uint_eq(h->nnode, g->nnode - 3 * (fold.nlayer - fold.nkept));
	for (uint32_t k = 0; k < fold.nkept; k++)
		ck_assert_uint_eq(fold.before[k], AP_NONE);
	h = ap_graph_fold(&ctx, g, 2, &fold);
	ck_assert_str_eq(words(&fold), nets[_i].two);
	ck_assert_ptr_eq(ap_graph_fold(&ctx, h, 2, &fold), h);
}
END_TEST

START_TEST(behind_a_gap)
{
	const struct ap_graph *g = load_net(&nets[2]); /* 0 1 2 3 4 9 of 10 */
	struct ap_layer_fold fold;
	const struct ap_graph *h = ap_graph_fold(&ctx, g, 2, &fold);
	static const uint32_t by[] = {0, 1, 2, 3, 4, 3, 4, 3, 4, 5};

	ck_assert_uint_eq(fold.nlayer, 10);
	ck_assert_mem_eq(fold.by, by, sizeof by);
	ck_assert_uint_eq(fold.before[3], 1);
	ck_assert_uint_eq(fold.before[4], 2);
	ck_assert_uint_eq(fold.before[5], AP_NONE);
	/* y5 is the result of layer 4; layer 9 read y9 */
	ck_assert_str_eq(h->tensor[node_of(h, "p9")->in[0]].name, "y5");
	ck_assert_str_eq(h->tensor[node_of(h, "p4")->in[0]].name, "y4");
	ck_assert_str_eq(h->tensor[node_of(h, "p9")->in[1]].name, "w9");
	ck_assert_str_eq(h->tensor[node_of(h, "p9")->param].name, "w9");
	ck_assert_uint_eq(tensor_of(h, "y5")->nuse, 1);
	ck_assert_int_eq(g->parameters, 10 * 64 + 8);
	ck_assert_int_eq(h->parameters, 6 * 64 + 8);
	ck_assert_uint_eq(h->ntensor, g->ntensor - 4 * 4);
	ck_assert_str_eq(h->tensor[h->loss].name, "l");
	ck_assert(h->tensor[node_of(h, "p1")->in[1]].needs_grad && node_of(h, "p1")->backward);
	ck_assert_int_eq(h->batch, 16);
}
END_TEST

START_TEST(what_only_layers_have_that_are_left_out)
{
	const struct ap_graph *g = load_net(&nets[10]);
	struct ap_layer_fold fold;
	const struct ap_graph *h = ap_graph_fold(&ctx, g, 1, &fold);

	ck_assert_uint_eq(g->ninput, 9);
	ck_assert_uint_eq(h->ninput, 4); /* x, m0, m1, m7 */
	ck_assert_str_eq(h->tensor[h->input[3]].name, "m7");
	h = ap_graph_fold(&ctx, load_net(&nets[11]), 1, &fold);
	ck_assert_uint_eq(h->ncell, 3);
	ck_assert_str_eq(h->cell[2].name, "net.5");
	ck_assert_uint_eq(node_of(h, "a5")->in_cell, 2);
	ck_assert_uint_eq(node_of(h, "a5")->recompute_cell, 2);
}
END_TEST

/* A weight of all layers is charged to the first, and stays one. */
START_TEST(what_layers_share)
{
	const struct ap_graph *g = load_net(&nets[9]);
	struct ap_layer_fold fold;
	const struct ap_graph *h = ap_graph_fold(&ctx, g, 1, &fold);

	ck_assert_uint_eq(tensor_of(g, "w")->nuse, 8);
	ck_assert_uint_eq(tensor_of(h, "w")->nuse, 3);
	ck_assert_str_eq(h->node[tensor_of(h, "w")->owner.node].name, "p0");
	ck_assert_int_eq(h->parameters, g->parameters);
}
END_TEST

START_TEST(two_are_too_few)
{
	const struct net net = {.kinds = "rr", .by = -1, .head = -1, .output = -1, .fused = -1, .cells = ""};
	const struct ap_graph *g = load_net(&net);
	struct ap_layer_fold fold;

	ck_assert_ptr_eq(ap_graph_fold(&ctx, g, 1, &fold), g);
	ck_assert_uint_eq(fold.nkept, 2);
}
END_TEST

/* What a graph knows of its layers holds for copies with the same nodes, and for no others. */
START_TEST(layers_that_are_noted)
{
	const struct ap_graph *g = load_net(&nets[0]), *noted = ap_family_note(&ctx, g), *staged;
	struct ap_spot *spot = AP_NEW_N(ctx.arena, struct ap_spot, g->nnode);
	struct ap_family_chain found, known;
	struct ap_layer_fold fold;
	struct ap_node *node;

	ap_family_chain(&ctx, g, &found);
	ap_family_chain(&ctx, ap_graph_with_nodes(&ctx, noted, &node), &known);
	ck_assert_ptr_null(g->layers);
	ck_assert_ptr_eq(known.layer, noted->layers->layer);
	ck_assert_uint_eq(known.n, 8);
	ck_assert_str_eq(known.names, found.names);
	ck_assert_mem_eq(known.layer, found.layer, g->nnode * sizeof *found.layer);
	ap_family_chain(&ctx, ap_graph_fold(&ctx, noted, 1, &fold), &known);
	ck_assert_uint_eq(known.n, 3);
	for (ap_id i = 0; i < g->nnode; i++)
		spot[i].stage = spot[i].part = found.layer[i] >= 4 || (i > 0 && spot[i - 1].stage);
	ap_graph_staged(&ctx, noted, spot, &staged);
	ck_assert_uint_gt(staged->nnode, g->nnode);
	ap_family_chain(&ctx, staged, &known);
	ck_assert_uint_eq(known.n, 8);
	for (ap_id i = 0; i < staged->nnode; i++)
		if (staged->node[i].peer >= 0)
			ck_assert_int_eq(known.layer[i], -1);
}
END_TEST
