/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of feed-forward parts. */
#ifndef AP_MODEL_ACTIVATION_H
#define AP_MODEL_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

enum ap_model_activation { /* activation of the feed-forward part; gated ones: w2 (f(w1 x) * w3 x) */
	AP_MODEL_GELU,
	AP_MODEL_RELU,
	AP_MODEL_SQUARED_RELU,
	AP_MODEL_SWIGLU,
	AP_MODEL_GEGLU,
	AP_MODEL_ACTIVATIONS
};

/* Name i: "gelu", "relu", "squared_relu", "swiglu", "geglu"; NULL past the end. */
const char *ap_model_activation_name(size_t i);

/* AP_MODEL_ACTIVATIONS: unknown. */
enum ap_model_activation ap_model_activation_find(const char *name);

/* Does it have a gate? */
bool ap_model_activation_gated(enum ap_model_activation a);

#endif
