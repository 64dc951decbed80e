/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of models with an encoder: BERT, ViT, T5. */
#ifndef AP_MODEL_HF_ENCODER_H
#define AP_MODEL_HF_ENCODER_H

#include "model/hf_keys.h"

/* model_type i that is built; NULL past the end. */
const char *ap_hf_encoder_type_at(size_t i);

/* Reads a configuration; *known is false, and nothing else done, if it is not of one of these types. What it
 * reports is as ap_hf_read() says. */
enum ap_status ap_hf_encoder_read(struct ap_hf_keys *r, const struct ap_hf_options *o, bool *known,
	struct ap_hf_net *out);

#endif
