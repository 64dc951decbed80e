/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles that rows are priced with: built in, out of a folder, or with other numbers. */
#ifndef BENCH_PROFILES_H
#define BENCH_PROFILES_H

#include "base/ctx.h"
#include "run.h"

/* Profiles are files: those that differ from the built-in ones are written into a folder of their own. */
struct profiles {
	struct ap_ctx *ctx;
	const char *given; /* a folder whose profiles replace built-in ones; NULL: none is */
	char *folder; /* NULL: there is none yet */
	struct { const char **v; size_t n, cap; } keys, files;
};

/* What --chip and --software are told of a run: a name, or a file that lives until the profiles are removed.
 * The network of a chip is that of the run's cluster. is_neutral: without what was fitted or is a guess. */
const char *chip_of(struct profiles *p, const struct run *run);
const char *software_of(struct profiles *p, const struct run *run, bool is_neutral);

/* Removes the files; others are made where they are asked for again. */
void remove_profiles(struct profiles *p);

#endif
