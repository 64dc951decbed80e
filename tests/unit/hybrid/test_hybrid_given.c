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
	h = parsed(&ctx, "layers=0,1*126,0,pp=16");
	ck_assert_uint_eq(h.layers.n, 128);
	for (uint32_t i = 0; i < 128; i++)
		ck_assert_int_eq(h.layers.count[i], i > 0 && i < 127);
	ck_assert_int_eq(h.pp, 16);
	h = parsed(&ctx, "offset=-1*2,1*2");
	ck_assert_uint_eq(h.layers.n, 4);
	ck_assert_int_eq(h.layers.count[1], -1);
	ck_assert_int_eq(h.layers.count[2], 1);
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
	{"pp=2,layers=4*", "layers=4*; cost, or a number for each stage, as 7,8*6,7, is expected"},
	{"pp=2,layers=4*0", "layers=4*0; cost, or a number for each stage"},
	{"pp=2,layers=*2", "layers=*2; cost, or a number for each stage"},
	{"pp=2,layers=1,4*99999999999", "layers=4*99999999999; cost, or a number for each stage"},
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

/* ---- spaces ---- */

static struct ap_hybrid_space space_of(struct ap_ctx *ctx, const char *text)
{
	struct ap_hybrid_space space;

	ck_assert_msg(ap_hybrid_space_parse(ctx, text, &space) == AP_OK, "%s: %s", text, messages(ctx));
	return space;
}

static const char *values_of(struct ap_ctx *ctx, const struct ap_hybrid_space *space, enum ap_hybrid_key key)
{
	return space->given[key] ? ap_choices_text(ctx->arena, &space->key[key], AP_RANGE_EVERY) : "open";
}

START_TEST(spaces)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid_space space = space_of(&ctx, "tp=1,2,4..8,cp=1,sp=0,true,cp_algo=ring,ulysses,mbs=auto,"
		"layers=7,8,8,7,pp=2,4,vocab_emb_dp=0");

	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_TP), "1,2,4..8");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_CP), "1");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_SP), "0,1");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_MBS), "auto");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_PP), "2,4");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_VOCAB), "0");
	ck_assert_str_eq(values_of(&ctx, &space, AP_HYBRID_DP), "open");
	ck_assert_uint_eq(space.key[AP_HYBRID_CP_ALGO].n, 2);
	ck_assert_int_eq(space.key[AP_HYBRID_CP_ALGO].v[0], AP_CP_RING);
	ck_assert_int_eq(space.key[AP_HYBRID_CP_ALGO].v[1], AP_CP_ALL_TO_ALL);
	ck_assert(space.one.tp == 1 && space.one.pp == 2 && space.one.mbs == 0 && space.one.layers.n == 4);
	ck_assert(space.one.vocab == AP_VOCAB_CUT && !space.any && !ap_hybrid_space_single(&space));
	ck_assert_uint_eq(ap_hybrid_space_count(&space), 0);
	space = space_of(&ctx, "auto");
	ck_assert_uint_eq(ap_hybrid_space_count(&space), 0);
	ck_assert(space.any && !ap_hybrid_space_single(&space) && !space.given[AP_HYBRID_TP]);
	space = space_of(&ctx, "tp=4..4,dp=2,2,sp=1");
	ck_assert(ap_hybrid_space_single(&space) && space.one.tp == 4 && space.one.dp == 2 && space.one.sp);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(hybrids_of_a_space)
{
	static const char *const texts[] = {
		"tp=1,pp=2,sp=0,cp_algo=ring,layers=3,4", "tp=1,pp=2,sp=0,cp_algo=all-to-all,layers=3,4",
		"tp=1,pp=2,sp=1,cp_algo=ring,layers=3,4", "tp=1,pp=2,sp=1,cp_algo=all-to-all,layers=3,4",
		"tp=4,pp=2,sp=0,cp_algo=ring,layers=3,4", "tp=4,pp=2,sp=0,cp_algo=all-to-all,layers=3,4",
		"tp=4,pp=2,sp=1,cp_algo=ring,layers=3,4", "tp=4,pp=2,sp=1,cp_algo=all-to-all,layers=3,4"};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_hybrid_space space = space_of(&ctx, "cp_algo=a2a,ring,layers=3,4,sp=0,1,tp=4,1,pp=2");

	ck_assert_uint_eq(ap_hybrid_space_count(&space), AP_COUNT(texts));
	for (size_t i = 0; i < AP_COUNT(texts); i++)
		ck_assert_str_eq(ap_hybrid_space_at(ctx.arena, &space, i), texts[i]);
	space = space_of(&ctx, "pp=2,offset=-1,1");
	ck_assert_str_eq(ap_hybrid_space_at(ctx.arena, &space, 0), "pp=2,offset=-1,1");
	space = space_of(&ctx, "layers=cost,vocab_emb_dp=1");
	ck_assert_str_eq(ap_hybrid_space_at(ctx.arena, &space, 0), "vocab_emb_dp=1,layers=cost");
	space = space_of(&ctx, "tp=1..64,dp=1..64");
	ck_assert_uint_eq(ap_hybrid_space_count(&space), 4096);
	ck_assert_str_eq(ap_hybrid_space_at(ctx.arena, &space, 4095), "dp=64,tp=64");
	space = space_of(&ctx, "tp=1..64,dp=1..65,pp=1,2");
	ck_assert_uint_eq(ap_hybrid_space_count(&space), 4097);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(spaces_that_are_refused)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"tp=4..2", "tp=4..2; 4..2 goes down"}, {"tp=1..5000", "tp=1..5000; these are more than 4096 values"},
		{"tp=1,0", "tp=1,0; a number from 1 to 1048576 is expected"}, {"tp=auto,1", "tp=auto,1; a number"},
		{"tp=..", "tp=..; a number"}, {"sp=0,2", "sp=0,2; 0 or 1"}, {"cp_algo=ring,star", "cp_algo=ring,star; all-"},
		{"tp=1,auto", "\"auto\"; a list of KEY"}, {"tp=1,,2", "\"\"; a list of KEY"}, {"tp=1,2,", "\"\"; a list"},
		{"auto,tp=1", "\"auto\"; a list of KEY"}, {"tp=1,2,tp=4", "tp is given twice"},
		{"layers=auto", "layers=auto; cost, or a number"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_hybrid_space space;

		ck_assert_msg(ap_hybrid_space_parse(&ctx, rows[i].text, &space) == AP_USAGE, "%s", rows[i].text);
		ck_assert_msg(strstr(messages(&ctx), rows[i].why), "%s: %s", rows[i].text, messages(&ctx));
		ctx_destroy(&ctx);
	}
}
END_TEST

