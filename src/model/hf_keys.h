/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a configuration of Hugging Face transformers, read one by one; each fault is told at its
 * place, and which keys were asked for is known at the end. */
#ifndef AP_MODEL_HF_KEYS_H
#define AP_MODEL_HF_KEYS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"
#include "model/activation.h"
#include "model/hf.h"

enum { AP_HF_MOST = 1 << 28, AP_HF_LAYERS_MOST = 1000 };

struct ap_hf_keys {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root; /* the object whose members are read */
	const char *type; /* of the model */
	const char *part; /* type of the whole of which root is a part; NULL: root is the whole */
	AP_VEC(const char *) asked; /* keys that were looked up */
};

/* Keys of one meaning, by the names that architectures give it; NULL ends them. */
typedef const char *const ap_hf_keys_of[8];
extern ap_hf_keys_of ap_hf_hidden_keys, ap_hf_layer_keys, ap_hf_head_keys, ap_hf_kv_head_keys,
	ap_hf_head_size_keys, ap_hf_inner_keys, ap_hf_vocabulary_keys, ap_hf_position_keys,
	ap_hf_expert_keys, ap_hf_active_keys, ap_hf_activation_keys;

/* Reports at a value. */
#define AP_HF_FAULT(r, v, check, ...) \
	ap_json_report((r)->ctx, (r)->doc, v, AP_ERROR, AP_MEANING, NULL, check, __VA_ARGS__)

/* The member, unless it is absent or null, which mean the default. */
const struct ap_jv *ap_hf_member(struct ap_hf_keys *r, const char *key);

/* The member of one of the keys; NULL if there is none. Of several, the first; the others must say the
 * same. */
const struct ap_jv *ap_hf_one_of(struct ap_hf_keys *r, const char *const *keys);

/* A whole number from 1 to most; otherwise (0: required) where there is none. 1 after a report. */
int64_t ap_hf_count(struct ap_hf_keys *r, const char *const *keys, int64_t most, int64_t otherwise);

bool ap_hf_flag(struct ap_hf_keys *r, const char *key, bool otherwise);

/* The text of a member, one of these words (NULL ends them); word `otherwise` where there is none.
 * Word 0 after a report. */
const char *ap_hf_word(struct ap_hf_keys *r, const char *key, const char *const *words, int otherwise);

/* A flag that must have one value, since the other is not built. */
void ap_hf_want(struct ap_hf_keys *r, const char *key, bool value, const char *otherwise);

/* Tokens of a sample, of at most the positions that a key says, or else `otherwise`; learned: positions
 * have a table, so that there cannot be more. AP_USAGE if --sequence has to say it. */
enum ap_status ap_hf_sequence(struct ap_hf_keys *r, const struct ap_hf_options *o, int64_t otherwise,
	bool learned, int64_t *out);

/* The activation of the feed-forward part; plain: without a gate. */
enum ap_model_activation ap_hf_activation(struct ap_hf_keys *r, bool plain);

/* Reports that --masked-positions is for models that predict masked words. */
enum ap_status ap_hf_no_masks(struct ap_hf_keys *r);

/* The element type of weights and activations. */
enum ap_status ap_hf_dtype(struct ap_hf_keys *r, const struct ap_hf_options *o, enum ap_dtype *out);

/* Reports members that nobody asked for, and that look as if they changed shapes; and of those that change
 * none, values of another form. */
void ap_hf_check_rest(struct ap_hf_keys *r);

#endif
