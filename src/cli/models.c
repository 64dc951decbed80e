/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/models.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/run.h"

#define SUFFIX ".json"

struct names {
	const char **v;
	size_t n, cap;
};

static const char *folder(void)
{
	const char *given = getenv("AUTOPAR_PLAN_MODELS");

	return given && *given ? given : AP_MODELS_DIR;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum ap_status read_names(struct ap_run *run, struct names *out)
{
	struct ap_where where = {.file = folder()};
	DIR *dir = opendir(where.file);
	struct dirent *entry;

	if (!dir)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_IO, &where, NULL,
			"cannot open: %s; the bundled models should be there, or where "
			"AUTOPAR_PLAN_MODELS says", strerror(errno));
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (*entry->d_name != '.' && ap_file_suffix(entry->d_name, SUFFIX))
			AP_PUSH(run->ctx.arena, *out,
				ap_arena_strndup(run->ctx.arena, entry->d_name,
					len - strlen(SUFFIX)));
	}
	closedir(dir);
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, compare);
	return AP_OK;
}

/* Notes and warnings of a graph are `check`'s business. */
static enum ap_status load(struct ap_run *run, const char *path, const struct ap_graph **g)
{
	const struct ap_graph_params params = {0};
	struct ap_where where = {.file = path};
	struct ap_diag *real = run->ctx.diag;
	struct ap_input in;
	struct ap_json *doc;
	enum ap_status st;

	AP_TRY(ap_input_read(&run->ctx, run->set, path, &in));
	run->ctx.diag = ap_diag_create(run->ctx.arena, false);
	st = ap_input_json(&run->ctx, &in, 0, &doc);
	if (st == AP_OK)
		st = ap_graph_load(&run->ctx, doc, "", &params, g);
	run->ctx.diag = real;
	return st == AP_OK ? AP_OK
		: ap_diag_add(real, AP_ERROR, st, &where, NULL,
			"is no operator graph; `autopar-plan check` says why");
}

bool ap_models_list(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	struct names names = {0};
	bool found = !name;

	if (read_names(run, &names) != AP_OK)
		return false;
	for (size_t i = 0; i < names.n; i++) {
		const char *path = ap_arena_printf(run->ctx.arena, "%s/%s" SUFFIX, folder(),
			names.v[i]);
		const struct ap_graph *g;

		if (name && strcmp(name, names.v[i]) != 0)
			continue;
		if (load(run, path, &g) != AP_OK)
			return false;
		found = true;
		if (w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", ap_diag_name(run->ctx.diag, names.v[i]));
			ap_jw_kint(w, "operators", g->nnode);
			ap_jw_kint(w, "parameter_elements", g->parameters);
			ap_jw_kstr(w, "file", ap_diag_path(run->ctx.diag, path));
			ap_jw_end(w);
			continue;
		}
		ap_str_addf(out, "%-22s %6" PRIu32 " operators, %15" PRId64 " parameter elements\n",
			ap_diag_name(run->ctx.diag, names.v[i]), g->nnode, g->parameters);
		if (name)
			ap_str_addf(out, "  file      %s\n", ap_diag_path(run->ctx.diag, path));
	}
	return found;
}
