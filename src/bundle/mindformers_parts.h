/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of experts' words share. */
#ifndef AP_BUNDLE_MINDFORMERS_PARTS_H
#define AP_BUNDLE_MINDFORMERS_PARTS_H

#include "base/str.h"
#include "bundle/layers.h"
#include "bundle/mindformers.h"

struct ap_words {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_expert *x;
	struct ap_layers layers;
	struct ap_str text;
};

void ap_words_init(struct ap_words *w, struct ap_ctx *ctx, const struct ap_bundle *b);

/* A line "# ..". */
void ap_words_say(struct ap_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the words stand for: the hybrid, its time and memory beside the plan's. false: there is none, which
 * is said, and nothing else can be. */
bool ap_words_head(struct ap_words *w, const char *framework);

/* What of the plan no framework of these can be told. */
void ap_words_unsaid(struct ap_words *w);

/* An effective setting, as JSON text; "" where it is not there. */
const char *ap_words_setting(const struct ap_words *w, const char *name);

#endif
