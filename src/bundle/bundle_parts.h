/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a bundle share. Private to bundle/bundle*.c. */
#ifndef AP_BUNDLE_BUNDLE_PARTS_H
#define AP_BUNDLE_BUNDLE_PARTS_H

#include "bundle/bundle.h"

#define AP_BUNDLE_OPERATORS "operator_strategies.json"
#define AP_BUNDLE_CKPT "strategy.ckpt"
#define AP_BUNDLE_SHARD "shard.json"
#define AP_BUNDLE_SPEED_UP "parallel_speed_up.json"

/* How a plan gets into its executor. */
struct ap_bundle_way {
	const char *name; /* of the route, or of the parallel mode where that leaves no route */
	const char *mode; /* parallel_mode of set_auto_parallel_context; NULL: not MindSpore */
	const char *search; /* its search_mode; NULL: none */
	const char *of_class; /* parallel_mode of AutoParallel; NULL: the class does not have it */
	const char *file; /* of the bundle, that holds the strategies; NULL: none is read */
	const char *honours; /* lines about what is taken from where */
};
const struct ap_bundle_way *ap_bundle_way(const struct ap_bundle *b);

/* An effective setting as JSON text; NULL where it is not there. */
const char *ap_bundle_setting(const struct ap_bundle *b, const char *name);

/* Is it there, and other than that? */
bool ap_bundle_differs(const struct ap_bundle *b, const char *name, const char *json);

/* All stages together. */
int64_t ap_bundle_devices(const struct ap_bundle *b);

/* Switches of computation and communication (transformer_opt): is one of them on? */
bool ap_bundle_speeds_up(const struct ap_bundle *b);

/* Numbers of parts, or layouts, of all inputs of the step: the value of dataset_strategy. */
void ap_bundle_write_arrivals(const struct ap_bundle *b, struct ap_jw *w);

/* "NAME VALUE, ..": settings of the context that differ from what the class AutoParallel does, and that it
 * has no method for. Their number; 0 where the class does not have the mode either. */
size_t ap_bundle_unsaid(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_str *out);

/* Is it a call that settings.json may have? type: of the argument, NULL: any. *keys: those that its value
 * may have, a blank between two; NULL: any. */
bool ap_bundle_call_known(const char *api, const char *name, const char *type, const char **keys);

/* The files that are made here. */
void ap_bundle_write_settings(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);
void ap_bundle_write_speed_up(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);
void ap_bundle_write_manifest(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);
void ap_bundle_write_recompute(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);
/* Operators that the plan recomputes, or keeps, and that recompute.json cannot tell from others. */
uint32_t ap_bundle_recompute_rest(struct ap_ctx *ctx, const struct ap_bundle *b);

/* Calls of shard(), for operators that the graph has strategies of; where a checkpoint is loaded. */
struct ap_bundle_pins {
	uint32_t said, left; /* operators that it is called of, or cannot be */
	uint32_t dealt; /* of those that it is called of: with an out_strategy that has to be said */
};
struct ap_bundle_pins ap_bundle_pins(struct ap_ctx *ctx, const struct ap_bundle *b);
bool ap_bundle_shards(const struct ap_bundle *b); /* is any operator among them? */
void ap_bundle_write_shard(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

/* Lines for README.txt, each of which holds for this plan. */
const char *ap_bundle_limits(struct ap_ctx *ctx, const struct ap_bundle *b);
void ap_bundle_write_readme(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write,
	void *user);

#endif
