/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of Hugging Face transformers (config.json): the dimensions and names of a network. */
#ifndef AP_MODEL_HF_H
#define AP_MODEL_HF_H

#include "base/json.h"
#include "model/experts.h"
#include "model/loss.h"
#include "model/model.h"

struct ap_decoder;

enum ap_hf_names { /* how parameters are spelled */
	AP_NAMES_HF, /* as the index of the weights does */
	AP_NAMES_MINDFORMERS,
	AP_NAMES
};

struct ap_hf_options {
	int64_t batch; /* samples of a step; 0: AP_HF_BATCH, with a note */
	int64_t sequence; /* tokens of a sample; 0: the configuration's limit, with a note,
		unless that is large */
	enum ap_model_loss loss;
	enum ap_hf_names names;
	int64_t masked; /* words of a sample that BERT predicts; 0: all */
	int64_t further; /* layers that predict tokens behind the next, of those that the configuration has */
	bool flash;
	enum ap_experts_way experts;
	bool shared_beside; /* as of struct ap_experts */
	enum ap_dtype dtype; /* AP_DTYPE_COUNT: as the configuration says */
	const char *name; /* of the graph */
};

/* A network to be built: of dimensions, a struct that its maker knows. */
typedef struct ap_model *ap_hf_make_fn(struct ap_arena *arena, const void *dimensions);

struct ap_hf_net {
	ap_hf_make_fn *make;
	const void *dimensions; /* struct ap_decoder and the like */
	double largest; /* elements of its largest tensor, about */
	const struct ap_decoder *decoder; /* dimensions, where it is one; else NULL */
};

enum { AP_HF_BATCH = 256, AP_HF_SEQUENCE_MOST = 8192 };

/* Is it meant as a configuration of a model? Issues no messages. */
bool ap_hf_is_one(const struct ap_jv *root);

/* Name i: "hf", "mindformers"; NULL past the end. */
const char *ap_hf_names_at(size_t i);

/* model_type i that is built; NULL past the end. */
const char *ap_hf_type_at(size_t i);

/* Reads a configuration. Reports, at its key: what is missing, of the wrong type, out of range or
 * contradicts another key; keys that change shapes and are not understood; models that are not built
 * (AP_MEANING). AP_USAGE if only an option can say what is missing. O(members). */
enum ap_status ap_hf_read(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_hf_options *options,
	struct ap_hf_net *out);

#endif
