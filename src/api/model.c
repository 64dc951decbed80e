/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/work.h"
#include "model/families.h"
#include "model/hf.h"
#include "model/launched.h"
#include "route/route.h"
#include "shard/step.h"

#define SUFFIX ".json"

static const char too_large[] = "these dimensions, with as many samples, make tensors of more than 2^57 "
	"bytes in all, each counted once more for every reader";

/* ---- graphs from dimensions ---- */

static const struct option { /* a setting that gives a dimension */
	enum ap_setting_id id;
	uint32_t bit; /* of ap_model_family.takes; 0: all families read it */
	size_t offset; /* in struct ap_model_params */
} options[] = {
#define OPTION(setting, bit, field) {AP_SET_##setting, bit, offsetof(struct ap_model_params, field)},
	OPTION(model_name, 0, name)
	OPTION(batch, 0, batch)
	OPTION(layers, AP_MODEL_LAYERS, layers)
	OPTION(hidden, AP_MODEL_HIDDEN, hidden)
	OPTION(heads, AP_MODEL_HEADS, heads)
	OPTION(kv_heads, AP_MODEL_KV_HEADS, kv_heads)
	OPTION(head_size, AP_MODEL_HEAD_SIZE, head_size)
	OPTION(inner, AP_MODEL_INNER, inner)
	OPTION(sequence, AP_MODEL_SEQUENCE, sequence)
	OPTION(vocabulary, AP_MODEL_VOCABULARY, vocabulary)
	OPTION(classes, AP_MODEL_CLASSES, classes)
	OPTION(experts, AP_MODEL_EXPERTS, experts)
	OPTION(active, AP_MODEL_ACTIVE, active)
	OPTION(capacity, AP_MODEL_CAPACITY, capacity)
	OPTION(attention, AP_MODEL_ATTENTION, flash)
	OPTION(activation, AP_MODEL_ACTIVATION, activation)
	OPTION(dtype, AP_MODEL_DTYPE, dtype)
	OPTION(kernels, AP_MODEL_KERNELS, fused)
	OPTION(loss, AP_MODEL_LOSS, loss)
	OPTION(dropout, AP_MODEL_DROPOUT, dropout)
#undef OPTION
};

static const struct option *option_of(enum ap_setting_id id)
{
	for (size_t i = 0; i < AP_COUNT(options); i++)
		if (options[i].id == id)
			return &options[i];
	return NULL;
}

static bool reads(const struct ap_model_family *f, const struct option *o)
{
	return !o->bit || (f->takes & o->bit);
}

/* Puts a setting that was given into the parameters. */
static void assign(const struct ap_settings *set, const struct option *o, struct ap_model_params *p)
{
	const struct ap_setting_row *row = ap_setting_at(o->id);
	const void *from = (const char *)set + row->offset;
	void *into = (char *)p + o->offset;
	int choice = -1;

	if (row->type == AP_SET_CHOICE)
		memcpy(&choice, from, sizeof choice);
	switch (row->type) {
	case AP_SET_INT:
		memcpy(into, from, sizeof(int64_t));
		break;
	case AP_SET_NUM:
		memcpy(into, from, sizeof(double));
		break;
	case AP_SET_TEXT:
		memcpy(into, from, sizeof(const char *));
		break;
	default:
		if (o->bit == AP_MODEL_ATTENTION)
			p->flash = choice == AP_ATTENTION_FLASH;
		else if (o->bit == AP_MODEL_KERNELS)
			p->fused = choice == AP_KERNELS_FUSED;
		else if (o->bit == AP_MODEL_ACTIVATION)
			p->activation = (enum ap_model_activation)choice;
		else if (o->bit == AP_MODEL_LOSS)
			p->loss = (enum ap_model_loss)choice;
		else
			p->dtype = ap_dtype_find(row->choices((size_t)choice));
	}
}

static enum ap_status no_family(struct ap_ctx *ctx, const char *name)
{
	const struct ap_model_family *f;
	struct ap_str names;

