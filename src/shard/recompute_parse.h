/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --recompute as text: what layers compute again, in words of graph/again.h.
 *
 *   full                      all layers
 *   core_attn+mlp             in each layer both
 *   full:8                    the first 8 layers of each part of a pipeline, a segment of a stage
 *   full:13,5                 of each stage; stages of several segments take them from their segments in
 *                             turns, as MindFormers does
 *   full:2,1/1,0              of each segment, a list of stages for each
 *   full:2,0,selective:5,3    each list counts from a part's first layer on, as in MindFormers' YAML:
 *                             here 2 full and 3 selective layers in stage 0
 *   uniform:4                 full, but only the input of every fourth layer is held
 */
#ifndef AP_SHARD_RECOMPUTE_PARSE_H
#define AP_SHARD_RECOMPUTE_PARSE_H

#include "base/ctx.h"
#include "shard/step.h"

/* Sets what step recomputes; lists in the run arena. AP_USAGE with a message that begins with option. */
enum ap_status ap_recompute_parse(struct ap_ctx *ctx, const char *option, const char *text,
	struct ap_step *step);

/* The alternatives of a text, each for ap_recompute_parse(): what stands between bars, "none|selective,mlp",
 * or, where one of several words is none or full, which mean nothing beside others, each word with its
 * numbers. Each is listed once, and no more than one above AP_CHOICES_MOST; a text without alternatives is
 * the only one. */
size_t ap_recompute_alternatives(struct ap_arena *arena, const char *text, const char *const **out);

#endif
