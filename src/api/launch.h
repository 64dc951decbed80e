/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan is said to other frameworks, read as settings: a MindFormers YAML, and Megatron's arguments
 * in a log, a file or a shell script. launch.def lists the words. */
#ifndef AP_API_LAUNCH_H
#define AP_API_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"

struct ap_json;

enum ap_launch_language {
	AP_LAUNCH_NONE,
	AP_LAUNCH_MINDFORMERS,
	AP_LAUNCH_MEGATRON,
	AP_LAUNCH_DEEPSPEED /* says no network */
};

/* The language of a text, by its content; none of JSON but DeepSpeed's configuration. O(len). */
enum ap_launch_language ap_launch_language(const char *text, size_t len);

/* "a MindFormers YAML", "a file of Megatron's arguments", "a configuration of DeepSpeed". */
const char *ap_launch_text(enum ap_launch_language language);

/*
 * Makes settings of the text, as a document that --config takes, each value at the line that says it. Warns
 * of words that change the price and that are not read. Reports what contradicts, with its line,
 * AP_MEANING; AP_SYNTAX for what is no YAML. Words that describe the model are not read.
 */
enum ap_status ap_launch_settings(struct ap_ctx *ctx, enum ap_launch_language language, const char *file,
	const char *text, size_t len, struct ap_json **out);

/* The text as a document: a YAML's sections, or an object of Megatron's arguments, with _ for - in names;
 * each value at the line that says it. AP_SYNTAX, AP_LIMIT. */
enum ap_status ap_launch_document(struct ap_ctx *ctx, enum ap_launch_language language, const char *file,
	const char *text, size_t len, struct ap_json **out);

/* Our words for an option of Megatron ("tensor-model-parallel-size"), "--hybrid tp="; NULL if it is
 * none. */
const char *ap_launch_option(const char *name, size_t len);

#endif