	ap_str_init(&names, ctx->arena);
	for (size_t i = 0; (f = ap_model_family_at(i)); i++)
		ap_str_addf(&names, "%s%s", i ? ", " : "", f->name);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"there is no family of networks \"%s\"; expected one of %s",
		ap_diag_name(ctx->diag, name), names.s);
}

/* Reports every setting that is given, but that the family does not read. */
static enum ap_status check_read(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_model_family *f)
{
	struct ap_str names;

	ap_str_init(&names, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(options); i++)
		if (reads(f, &options[i]))
			ap_str_addf(&names, "%s%s", names.len ? ", " : "",
				ap_option_spelling(ctx->arena, "--", ap_setting_at(options[i].id)));
	for (size_t i = 0; i < AP_COUNT(options); i++)
		if (!reads(f, &options[i]) && ap_setting_given(set, options[i].id))
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: the family %s does not read it; it reads %s",
				set->name[options[i].id], f->name, names.s);
	return ap_diag_status(ctx->diag);
}

static enum ap_status settle(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_model_family *f, struct ap_model_params *p)
{
	enum { BATCH_MOST = 1 << 28 };
	const char *why, *standard = NULL;
	uint32_t bit = 0;

	AP_TRY(check_read(ctx, set, f));
	for (size_t i = 0; i < AP_COUNT(options); i++)
		if (ap_setting_given(set, options[i].id))
			assign(set, &options[i], p);
	if (p->batch > BATCH_MOST)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: expected at most %d",
			ap_setting_said(ctx, set, AP_SET_batch), BATCH_MOST);
	if ((f->takes & AP_MODEL_DROPOUT) && p->dropout >= 1)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: drops all that is computed; expected less than 1",
			ap_setting_said(ctx, set, AP_SET_dropout));
	if ((f->takes & AP_MODEL_CAPACITY) && p->capacity <= 0 && !p->fused)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: leaves experts no places; expected more than 0, or --kernels fused, whose "
			"experts take all tokens",
			ap_setting_said(ctx, set, AP_SET_capacity));
	why = ap_model_refuses(f, p, &bit);
	if (why && !bit)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", f->name, why);
	for (size_t i = 0; i < AP_COUNT(options) && why; i++)
		if (options[i].bit == bit && ap_setting_given(set, options[i].id))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s",
				ap_setting_said(ctx, set, options[i].id), why);
		else if (options[i].bit == bit &&
			ap_model_reads(ctx->arena, f->name, options[i].id, &standard))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s %s, the standard of the family %s: %s",
				ap_option_spelling(ctx->arena, "--", ap_setting_at(options[i].id)),
				standard ? standard : "", f->name, why);
	return AP_OK;
}

/* What a graph has and computes, as text or JSON. */
static enum ap_status tell(struct ap_writing *to, const char *path, const struct ap_graph *g)
{
	const struct ap_graph_work work = ap_graph_work(g);
	double samples = (double)(g->batch ? g->batch : 1), each = work.products_flop / samples;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, to->ctx->arena);
	if (to->set->json) {
		ap_jw_str_init(&w, &text, 1);
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "schema", "autopar-network/1");
		ap_jw_kstr(&w, "file", ap_file_base(path));
		ap_jw_kstr(&w, "name", g->name);
		ap_jw_kint(&w, "operators", g->nnode);
		ap_jw_kint(&w, "parameters", g->parameters);
		ap_jw_kint(&w, "trained_parameters", work.trained);
		ap_jw_kint(&w, "samples", g->batch);
		ap_jw_kint(&w, "tokens_per_sample", work.tokens);
		ap_jw_knum(&w, "forward_flop_per_sample", each);
		if (work.tokens)
			ap_jw_knum(&w, "forward_flop_per_token", each / (double)work.tokens);
		ap_jw_end(&w);
		ap_jw_finish(&w);
	} else {
		ap_str_addf(&text, "%s: %" PRIu32 " operators, %" PRId64 " parameter elements",
			ap_diag_path(to->ctx->diag, path), g->nnode, g->parameters);
		if (work.trained != g->parameters)
			ap_str_addf(&text, ", of which %" PRId64 " are trained", work.trained);
		ap_str_addf(&text, "\nproducts of the forward pass: %.5g GFLOP per %s", each / 1e9 /
			(double)(work.tokens ? work.tokens : 1), work.tokens ? "token" : "sample");
		if (work.tokens)
			ap_str_addf(&text, ", %" PRId64 " samples of %" PRId64 " tokens in a step\n",
				g->batch, work.tokens);
		else
			ap_str_addf(&text, ", %" PRId64 " samples in a step\n", g->batch);
	}
	return ap_out_text(to, text.s, text.len);
}

