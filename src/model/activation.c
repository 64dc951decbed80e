/* SPDX-License-Identifier: Apache-2.0 */
#include "model/activation.h"

#include <assert.h>
#include <string.h>

#include "base/vec.h"

const char *ap_model_activation_name(size_t i)
{
	static const char *const names[] = {"gelu", "relu", "squared_relu", "swiglu", "geglu"};

	static_assert(AP_COUNT(names) == AP_MODEL_ACTIVATIONS, "an activation without a name");
	return i < AP_MODEL_ACTIVATIONS ? names[i] : NULL;
}

enum ap_model_activation ap_model_activation_find(const char *name)
{
	int a = 0;

	while (a < AP_MODEL_ACTIVATIONS && strcmp(ap_model_activation_name((size_t)a), name) != 0)
		a++;
	return (enum ap_model_activation)a;
}

bool ap_model_activation_gated(enum ap_model_activation a)
{
	return a == AP_MODEL_SWIGLU || a == AP_MODEL_GEGLU;
}
