/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrids as they are given: keys, devices, micro-batches; and the grids that a search is held against. */
#include "hybrid/hybrid.h"
#include "unit.h"

static struct ap_hybrid parsed(struct ap_ctx *ctx, const char *text)
{
	struct ap_hybrid h;

	ck_assert_msg(ap_hybrid_parse(ctx, text, &h) == AP_OK, "%s", messages(ctx));
	return h;
}

START_TEST(keys_and_their_other_names)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h = parsed(&ctx, "dp=8,tp=4,pp=2,cp=1,ep=4,vpp=2,sp=1,mbs=3"), again;

	ck_assert_int_eq(h.dp, 8);
	ck_assert_int_eq(h.tp, 4);
	ck_assert_int_eq(h.pp, 2);
	ck_assert_int_eq(h.cp, 1);
	ck_assert_int_eq(h.ep, 4);
	ck_assert_int_eq(h.vpp, 2);
	ck_assert_int_eq(h.mbs, 3);
	ck_assert(h.sp && h.vocab == AP_VOCAB_AUTO);
	again = parsed(&ctx, "use_seq_parallel=True,pp_interleave_num=2,data_parallel=8,model_parallel=4,"
		"pipeline_stage=2,context_parallel=1,expert_parallel=4,batch_size=3");
	ck_assert_int_eq(memcmp(&h, &again, sizeof h), 0);
	ck_assert_int_eq(parsed(&ctx, "vocab_emb_dp=True").vocab, AP_VOCAB_WHOLE);
	ck_assert_int_eq(parsed(&ctx, "vocab_emb_dp=0").vocab, AP_VOCAB_CUT);
	ck_assert_int_eq(parsed(&ctx, "micro_batch_num=7").micro_batches, 7);
	ck_assert_int_eq(parsed(&ctx, "dp=2").cp_algo, AP_CP_USUAL);
	ck_assert_int_eq(parsed(&ctx, "cp_algo=all-gather").cp_algo, AP_CP_ALL_GATHER);
	ck_assert_int_eq(parsed(&ctx, "cp_comm_type=p2p,cp=2").cp_algo, AP_CP_RING);
	ck_assert_int_eq(parsed(&ctx, "context_parallel_algo=ulysses_cp_algo").cp_algo, AP_CP_ALL_TO_ALL);
	ck_assert(parsed(&ctx, "pp_scatter=1").pp_scatter && !parsed(&ctx, "pp_scatter=0,sp=1").pp_scatter);
	ctx_destroy(&ctx);
}
END_TEST

/* A list goes up to the next key; without one each stage has as many layers. */
START_TEST(layers_of_the_stages)
{
	static const int64_t counts[] = {7, 8, 0, 7}, more[] = {-1, 1};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h = parsed(&ctx, "layers=7,8,0,7,dp=8,tp=4");

	ck_assert_int_eq(h.layers.kind, AP_LAYERS_COUNTED);
	ck_assert_uint_eq(h.layers.n, 4);
	ck_assert_int_eq(memcmp(h.layers.count, counts, sizeof counts), 0);
	ck_assert_int_eq(h.dp * h.tp, 32);
	h = parsed(&ctx, "pp=2,num_layer_list=3");
	ck_assert_uint_eq(h.layers.n, 1);
	ck_assert_int_eq(h.layers.count[0], 3);
	h = parsed(&ctx, "pp=2,offset=-1,1");
	ck_assert_int_eq(h.layers.kind, AP_LAYERS_OFFSET);
	ck_assert_uint_eq(h.layers.n, 2);
	ck_assert_int_eq(memcmp(h.layers.count, more, sizeof more), 0);
	ck_assert_int_eq(parsed(&ctx, "layers=cost,pp=2").layers.kind, AP_LAYERS_ANYHOW);
	ck_assert_int_eq(parsed(&ctx, "pp=2").layers.kind, AP_LAYERS_EVEN);
	ctx_destroy(&ctx);
}
END_TEST

static const struct {
	const char *text, *says;
} bad[] = {
	{"pp=2,layers=", "layers=; cost, or a number for each stage"},
	{"pp=2,layers=4,4,", "layers=; cost, or a number for each stage"},
	{"pp=2,layers=4,-4", "layers=-4; cost, or a number"},
	{"pp=2,layers=4,cost", "layers=cost; cost, or a number"},
	{"pp=2,offset=1,x,dp=2", "offset=x; a number for each stage"},
	{"pp=2,layers=4,4,layers=4,4", "layers is given twice"},
	{"pp=2,layers=4,4,offset=0", "layers and offset contradict each other"},
	{"", "a list of KEY=NUMBER is expected"},
	{"dp", "\"dp\"; a list of KEY=NUMBER"},
	{"dp=8,", "\"\"; a list of KEY=NUMBER"},
	{"dp=8,tq=4", "\"tq\" is no key; did you mean tp?"},
	{"model_paralel=4", "did you mean tp?"},
	{"width=4", "\"width\" is no key; dp, tp, pp,"},
	{"dp=0", "dp=0; a number from 1 to 1048576 is expected"},
	{"tp=-4", "tp=-4; a number from 1"},
	{"tp=4.5", "tp=4.5; a number from 1"},
	{"tp=", "tp=; a number from 1"},
	{"sp=2", "sp=2; 0 or 1 is expected"},
	{"cp_algo=rings", "cp_algo=rings; all-gather, ring or all-to-all is expected"},
	{"dp=8,dp=8", "dp is given twice"},
	{"tp=8,model_parallel=8", "tp is given twice, the second time as model_parallel"},
};