enum ap_status ap_model_put(struct ap_writing *to, const struct ap_input *made, bool told)
{
	const char *path = to->set->graph_out ? to->set->graph_out : "-";
	const struct ap_graph_params params = {
		.unknown_batch_parallel = to->set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
	};
	struct ap_ctx quiet = ap_diag_apart(to->ctx);
	const struct ap_graph *g;
	struct ap_output_sink sink;
	struct ap_json *doc;

	if (!strcmp(path, "-") && to->set->json)
		return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--json: the graph goes to standard output; expected --graph-out FILE");
	AP_TRY(ap_out_open(to, path, &sink));
	ap_output_write_fn(&sink, made->text, made->len);
	if (!strcmp(path, "-") || !told)
		return AP_OK;
	if (ap_input_json(&quiet, made, 0, &doc) == AP_OK &&
		ap_graph_load(&quiet, doc, "", &params, &g) == AP_OK)
		return tell(to, path, g);
	return AP_OK; /* a dump's graph may have what `check` refuses */
}

enum ap_status ap_model_graph(struct ap_writing *to, const char *family)
{
	const struct ap_model_family *f = ap_model_family_find(family);
	struct ap_model_params p;
	struct ap_input made = {.path = "graph" SUFFIX};
	struct ap_model *m;
	struct ap_str text;

	if (!f)
		return no_family(to->ctx, family);
	p = f->standard;
	p.name = f->name;
	AP_TRY(settle(to->ctx, to->set, f, &p));
	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(to->ctx, "building");
	m = f->make(to->ctx->arena, &p);
	if (ap_model_bytes(m) > AP_MODEL_BYTES_MOST)
		return ap_diag_add(to->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", f->name,
			too_large);
	ap_str_init(&text, to->ctx->arena);
	ap_model_write(m, ap_str_take, &text);
	made.text = text.s;
	made.len = text.len;
	AP_TRY(ap_model_put(to, &made, !to->set->quiet));
	return ap_out_commit(to);
}

/* ---- graphs from configurations ---- */

/* "DIR/config.json": "config". */
static const char *stem(struct ap_arena *arena, const char *path)
{
	const char *base = ap_file_base(path);
	size_t len = strlen(base) - (ap_file_suffix(base, SUFFIX) ? strlen(SUFFIX) : 0);

	return ap_arena_strndup(arena, base, len);
}

/* The parts of a text between commas. */
struct ap_parts_of_text {
	const char **v;
	size_t n, cap;
};

static struct ap_parts_of_text split(struct ap_arena *arena, const char *text)
{
	struct ap_parts_of_text parts = {0};

	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, ",");
		AP_PUSH(arena, parts, ap_arena_strndup(arena, text, (size_t)(end - text)));
	}
	return parts;
}

/* Freezes what --freeze says. */
static enum ap_status freeze(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_model *m)
{
	struct ap_parts_of_text globs = split(ctx->arena, set->freeze ? set->freeze : "");

	for (size_t i = 0; i < globs.n; i++)
		if (ap_model_freeze(m, globs.v[i]) == 0)
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: no parameter that is trained has a name like \"%s\"",
				ap_setting_said(ctx, set, AP_SET_freeze),
				ap_diag_name(ctx->diag, globs.v[i]));
	if (globs.n && ap_model_parameters(m) == 0)
		(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: leaves nothing to train",
			ap_setting_said(ctx, set, AP_SET_freeze));
	return ap_diag_status(ctx->diag);
}

/* Adds the adapters that --lora says: rank=R,targets=A,B. */
static enum ap_status adapt(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_model *m)
{
	static const char rank_is[] = "rank=", targets_are[] = "targets=";
	struct ap_parts_of_text parts = split(ctx->arena, set->lora ? set->lora : ""), targets = {0};
	int64_t rank = 0;

