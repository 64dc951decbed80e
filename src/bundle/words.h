/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan in the words of a framework that knows only degrees of parallelism: a text in the making, and
 * what of the plan the framework cannot be told. Files for MindFormers, Megatron-LM, MindSpeed and
 * torchtitan begin here.
 */
#ifndef AP_BUNDLE_WORDS_H
#define AP_BUNDLE_WORDS_H

#include <stdarg.h>

#include "base/str.h"
#include "bundle/bundle.h"
#include "bundle/layers.h"

struct ap_words {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_expert *x;
	const struct ap_hybrid *h; /* of x */
	const char *framework; /* "Megatron-LM" */
	struct ap_layers layers;
	struct ap_str text;
	bool stops;
	struct {
		struct ap_unsaid *v;
		size_t n, cap;
	} unsaid;
};

/* Begins the words of b's plan. False: no hybrid is near, nothing can be said. O(operators). */
bool ap_words_begin(struct ap_ctx *ctx, const struct ap_bundle *b, const char *framework, struct ap_words *w);
void ap_words_end(struct ap_words *w, struct ap_said *out);

void ap_words_line(struct ap_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A comment of one line, whatever characters names have. */
void ap_words_comment(struct ap_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the framework cannot be told, or what it runs instead. */
void ap_words_unsaid(struct ap_words *w, enum ap_unsaid_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Comments: the hybrid as --hybrid takes it, its step time beside the plan's, its memory. */
void ap_words_head(struct ap_words *w);

/* Tells of layers and operators that lie where no word puts them. */
void ap_words_stages(struct ap_words *w);

/* Layers per part, [segment * nstage + stage]; NULL: there is one part, or they are not known, which
 * ap_words_stages() tells. */
const int64_t *ap_words_parts(const struct ap_words *w);

/* Is an operator of this type in the graph? */
bool ap_words_has(const struct ap_words *w, const char *type);

/* Tokens of a sample; 0: samples are no sequences. */
int64_t ap_words_tokens(const struct ap_words *w);

/* The start of a command for torchrun, up to what it runs; NPROC_PER_NODE is demanded where servers have
 * different numbers of devices. */
void ap_words_torchrun(struct ap_words *w);

/* Parts of an expert by tp: 1 or tp. */
int64_t ap_words_expert_tensor(const struct ap_words *w);

#endif