START_LOOP_TEST(what_cannot_be_read, AP_COUNT(bad))
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h;

	ck_assert_int_eq(ap_hybrid_parse(&ctx, bad[_i].text, &h), AP_USAGE);
	ck_contains(messages(&ctx), bad[_i].says);
	ck_contains(messages(&ctx), "--hybrid");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(devices_are_all_used)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h = parsed(&ctx, "tp=4,pp=2");

	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_OK);
	ck_assert_int_eq(h.dp, 8);
	ck_assert_int_eq(h.cp * h.ep * h.vpp, 1);
	h = parsed(&ctx, "dp=4,tp=4,pp=2");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "is not the number of devices, 64; dp=8 is what they leave");
	h = parsed(&ctx, "tp=3");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "tp=3 x cp=1 x pp=1 does not divide the 64 devices");
	h = parsed(&ctx, "tp=8,ep=3");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "ep=3; a divisor of dp=8 is expected");
	ck_contains(messages(&ctx), "or, for whole experts, a divisor of dp x cp x tp=64 that cp x tp=8 divides");
	h = parsed(&ctx, "tp=8,ep=3,etp=8");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	h = parsed(&ctx, "tp=8,ep=4,etp=1");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "ep=4 with etp=1; a divisor of dp x cp x tp=64 that cp x tp=8 divides");
	h = parsed(&ctx, "tp=8,ep=8,etp=2");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "etp=2; 1, for whole experts, or tp=8 is expected");
	h = parsed(&ctx, "vpp=2");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "vpp=2 without a pipeline");
	h = parsed(&ctx, "tp=8,layers=32");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_USAGE);
	ck_contains(messages(&ctx), "layers without a pipeline; pp above 1 is expected");
	h = parsed(&ctx, "tp=8,layers=cost");
	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_OK);
	ctx_destroy(&ctx);
}
END_TEST

/* Experts are cut by tp while ep divides dp, or dp x cp; else whole, where they can be dealt so. */
START_LOOP_TEST(experts_of_the_ranks, 8)
{
	static const struct {
		const char *text; /* of 64 devices */
		int64_t etp, stride;
	} rows[] = {
		{"tp=4,ep=8", 0, 4}, {"tp=4,ep=8,etp=4", 4, 4}, {"tp=4,ep=8,etp=1", 1, 1},
		{"tp=8,ep=16", 1, 1}, {"tp=8,ep=64,pp=1", 1, 1}, {"tp=2,cp=4,ep=8", 0, 2},
		{"tp=2,cp=4,ep=2", 0, 8}, {"tp=2,cp=4,ep=64", 1, 1},
	};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h = parsed(&ctx, rows[_i].text);

	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_OK);
	ck_assert_int_eq(h.etp, rows[_i].etp);
	ck_assert_int_eq(ap_hybrid_expert_stride(&h), rows[_i].stride);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(micro_batches_follow_from_samples)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid h = parsed(&ctx, "tp=8,mbs=2");
	int64_t n = 1;

	ck_assert_int_eq(ap_hybrid_fill(&ctx, 64, &h), AP_OK);
	ck_assert_int_eq(ap_hybrid_step(&ctx, &h, 512, &n), AP_OK);
	ck_assert_int_eq(n, 32);
	h.mbs = 0;
	n = 5;
	ck_assert_int_eq(ap_hybrid_step(&ctx, &h, 512, &n), AP_OK);
	ck_assert_int_eq(n, 5);
	h.mbs = 3;
	ck_assert_int_eq(ap_hybrid_step(&ctx, &h, 512, &n), AP_USAGE);
	ck_contains(messages(&ctx), "dp=8 x mbs=3 does not divide the batch of 512");
	h.mbs = 2;
	h.micro_batches = 16;
	ck_assert_int_eq(ap_hybrid_step(&ctx, &h, 512, &n), AP_USAGE);
	ck_contains(messages(&ctx), "mbn=16, but a batch of 512 is 32 micro-batches");
	ctx_destroy(&ctx);
}
END_TEST

static void note_grid(void *user, const struct ap_hybrid *h, const char *name)
{
	ap_str_addf(user, "%s(%" PRId64 ") ", name, h->dp * h->tp * h->pp * h->cp * h->ep * h->vpp);
}

START_TEST(grids_of_a_stage)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_hybrid_grids(12, note_grid, &s);
	ck_assert_str_eq(s.s, "dp=12 tp=1(12) dp=6 tp=2(12) dp=4 tp=3(12) dp=3 tp=4(12) dp=2 tp=6(12) "
		"dp=1 tp=12(12) dp=6 tp=1 cp=2(12) dp=3 tp=2 cp=2(12) dp=2 tp=3 cp=2(12) "
		"dp=1 tp=6 cp=2(12) dp=4 tp=1 cp=3(12) dp=2 tp=2 cp=3(12) dp=1 tp=4 cp=3(12) "
		"dp=3 tp=1 cp=4(12) dp=1 tp=3 cp=4(12) dp=2 tp=1 cp=6(12) dp=1 tp=2 cp=6(12) ");
	ap_str_init(&s, ctx.arena);
	ap_hybrid_grids(256, note_grid, &s);
	ck_contains(s.s, "dp=4 tp=64(256) ");
	ck_assert(!strstr(s.s, "tp=128"));
	ck_contains(s.s, "dp=32 tp=1 cp=8(256) ");
	ck_assert(!strstr(s.s, "cp=16"));
	ctx_destroy(&ctx);
}
END_TEST