	for (size_t i = 0; i < parts.n; i++) {
		const char *p = parts.v[i];
		bool opens = !strncmp(p, targets_are, strlen(targets_are));

		if (!strncmp(p, rank_is, strlen(rank_is)) && ap_parse_int(p + strlen(rank_is), 1, 1 << 20,
			&rank))
			continue;
		p += opens ? strlen(targets_are) : 0;
		if ((!opens && !targets.n) || !*p || strchr(p, '='))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: expected rank=N and targets=NAME,NAME...",
				ap_setting_said(ctx, set, AP_SET_lora));
		AP_PUSH(ctx->arena, targets, p);
	}
	if (!set->lora)
		return AP_OK;
	if (!rank || !targets.n)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: expected rank=N and targets=NAME,NAME...", ap_setting_said(ctx, set,
				AP_SET_lora));
	for (size_t i = 0; i < targets.n; i++)
		if (!ap_model_has_target(m, targets.v[i]))
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: no product is called \"%s\"; there are %s",
				ap_setting_said(ctx, set, AP_SET_lora), ap_diag_name(ctx->diag, targets.v[i]),
				ap_model_targets(m));
	AP_TRY(ap_diag_status(ctx->diag));
	(void)ap_model_adapt(m, rank, targets.v, targets.n);
	return AP_OK;
}

/* The text of the graph of a network, which a file describes; settings may freeze or adapt parameters. */
static enum ap_status write_net(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_hf_net *net, const char *file, const char *name, struct ap_input *out)
{
	struct ap_model *m = net->make(ctx->arena, net->dimensions);
	struct ap_str text;

	AP_TRY(freeze(ctx, set, m));
	AP_TRY(adapt(ctx, set, m));
	if (ap_model_bytes(m) > AP_MODEL_BYTES_MOST)
		return ap_path_fault(ctx, AP_MEANING, file, too_large);
	ap_str_init(&text, ctx->arena);
	ap_model_write(m, ap_str_take, &text);
	*out = (struct ap_input){.path = ap_arena_printf(ctx->arena, "%s.graph" SUFFIX, name), .text = text.s,
		.len = text.len, .decoder = set->freeze || set->lora ? NULL : net->decoder};
	return AP_OK;
}

static enum ap_dtype dtype_of(const struct ap_settings *set)
{
	const struct ap_setting_row *dtype = ap_setting_at(AP_SET_dtype);

	return set->dtype < 0 ? AP_DTYPE_COUNT : ap_dtype_find(dtype->choices((size_t)set->dtype));
}

static enum ap_model_loss loss_of(const struct ap_settings *set, enum ap_model_loss otherwise)
{
	return set->loss < 0 ? otherwise : (enum ap_model_loss)set->loss;
}

enum ap_status ap_model_of_config(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_json *doc, struct ap_input *out)
{
	const char *name = stem(ctx->arena, ap_json_file(doc));
	const struct ap_route *route = ap_route_at((size_t)set->executor);
	const struct ap_hf_options asked = {
		.batch = set->batch,
		.sequence = set->sequence,
		.flash = set->attention != AP_ATTENTION_SMALL,
		.experts = route->executor == AP_EXECUTOR_MINDSPORE ? AP_EXPERTS_GATHERED : AP_EXPERTS_MOVED,
		.shared_beside = set->moe_shared_expert_overlap,
		.dtype = dtype_of(set),
		.loss = loss_of(set, route->vocabulary_parallel ? AP_LOSS_VOCABULARY_PARALLEL
			: AP_LOSS_EXPANDED),
		.further = set->mtp,
		.masked = set->masked_positions,
		.names = (int)set->names == AP_NAMES_MINDFORMERS ? AP_NAMES_MINDFORMERS : AP_NAMES_HF,
		.name = name,
	};
	struct ap_hf_net net;

	AP_TRY(ap_hf_read(ctx, doc, &asked, &net));
	return write_net(ctx, set, &net, ap_json_file(doc), name, out);
}

