/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/load.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { LOCATED_FINDINGS = 200 }; /* to locate one costs a scan of the file */

static const struct {
	const char *name;
	enum ap_level level;
	uint64_t needs;
	void (*run)(struct ap_load *l);
	const char *text;
} checks[] = {
#define CHECK(id, name, level, needs, run, text) {name, AP_##level, needs, run, text},
#include "graph/checks.def"
#undef CHECK
};

const char *ap_graph_check_at(size_t i, const char **text)
{
	if (i >= AP_CHECK_COUNT)
		return NULL;
	*text = checks[i].text;
	return checks[i].name;
}

enum ap_check ap_check_find(const char *name)
{
	int i = 0;

	while (i < AP_CHECK_COUNT && strcmp(checks[i].name, name) != 0)
		i++;
	return (enum ap_check)i;
}

bool ap_load_ok(struct ap_load *l, enum ap_status st)
{
	if (st != AP_OK && l->status == AP_OK)
		l->status = st;
	return st == AP_OK;
}

const char *ap_load_name(struct ap_load *l, const char *raw)
{
	return ap_diag_name(l->ctx->diag, raw);
}

void ap_load_say(struct ap_load *l, enum ap_check c, const struct ap_jv *at, const char *oper,
	const char *fmt, ...)
{
	bool asked = c == AP_CHECK_BATCH_SCALE || c == AP_CHECK_BATCH_PARTS;
	enum ap_status st = asked ? AP_USAGE : AP_MEANING;
	struct ap_where where = {.file = ap_json_file(l->doc), .oper = oper};
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	l->failed |= UINT64_C(1) << c;
	if (l->found++ < LOCATED_FINDINGS)
		st = ap_json_report(l->ctx, l->doc, at, checks[c].level, st, oper, checks[c].name,
			"%s", text);
	else
		st = ap_diag_add(l->ctx->diag, checks[c].level, st, &where, checks[c].name, "%s",
			text);
	ap_load_ok(l, st);
}

void ap_load_check(struct ap_load *l, enum ap_check first, enum ap_check last)
{
	for (int c = (int)first; c <= (int)last; c++)
		if (checks[c].run && !(checks[c].needs & l->failed))
			checks[c].run(l);
}

ap_id ap_load_tensor(const struct ap_load *l, const char *name)
{
	ap_id id = ap_map_get_str(l->names, name);

	return id == AP_NONE ? AP_NONE : l->by_name[id];
}

const struct ap_jv *ap_load_element(const struct ap_jv *array, size_t i)
{
	const struct ap_jv *v = array ? ap_jv_first(array) : NULL;

	while (v && i-- > 0)
		v = ap_jv_next(v);
	return v;
}

/* What was read is judged as a whole first, then operator by operator in order. What seems unused
 * may be so through an error, so that is told where there are none. errors: before this graph. */
static void judge(struct ap_load *l, size_t errors)
{
	ap_load_check(l, AP_CHECK_GRAPH_EMPTY, AP_CHECK_EDGE_CYCLE);
	if (l->order)
		ap_load_bind(l);
	ap_load_check(l, AP_CHECK_PIN_LENGTH, AP_CHECK_GRAPH_SIZE);
	if (ap_diag_count(l->ctx->diag, AP_ERROR) == errors)
		ap_load_check(l, AP_CHECK_TENSOR_UNUSED, AP_CHECK_OPERATOR_UNUSED);
}

static void load(struct ap_load *l)
{
	size_t errors = ap_diag_count(l->ctx->diag, AP_ERROR);

	l->names = ap_map_create(l->ctx->arena);
	l->bound_ids = ap_map_create(l->ctx->arena);
	if (ap_load_read(l))
		judge(l, errors);
	if (l->status == AP_OK)
		ap_load_mark_batch(l);
	if (l->status == AP_OK && l->params->batch > 0)
		ap_load_rescale(l, l->params->batch);
	if (l->status == AP_OK)
		ap_load_judge_batch(l);
}

enum ap_status ap_graph_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_graph_params *params, const struct ap_graph **out)
{
	struct ap_load l = {.ctx = ctx, .doc = doc, .params = params, .name = "", .optimizer = ""};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	load(&l);
	if (l.status == AP_OK)
		*out = ap_load_finish(&l, sha256);
	ap_arena_release(ctx->scratch, mark);
	return l.status;
}
