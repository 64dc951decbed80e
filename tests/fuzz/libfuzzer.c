/* SPDX-License-Identifier: Apache-2.0 */
/* Hands libFuzzer the target, and lends it the faults of mutate.c, beside its own. */
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
	size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_targets->input(data, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	if (seed % 4 == 0)
		return LLVMFuzzerMutate(data, size, most);
	return fuzz_mutate(data, size, most, seed, data, 0);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
	size_t most, unsigned seed)
{
	if (na > most)
		na = most;
	memcpy(out, a, na);
	return fuzz_mutate(out, na, most, seed, b, nb);
}
