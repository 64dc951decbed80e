/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline and the expert's strategy that the settings ask for. */
#ifndef AP_CLI_PIPELINE_H
#define AP_CLI_PIPELINE_H

#include "cli/inputs.h"

struct ap_options;

/* Fills *hybrid with stages and segments of o and what the machine leaves; o->micro_batches are then those
 * of its mbs. AP_USAGE where these are no numbers, or contradict what is given. in: graph and machine
 * are there. Nothing without --hybrid. */
enum ap_status ap_pipeline_hybrid(struct ap_run *run, const struct ap_inputs *in, struct ap_options *o,
	struct ap_hybrid *hybrid);

/* Deals the machine to the stages and puts them into the graph; the step learns of them. Nothing where
 * there is one stage of one segment. in: graph, machine and step are there. */
enum ap_status ap_pipeline_make(struct ap_run *run, const struct ap_sources *src,
	struct ap_inputs *in);

/* The expert's counts; AP_USAGE, told, where something does not divide. in->graph and in->request become
 * those whose sums are dealt, where the hybrid says so. */
enum ap_status ap_pipeline_counts(struct ap_run *run, struct ap_inputs *in,
	const int32_t *const **counts);

/* The stage configuration: a file or an object; *out stays NULL where there is none. */
enum ap_status ap_pipeline_read_config(struct ap_run *run, struct ap_json **out);

#endif
