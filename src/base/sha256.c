/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

void ap_sha256_hex(const void *p, size_t len, char hex[65])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, len, p);
	sha256_digest(&sha, sizeof digest, digest);
	base16_encode_update(hex, sizeof digest, digest);
	hex[64] = '\0';
}