static const char *const number_words[] = {"dp", "tp", "pp", "cp", "ep", "etp", "vpp", NULL, "mbs", "mbn"};

/* Random texts, from the hybrid that they mean: single values give it; with more values of one key it is the
 * space's first, and no longer a single hybrid. */
START_TEST(texts_of_hybrids)
{
	enum { VALUES = 9 };
	unsigned seed = 11;

	for (int round = 0; round < 500; round++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_hybrid h = {.layers.kind = AP_LAYERS_EVEN}, read;
		struct ap_hybrid_space space;
		struct ap_str text, more;
		bool several = false;

		ap_str_init(&text, ctx.arena);
		ap_str_init(&more, ctx.arena);
		for (int k = 0; k < AP_HYBRID_KEYS; k++) {
			int64_t v = k > AP_HYBRID_MICRO_BATCHES || k == AP_HYBRID_SP ? rand_r(&seed) % 2
				: 1 + rand_r(&seed) % VALUES;
			const char *word = k == AP_HYBRID_SP ? "sp" : k == AP_HYBRID_VOCAB ? "vocab_emb_dp"
				: k == AP_HYBRID_PP_SCATTER ? "pp_scatter"
				: k == AP_HYBRID_CP_ALGO ? "cp_algo" : number_words[k];
			bool again = rand_r(&seed) % 4 == 0 && v != 1;

			if (rand_r(&seed) % 2 && (k || !text.len))
				continue;
			v += k == AP_HYBRID_CP_ALGO ? AP_CP_ALL_GATHER : 0;
			ap_hybrid_put(&h, (enum ap_hybrid_key)k, v);
			ap_str_addf(&text, "%s%s=", text.len ? "," : "", word);
			ap_str_addf(&more, "%s%s=", more.len ? "," : "", word);
			if (k == AP_HYBRID_CP_ALGO) {
				ap_str_add(&text, ap_cp_algo_name((enum ap_cp_algo)v));
				ap_str_add(&more, ap_cp_algo_name((enum ap_cp_algo)v));
				continue;
			}
			ap_str_addf(&text, "%" PRId64, v);
			ap_str_addf(&more, again && number_words[k < 10 ? k : AP_HYBRID_SP] ? "%" PRId64 ",11..13"
				: "%" PRId64, v);
			several |= again && k < 10 && number_words[k];
		}
		if (!text.len) {
			ctx_destroy(&ctx);
			continue;
		}
		ck_assert_msg(ap_hybrid_parse(&ctx, text.s, &read) == AP_OK, "%s: %s", text.s, messages(&ctx));
		space = space_of(&ctx, text.s);
		ck_assert_msg(ap_hybrid_space_single(&space), "%s", text.s);
		ck_assert_msg(!memcmp(&read, &h, sizeof h) && !memcmp(&space.one, &h, sizeof h), "%s", text.s);
		space = space_of(&ctx, more.s);
		ck_assert_msg(!memcmp(&space.one, &h, sizeof h), "%s", more.s);
		ck_assert_msg(ap_hybrid_space_single(&space) == !several, "%s", more.s);
		ck_assert(!several == (ap_hybrid_space_count(&space) == 1));
		if (ap_hybrid_space_count(&space) <= AP_CHOICES_MOST) {
			const char *first = ap_hybrid_space_at(ctx.arena, &space, 0);

			ck_assert_msg(ap_hybrid_parse(&ctx, first, &read) == AP_OK && !memcmp(&read, &h, sizeof h), "%s",
				first);
		}
		ck_assert_int_eq(ap_hybrid_parse(&ctx, more.s, &read), several ? AP_USAGE : AP_OK);
		ctx_destroy(&ctx);
	}
}
END_TEST
