/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of pictures, wherever they come from. */
#include "draw/picture.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_VECTORS = 3 }; /* of the operands that are shown */

void ap_pic_finish(struct ap_pic_builder *b, const char *title, const char *facts,
	struct ap_picture *out)
{
	*out = (struct ap_picture){
		.title = title,
		.facts = facts,
		.nnode = (uint32_t)b->nodes.n,
		.node = b->nodes.v,
		.nedge = (uint32_t)b->edges.n,
		.edge = b->edges.v,
	};
	while (out->noperator < out->nnode && out->node[out->noperator].kind == AP_PIC_OPERATOR)
		out->noperator++;
}

uint32_t ap_pic_add_input(struct ap_pic_builder *b, enum ap_pic_kind kind, const char *tensor)
{
	struct ap_pic_node node = {.name = tensor, .kind = kind, .cell = "", .cut = "", .slice = "",
		.comms = "", .key = ""};

	node.type = kind == AP_PIC_INPUT ? "Input" : "Shared";
	AP_PUSH(b->ctx->arena, b->nodes, node);
	return (uint32_t)b->nodes.n - 1;
}

static enum ap_pic_class class_of(const struct ap_pic_cuts *c)
{
	bool cut_batch = false, cut_model = false;

	for (int i = 0; i < c->nfactor; i++) {
		cut_batch |= c->factor[i].parts > 1 && c->factor[i].batch;
		cut_model |= c->factor[i].parts > 1 && !c->factor[i].batch;
	}
	if (cut_batch)
		return cut_model ? AP_PIC_BOTH : AP_PIC_BATCH;
	return cut_model ? AP_PIC_MODEL : AP_PIC_WHOLE;
}

static void add_vector(struct ap_str *text, const struct ap_pic_vector *v)
{
	for (size_t d = 0; d < v->rank; d++)
		ap_str_addf(text, "%s%" PRId64, d ? "x" : "", v->v[d]);
}

/* Over how many parts the first result is summed up; 1: it is not. A file may hold anything. */
static int64_t partial_over(const struct ap_pic_cuts *c)
{
	int64_t all = 1, shown;
	bool ok = ap_product(c->out.v, c->out.rank, &shown) && shown > 0;

	for (int i = 0; ok && i < c->nfactor; i++)
		ok = ap_mul(all, c->factor[i].parts, &all);
	return ok && !(all % shown) ? all / shown : 1;
}

/* "8x1, 1x4 to 8x4, partial over 2" */
static const char *cut_text(struct ap_ctx *ctx, const struct ap_pic_cuts *c)
{
	int64_t partial = partial_over(c);
	struct ap_str text;
	uint32_t shown = 0;

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < c->nin && shown < MOST_VECTORS; i++)
		if (c->in[i].rank) {
			ap_str_add(&text, shown++ ? ", " : "");
			add_vector(&text, &c->in[i]);
		}
	if (text.len && c->out.rank)
		ap_str_add(&text, " to ");
	add_vector(&text, &c->out);
	if (partial > 1)
		ap_str_addf(&text, "%spartial over %" PRId64, text.len ? ", " : "", partial);
	return text.s;
}

static bool same_group(const struct ap_pic_comm *a, const struct ap_pic_comm *b)
{
	return !strcmp(a->phase, b->phase) && !strcmp(a->kind, b->kind) && a->ranks == b->ranks;
}

/* Bytes of this collective and of those of its kind after it; -1 when it is not the first. */
static int64_t bytes_of_kind(const struct ap_pic_cuts *c, uint32_t i)
{
	int64_t bytes = c->comm[i].bytes;

	for (uint32_t k = 0; k < i; k++)
		if (same_group(&c->comm[k], &c->comm[i]))
			return -1;
	for (uint32_t k = i + 1; k < c->ncomm; k++)
		if (same_group(&c->comm[k], &c->comm[i]) && !ap_add(bytes, c->comm[k].bytes, &bytes))
			return INT64_MAX;
	return bytes;
}

/* Collectives of one kind over groups of one size are shown as one. */
static const char *comms_text(struct ap_ctx *ctx, const struct ap_pic_cuts *c)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < c->ncomm; i++) {
		const struct ap_pic_comm *comm = &c->comm[i];
		bool forward = !strcmp(comm->phase, "forward");
		int64_t bytes = bytes_of_kind(c, i);

		if (bytes >= 0)
			ap_str_addf(&text, "%s%s%s%s of %" PRId64 ", %s", text.len ? "\n" : "",
				forward ? "" : comm->phase, forward ? "" : " ", comm->kind,
				comm->ranks, ap_format_bytes(bytes, buf));
	}
	return text.s;
}

