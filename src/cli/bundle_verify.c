/* SPDX-License-Identifier: Apache-2.0 */
/* Is what is in the folder of a bundle what was written there? */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cli/bundle.h"
#include "cli/inputs.h"
#include "cli/run.h"
#include "cli/written.h"
#include "emit/bundle.h"

static const char *join(struct ap_run *run, const char *dir, const char *name)
{
	bool slash = *dir && dir[strlen(dir) - 1] == '/';

	return ap_arena_printf(run->ctx.arena, "%s%s%s", dir, slash ? "" : "/", name);
}

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

bool ap_bundle_is(struct ap_run *run, const char *dir)
{
	return exists(join(run, dir, AP_BUNDLE_MANIFEST)) || exists(join(run, dir, AP_BUNDLE_LOCK)) ||
	       ap_bundle_has_mark(run, dir);
}

static void verify_file(struct ap_run *run, const char *path, const struct ap_bundle_part *part)
{
	struct ap_where where = {.file = path};
	struct ap_diag *diag = run->ctx.diag;
	struct ap_file_sum sum;
	int error = ap_file_sum(path, &sum);

	if (error == ENOENT || error == ENOTDIR)
		(void)ap_diag_add(diag, AP_ERROR, AP_MEANING, &where, "bundle-missing",
			"is missing; the bundle was made with it");
	else if (error)
		(void)ap_diag_add(diag, AP_ERROR, AP_IO, &where, NULL, "cannot read: %s", strerror(error));
	else if (sum.bytes != part->bytes || strcmp(sum.sha256, part->sha256) != 0)
		(void)ap_diag_add(diag, AP_ERROR, AP_MEANING, &where, "bundle-changed",
			"is not what the bundle was made with: %" PRId64 " bytes, SHA-256 %.12s..; expected "
			"%" PRId64 ", %.12s..",
			sum.bytes, sum.sha256, part->bytes, part->sha256);
}

static enum ap_status find_others(struct ap_run *run, const char *dir, const char *sub,
	const struct ap_written *listed)
{
	const char *const *name;
	size_t n;

	AP_TRY(ap_folder_names(&run->ctx, join(run, dir, sub), &n, &name));
	for (size_t i = 0; i < n; i++) {
		const char *known =
			*sub ? ap_arena_printf(run->ctx.arena, "%s/%s", sub, name[i]) : name[i];
		const char *path = join(run, dir, known);

		if (!strcmp(known, AP_BUNDLE_STAGES) && ap_file_is_folder(path))
			AP_TRY(find_others(run, dir, known, listed));
		else if (!ap_written_has(listed, known) && strcmp(known, AP_BUNDLE_CACHE) != 0)
			(void)ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
				&(struct ap_where){.file = path}, "bundle-extra",
				"is no file of the bundle; expected it elsewhere");
	}
	return AP_OK;
}

enum ap_status ap_bundle_verify(struct ap_run *run, const char *dir, struct ap_bundle_manifest *out)
{
	struct ap_written listed = {0};
	size_t errors = ap_diag_count(run->ctx.diag, AP_ERROR);
	struct ap_input in;
	struct ap_json *doc;

	if (!exists(join(run, dir, AP_BUNDLE_MANIFEST)))
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = dir},
			"bundle-whole",
			"holds a bundle without " AP_BUNDLE_MANIFEST ": the run that made it has not ended, "
			"was killed, or was of an older version; expected a whole one");
	AP_TRY(ap_input_read(run, join(run, dir, AP_BUNDLE_MANIFEST), &in));
	AP_TRY(ap_input_json(run, &in, 0, &doc));
	AP_TRY(ap_bundle_manifest_read(&run->ctx, doc, out));
	ap_written_add(&run->ctx, &listed, AP_BUNDLE_MANIFEST, "");
	for (uint32_t i = 0; i < out->npart; i++) {
		ap_written_add(&run->ctx, &listed, out->part[i].name, out->part[i].sha256);
		verify_file(run, join(run, dir, out->part[i].name), &out->part[i]);
	}
	AP_TRY(find_others(run, dir, "", &listed));
	return ap_diag_count(run->ctx.diag, AP_ERROR) == errors ? AP_OK : ap_diag_status(run->ctx.diag);
}
