/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of a strategy checkpoint, and what both readers share. Private to ckpt/ckpt*.c. */
#ifndef AP_CKPT_CKPT_FORM_H
#define AP_CKPT_CKPT_FORM_H

#include "ckpt/ckpt.h"

/* Parse one form: everything that makes it another form, another format or incomplete. The values
 * are as the file has them, in the file's order; ap_ckpt_settle() comes next. */
enum ap_status ap_ckpt_pb_parse(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_ckpt *out);
enum ap_status ap_ckpt_json_parse(struct ap_ctx *ctx, const char *file, const char *bytes,
	size_t len, struct ap_ckpt *out);

/* Does the text begin like a JSON object? No checkpoint in protobuf form does. */
bool ap_ckpt_looks_like_json(const char *bytes, size_t len);

/* Sorts items and layouts by name and checks every value that can be judged without a graph. */
enum ap_status ap_ckpt_settle(struct ap_ctx *ctx, struct ap_ckpt *c);

/* Dimensions that a layout's map speaks of, and parts of dimension d < that. */
uint32_t ap_ckpt_rank(const struct ap_ckpt_layout *l);
int64_t ap_ckpt_parts(const struct ap_ckpt_layout *l, uint32_t d);

/* The key of an operator, "<type>_<first parameter>": the first that is trained, or with frozen the first
 * at all; NULL when there is none. */
const char *ap_ckpt_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node, bool frozen);

/* Items by name and stage, layouts by name. */
void ap_ckpt_sort(struct ap_ctx *ctx, struct ap_ckpt *c);

/* AP_MEANING where some layouts name their stage and others do not, or where none does and there are
 * several. */
enum ap_status ap_ckpt_check_merged(struct ap_ctx *ctx, const struct ap_ckpt *c);

/* AP_MEANING where a sorted file, whose values were checked one by one, contradicts itself: a layout that
 * none of its operator's vectors cuts so, or that is missing though all is in one stage, vectors for other
 * numbers of devices, dealing that the ranks with one slice do not allow, states that lie otherwise than
 * their parameters. O(items * vectors + layouts * prefixes). */
enum ap_status ap_ckpt_check_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c);

/* AP_MEANING where a parameter of the graph, of operators that have counts (rows may be NULL), lies
 * otherwise than these say, has another shape, or rows that cannot be dealt so. */
enum ap_status ap_ckpt_match_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const int32_t *const *counts);

/* Joins the files of stages 0 to n - 1, in this order, none of them merged. */
void ap_ckpt_join(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *stage, struct ap_ckpt *out);

/* The stages that a file speaks of, ascending, in scratch. */
uint32_t ap_ckpt_stages(struct ap_ctx *ctx, const struct ap_ckpt *c, const uint32_t **out);

/* The stage before a name of a merged file; false where there is none. */
bool ap_ckpt_name_stage(const char *param_name, uint32_t *stage);

/* "net.fc1.weight" in "0-net.fc1.weight", as a merged file has it: the name behind the stage. */
const char *ap_ckpt_bare_name(const char *param_name);

/* Prefix i of the names of states that MindSpore clones from a parameter ("moments"), NULL past the
 * last; and the parameter in the name of such a state, NULL where the prefix is another. */
const char *ap_ckpt_state_prefix(size_t i, char buf[32]);
const char *ap_ckpt_state_source(const char *name, const char *prefix);

#endif
