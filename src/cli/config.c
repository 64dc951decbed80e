/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/options.h"

/* The text of a member's value, as an option would be given it; NULL when its type is wrong. */
static const char *value_text(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *v, enum ap_opt_type type)
{
	int64_t i;
	char buf[32];

	switch (ap_jv_type(v)) {
	case AP_JBOOL:
		return type != AP_OPT_FLAG ? NULL : ap_jv_bool(v) ? "true" : "false";
	case AP_JNUMBER:
		if (type == AP_OPT_NUM)
			return ap_arena_strdup(ctx->arena, ap_format_double(ap_jv_double(v), buf));
		if ((type == AP_OPT_INT || type == AP_OPT_SIZE) && ap_jv_int(doc, v, &i))
			return ap_arena_printf(ctx->arena, "%" PRId64, i);
		return NULL;
	case AP_JSTRING:
		return type >= AP_OPT_SIZE ? ap_jv_str(v) : NULL;
	case AP_JNULL:
	case AP_JARRAY:
	case AP_JOBJECT:
		break;
	}
	return NULL;
}

static void unknown_key(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v)
{
	const char *best = NULL;
	int nearest = 3;

	for (int i = 0; i < AP_OPT_COUNT; i++) {
		int d = ap_str_distance(ap_jv_key(v), ap_option_at(i)->key, nearest - 1);

		if (d < nearest && ap_option_at(i)->group != AP_GROUP_GENERAL) {
			nearest = d;
			best = ap_option_at(i)->key;
		}
	}
	(void)ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-unknown",
		"no such setting; %s%s%s", best ? "did you mean \"" : "see `autopar-plan list ",
		best ? best : "settings`", best ? "\"?" : "");
}

static void set_member(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	struct ap_cli *cli)
{
	const struct ap_option *row = ap_option_of_key(ap_jv_key(v));
	struct ap_options other = cli->opt, *o;
	const char *text, *why;
	size_t id;

	if (!row || row->group == AP_GROUP_GENERAL) {
		unknown_key(ctx, doc, v);
		return;
	}
	id = (size_t)(row - ap_option_at(0));
	o = ap_cli_takes(cli, row) && cli->opt.origin[id] != AP_FROM_OPTION ? &cli->opt : &other;
	if (o->origin[id] == AP_FROM_CONFIG) {
		(void)ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-twice",
			"the setting %s is already given under another name", row->key);
		return;
	}
	text = value_text(ctx, doc, v, row->type);
	if (!text)
		(void)ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
			"wrong type of value; expected %s", ap_option_expects(ctx->arena, row));
	else if (!ap_option_set(ctx->arena, row, o, text, AP_FROM_CONFIG, &why))
		(void)ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-range", "%s",
			why);
}

enum ap_status ap_config_load(struct ap_ctx *ctx, const char *path, struct ap_cli *cli)
{
	struct ap_json *doc;
	char *text;
	size_t len;

	AP_TRY(ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &text, &len));
	AP_TRY(ap_json_parse(ctx, path, text, len, 0, &doc));
	if (ap_jv_type(ap_json_root(doc)) != AP_JOBJECT)
		return ap_json_report(ctx, doc, ap_json_root(doc), AP_ERROR, AP_MEANING, NULL,
			"key-type", "expected an object of settings");
	for (const struct ap_jv *v = ap_jv_first(ap_json_root(doc)); v; v = ap_jv_next(v))
		set_member(ctx, doc, v, cli);
	return ap_diag_status(ctx->diag);
}
