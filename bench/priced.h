/* SPDX-License-Identifier: Apache-2.0 */
/* Rows priced: their graph is made once, and evaluated under as many profiles as are wanted. */
#ifndef BENCH_PRICED_H
#define BENCH_PRICED_H

#include "profiles.h"
#include "rows.h"

struct priced; /* a row, its graph, its settings */

/* Takes a row up; it and arena outlive what is returned, which ends with priced_close(). */
struct priced *priced_open(struct ap_arena *arena, const struct row *row);
void priced_close(struct priced *p);

/* From now on a prediction leaves its graph and plan in a folder, as NAME.graph.json and NAME.plan.json,
 * and the chip, where it is no built-in one, as NAME.chip.json. Before the first prediction. */
void priced_keep(struct priced *p, const char *folder, const char *name);

/* What is predicted from now on. Bytes and terms are read from the plan as JSON, which takes several times as
 * long as to make it. */
enum priced_what {
	PRICED_ALL,
	PRICED_MEASURED, /* seconds, and bytes where these were measured */
	PRICED_SECONDS
};
void priced_only(struct priced *p, enum priced_what what);

/* Predicts seconds, bytes and terms of the row, or says why it cannot: sets these fields of *row. */
void priced_predict(struct priced *p, struct profiles *profiles, bool is_neutral, struct row *row);

/* The run that the row is; NULL: it cannot be expressed. */
const struct run *priced_run(const struct priced *p);

#endif