/* Reports settings that a launch says by itself. */
static enum ap_status check_own(struct ap_ctx *ctx, const struct ap_settings *set, const char *path)
{
	static const enum ap_setting_id ids[] = {AP_SET_names, AP_SET_mtp, AP_SET_masked_positions,
		AP_SET_moe_shared_expert_overlap};

	for (size_t i = 0; i < AP_COUNT(ids); i++)
		if (ap_setting_given(set, ids[i]))
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: %s says that itself; only a model's configuration takes it",
				ap_setting_said(ctx, set, ids[i]), ap_diag_path(ctx->diag, path));
	return ap_diag_status(ctx->diag);
}

/* Reads the network of a launch. */
static enum ap_status read_launch(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_json *doc, int64_t batch, struct ap_hf_net *out)
{
	const struct ap_launched_options asked = {
		.batch = batch,
		.sequence = set->sequence,
		.flash = set->attention == AP_ATTENTION_FLASH,
		.small = set->attention == AP_ATTENTION_SMALL,
		.dtype = dtype_of(set),
		.loss = loss_of(set, AP_LOSS_EXPANDED),
		.name = ap_file_base(ap_json_file(doc)),
	};

	return (language == AP_LAUNCH_MEGATRON ? ap_launched_megatron : ap_launched_mindformers)(ctx, doc,
		&asked, out);
}

enum ap_status ap_model_of_launch(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_input *in, struct ap_input *out)
{
	const char *name = ap_file_base(in->path);
	struct ap_hf_net net;
	struct ap_json *doc;

	if (language == AP_LAUNCH_DEEPSPEED)
		return ap_path_fault(ctx, AP_USAGE, in->path, ap_arena_printf(ctx->arena,
			"is %s, which says no network; expected an operator graph or a model's "
			"configuration, and --config with it", ap_launch_text(language)));
	AP_TRY(ap_launch_document(ctx, language, in->path, in->text, in->len, &doc));
	AP_TRY(check_own(ctx, set, in->path));
	if (!set->batch)
		return ap_path_fault(ctx, AP_USAGE, in->path, language == AP_LAUNCH_MEGATRON
			? "says no samples of a step: neither global_batch_size, nor micro_batch_size with "
			"the number of devices; expected --batch"
			: "says no samples of a step: no batch_size in runner_config; expected --batch");
	AP_TRY(read_launch(ctx, set, language, doc, set->batch, &net));
	return write_net(ctx, set, &net, in->path, name, out);
}

int64_t ap_model_launch_parameters(struct ap_ctx *ctx, const struct ap_settings *set,
	enum ap_launch_language language, const struct ap_input *in)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_hf_net net;
	struct ap_json *doc;

	if (language == AP_LAUNCH_DEEPSPEED ||
		ap_launch_document(&quiet, language, in->path, in->text, in->len, &doc) != AP_OK ||
		read_launch(&quiet, set, language, doc, 1, &net) != AP_OK)
		return 0;
	return ap_model_parameters(net.make(ctx->arena, net.dimensions));
}

enum ap_status ap_model_no_config(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const char *what)
{
	static const enum ap_setting_id ids[] = {AP_SET_sequence, AP_SET_attention, AP_SET_loss, AP_SET_names,
		AP_SET_mtp, AP_SET_masked_positions, AP_SET_moe_shared_expert_overlap,
		AP_SET_dtype, AP_SET_freeze, AP_SET_lora};

	for (size_t i = 0; i < AP_COUNT(ids); i++)
		if (set->origin[ids[i]] >= AP_FROM_CONFIG)
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: %s is %s, which says that itself; only a model's configuration takes it",
				set->name[ids[i]], ap_diag_path(ctx->diag, path), what);
	return ap_diag_status(ctx->diag);
}

const char *ap_model_name_at(size_t i, const char **help)
{
	const struct ap_model_family *f = ap_model_family_at(i);

	*help = f ? f->help : NULL;
	return f ? f->name : NULL;
}

