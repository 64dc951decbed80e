/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdint.h>
#include <sha2.h>

void ap_sha256_hex(const void *p, size_t len, char hex[65])
{
	SHA256Data(p, len, hex);
}
