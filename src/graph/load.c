/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/load.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { LOCATED_FINDINGS = 200 }; /* locating one costs a scan of the file */

static const struct {
	const char *name;
	enum ap_level level;
	const char *text;
} checks[] = {
#define CHECK(id, name, level, needs, run, text) {name, AP_##level, text},
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
