/* SPDX-License-Identifier: Apache-2.0 */
#include "import/source.h"

#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/vec.h"

#define RIGHT "expected NN_pre_auto_parallel or NN_insert-virtual-dataset, which have full names, " \
	"or step_auto_parallel_begin or step_parallel_begin"

enum ap_status ap_source_refuse(struct ap_ctx *ctx, const char *file, int64_t line, const char *why)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file, .line = line},
		"dump-source", "%s, so it is no source of a graph; " RIGHT, why);
}

enum ap_status ap_source_check(struct ap_ctx *ctx, const char *file)
{
	static const struct {
		const char *word;
		bool fit;
		const char *why;
	} rows[] = {
#define SOURCE(word, fit, why) {word, fit, why},
#include "import/sources.def"
	};
	const char *name = ap_file_base(file);
	size_t len = strspn(name, "0123456789_");

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		if (strncmp(name + len, rows[i].word, strlen(rows[i].word)))
			continue;
		return rows[i].fit ? AP_OK : ap_source_refuse(ctx, file, 0, rows[i].why);
	}
	return AP_OK;
}