static const char *slice_text(struct ap_ctx *ctx, const struct ap_pic_cuts *c)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	if (c->nslice && c->slice[0].rank) {
		ap_str_add(&text, "slice ");
		add_vector(&text, &c->slice[0]);
	}
	return text.s;
}

static const char *key_of(struct ap_ctx *ctx, const char *type, const char *part,
	const struct ap_pic_cuts *c)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, type);
	for (int i = 0; i < c->nfactor; i++)
		ap_str_addf(&text, " %" PRId64 "/%" PRId64 "/%" PRId64, c->factor[i].size,
			c->factor[i].parts, c->factor[i].stride);
	for (uint32_t i = 0; i < c->nin; i++) {
		ap_str_addc(&text, ',');
		add_vector(&text, &c->in[i]);
	}
	for (uint32_t i = 0; i < c->nslice; i++) {
		ap_str_addc(&text, ';');
		add_vector(&text, &c->slice[i]);
	}
	for (uint32_t i = 0; i < c->ncomm; i++)
		ap_str_addf(&text, "|%s %s %" PRId64 " %" PRId64, c->comm[i].phase, c->comm[i].kind,
			c->comm[i].ranks, c->comm[i].bytes);
	if (part)
		ap_str_addf(&text, "@%s", part); /* no loop leads through several stages */
	return text.s;
}

void ap_pic_set_cuts(struct ap_ctx *ctx, struct ap_pic_node *node, const struct ap_pic_cuts *cuts)
{
	node->cls = class_of(cuts);
	node->cut = cut_text(ctx, cuts);
	node->slice = slice_text(ctx, cuts);
	node->comms = comms_text(ctx, cuts);
	node->ncomm = cuts->ncomm;
	node->key = key_of(ctx, node->type, node->part, cuts);
}

const char *ap_pic_moves(struct ap_ctx *ctx, size_t n, const char *const *kind, int64_t bytes,
	double time_s)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(kind[i - 1], kind[i]) != 0)
			ap_str_addf(&text, "%s%s", i ? "+" : "", kind[i]);
	if (bytes > 0)
		ap_str_addf(&text, " %s", ap_format_bytes(bytes, buf));
	if (time_s > 0)
		ap_str_addf(&text, " %s", ap_format_seconds(time_s, buf));
	return text.s;
}

const char *ap_pic_title(struct ap_ctx *ctx, const char *graph, int64_t devices, const char *chip,
	double step_time_s)
{
	char buf[32];

	return ap_arena_printf(ctx->arena, "%s on %" PRId64 " x %s: %s a step", graph, devices,
		chip, ap_format_seconds(step_time_s, buf));
}

const char *ap_pic_part(struct ap_ctx *ctx, int64_t nstage, int64_t nsegment, int64_t stage,
	int64_t segment)
{
	if (nstage <= 1)
		return NULL;
	if (nsegment <= 1)
		return ap_arena_printf(ctx->arena, "stage %" PRId64, stage);
	return ap_arena_printf(ctx->arena, "stage %" PRId64 ", segment %" PRId64, stage, segment);
}

static void add_seconds(struct ap_str *text, const char *what, double s)
{
	char buf[32];

	ap_str_addf(text, "%s%s", what, ap_format_seconds(s, buf));
}

const char *ap_pic_facts_text(struct ap_ctx *ctx, const struct ap_pic_facts *f)
{
	char used[32], capacity[32];
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	add_seconds(&text, "step ", f->step_time_s);
	add_seconds(&text, ": kernels ", f->compute_s);
	add_seconds(&text, ", communication ", f->communication_s);
	add_seconds(&text, ", of which not hidden ", f->exposed_communication_s);
	ap_str_addf(&text, "\nmemory %s of %s a device", ap_format_bytes(f->memory_bytes, used),
		ap_format_bytes(f->capacity_bytes, capacity));
	ap_str_addf(&text, "\n%" PRId64 " device%s in %" PRId64 " server%s", f->devices,
		f->devices > 1 ? "s" : "", f->servers, f->servers > 1 ? "s" : "");
	if (f->stages > 1)
		ap_str_addf(&text, ", %" PRId64 " pipeline stages, %s, %" PRId64 " micro-batch%s",
			f->stages, f->scheduler, f->micro_batches, f->micro_batches > 1 ? "es" : "");
	if (f->batch > 0)
		ap_str_addf(&text, ", batch %" PRId64 ", %.1f samples/s", f->batch,
			f->samples_per_s);
	ap_str_addf(&text, "\n%s: %s", f->mode, f->status);
	if (f->gap > 0)
		ap_str_addf(&text, ", at most %.2f%% from the best", 100 * f->gap);
	return text.s;
}
