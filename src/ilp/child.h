/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may hang or crash, done in a child process: whatever happens to it, the caller goes on,
 * at once when told to stop.
 */
#ifndef AP_ILP_CHILD_H
#define AP_ILP_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"

struct ap_child; /* seen from inside */

/* Sends a report: as many bytes as were agreed. The last one counts. */
void ap_child_report(const struct ap_child *c, const void *report);

/* Is there still somebody to report to? */
bool ap_child_wanted(const struct ap_child *c);

/*
 * Runs job(ctx, child, user) in a child process, on a copy of all there is, with arenas of its own;
 * scratch of the caller, too, may be read. Its messages and its stop flag lead nowhere. *report
 * (`bytes`) is replaced by what the job reports. Returns when the job has returned (true), when it
 * has died, or, killing it, when ctx is told to stop. Nothing of it is left behind.
 */
typedef void ap_child_job(struct ap_ctx *ctx, const struct ap_child *c, void *user);
bool ap_child_run(struct ap_ctx *ctx, ap_child_job *job, void *user, void *report, size_t bytes);

#endif