bool ap_model_reads(struct ap_arena *arena, const char *family, enum ap_setting_id id,
	const char **standard)
{
	const struct ap_model_family *f = ap_model_family_find(family);
	const struct option *o = option_of(id);
	const char *at;
	int64_t n;

	*standard = NULL;
	if (!f || !o || !reads(f, o))
		return false;
	at = (const char *)&f->standard + o->offset;
	if (ap_setting_at(id)->type == AP_SET_INT) {
		memcpy(&n, at, sizeof n);
		*standard = n ? ap_arena_printf(arena, "%" PRId64, n) : NULL;
	} else if (o->bit == AP_MODEL_DTYPE) {
		*standard = ap_dtype_name(f->standard.dtype);
	} else if (o->bit == AP_MODEL_ACTIVATION) {
		*standard = ap_model_activation_name(f->standard.activation);
	} else if (o->bit == AP_MODEL_CAPACITY) {
		*standard = ap_arena_printf(arena, "%g", f->standard.capacity);
	}
	return true;
}

/* ---- the bundled models ---- */

const char *ap_models_folder(struct ap_arena *arena)
{
	const char *given = getenv("AUTOPAR_PLAN_MODELS");
	char self[4096];
	ssize_t len;

	if (given && *given)
		return given;
	len = readlink("/proc/self/exe", self, sizeof self);
	while (len > 0 && len < (ssize_t)sizeof self && self[len - 1] != '/')
		len--;
	if (len > 0 && len < (ssize_t)sizeof self) {
		const char *beside = ap_arena_printf(arena, "%.*sautopar-plan-models", (int)len, self);

		if (ap_file_is_folder(beside))
			return beside;
	}
	return AP_MODELS_DIR;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum ap_status read_names(struct ap_arena *arena, const char *folder, struct ap_model_names *out)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	*out = (struct ap_model_names){0};
	if (!dir)
		return AP_IO;
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (*entry->d_name != '.' && ap_file_suffix(entry->d_name, SUFFIX))
			AP_PUSH(arena, *out, ap_arena_strndup(arena, entry->d_name, len - strlen(SUFFIX)));
	}
	closedir(dir);
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, compare);
	return AP_OK;
}

enum ap_status ap_models_find(struct ap_ctx *ctx, struct ap_model_names *out)
{
	struct ap_where where = {.file = ap_models_folder(ctx->arena)};

	if (read_names(ctx->arena, where.file, out) == AP_OK)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_IO, &where, NULL,
		"cannot open: %s; the bundled models should be there, or where AUTOPAR_PLAN_MODELS says",
		strerror(errno));
}

/* Names that share a beginning with name, or differ from it in a third of its letters at most; else all. */
static const char *near_names(struct ap_ctx *ctx, const struct ap_model_names *names, const char *name)
{
	struct ap_str all, near;

	ap_str_init(&all, ctx->arena);
	ap_str_init(&near, ctx->arena);
	for (size_t i = 0; i < names->n; i++) {
		const char *each = ap_diag_name(ctx->diag, names->v[i]);
		int far = (int)strlen(name) / 3;

		ap_str_addf(&all, "%s%s", all.len ? ", " : "", each);
		if (!strncmp(name, names->v[i], 4) || ap_str_distance(name, names->v[i], far) <= far)
			ap_str_addf(&near, "%s%s", near.len ? ", " : "", each);
	}
	return near.len ? near.s : all.s;
}

enum ap_status ap_model_file(struct ap_ctx *ctx, const char *path, const char **file)
{
	const char *folder;
	struct ap_model_names names;

	*file = path;
	if (!strcmp(path, "-") || strchr(path, '/') || ap_file_suffix(path, SUFFIX) ||
		access(path, F_OK) == 0)
		return AP_OK;
	folder = ap_models_folder(ctx->arena);
	*file = ap_path_join(ctx->arena, folder, ap_arena_printf(ctx->arena, "%s" SUFFIX, path));
	if (access(*file, F_OK) == 0)
		return AP_OK;
	if (read_names(ctx->arena, folder, &names) != AP_OK || !names.n) {
		*file = path; /* the reader says that there is none */
		return AP_OK;
	}
	return ap_diag_add(ctx->diag, AP_ERROR, AP_IO, &(struct ap_where){.file = path}, NULL,
		"there is no such file, and no bundled model of this name; expected a file, or one of %s",
		near_names(ctx, &names, path));
}
