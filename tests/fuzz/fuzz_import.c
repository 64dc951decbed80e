/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importer on any bytes: it ends with a graph that is JSON, and that loads or is refused with a message,
 * or with a message of its own. What else happens is a fault, and aborts. Built for libFuzzer (-Dfuzz=true),
 * and with replay.c, which goes over a corpus.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "import/import.h"

enum { BUDGET_BYTES = 256 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void leave(void *user, size_t wanted)
{
	(void)wanted;
	longjmp(*(jmp_buf *)user, 1);
}

static void put(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_graph(struct ap_ctx *ctx, const struct ap_import *g)
{
	static const struct ap_graph_params params = {.unknown_batch_parallel = true};
	const struct ap_graph *graph;
	struct ap_json *doc;
	struct ap_str json;

	ap_str_init(&json, ctx->arena);
	ap_import_write(ctx, g, put, &json);
	require(ap_json_parse(ctx, "graph.json", json.s, json.len, 0, &doc) == AP_OK);
	if (ap_graph_load(ctx, doc, NULL, &params, &graph) != AP_OK)
		require(ap_diag_count(ctx->diag, AP_ERROR) > 0);
}

static void import_once(const char *text, size_t len, const struct ap_import_params *params)
{
	static jmp_buf out_of_memory;
	static struct ap_ctx ctx;
	const struct ap_import *g;
	enum ap_status st;

	ctx = (struct ap_ctx){.jobs = 1};
	ctx.arena = ap_arena_create(BUDGET_BYTES, leave, &out_of_memory);
	ctx.scratch = ap_arena_create(BUDGET_BYTES, leave, &out_of_memory);
	if (!setjmp(out_of_memory)) {
		ctx.diag = ap_diag_create(ctx.arena, false);
		st = ap_import_ir(&ctx, "net.ir", text, len, params, &g);
		if (st == AP_OK)
			check_graph(&ctx, g);
		else
			require(ap_diag_count(ctx.diag, AP_ERROR) > 0 && ap_diag_status(ctx.diag) == st);
	}
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ap_import_params params[] = {
		{.micro_batches = 1},
		{.micro_batches = 2, .partial = true, .searched = true, .unknown_batch_parallel = true},
	};

	for (size_t i = 0; i < sizeof params / sizeof *params; i++)
		import_once((const char *)data, size, &params[i]);
	return 0;
}
