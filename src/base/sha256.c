/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <string.h>

bool ap_sha256_is_hex(const char *s, size_t len)
{
	return len == AP_SHA256_HEX && strspn(s, "0123456789abcdef") >= len;
}

static void finish(struct sha256_ctx *sha, char hex[AP_SHA256_HEX + 1])
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_digest(sha, sizeof digest, digest);
	base16_encode_update(hex, sizeof digest, digest);
	hex[AP_SHA256_HEX] = '\0';
}

void ap_sha256_hex(const void *p, size_t len, char hex[AP_SHA256_HEX + 1])
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, len, p);
	finish(&sha, hex);
}

bool ap_sha256_read(ptrdiff_t (*read)(void *user, void *piece, size_t len), void *user,
	char hex[AP_SHA256_HEX + 1])
{
	uint8_t piece[16 << 10];
	struct sha256_ctx sha;
	ptrdiff_t n;

	sha256_init(&sha);
	while ((n = read(user, piece, sizeof piece)) > 0)
		sha256_update(&sha, (size_t)n, piece);
	finish(&sha, hex);
	return !n;
}
