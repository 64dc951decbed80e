/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 through nettle. */
#ifndef AP_BASE_SHA256_H
#define AP_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>

enum { AP_SHA256_HEX = 64 }; /* digits of a digest */

/* Is s[0..len) a digest in lower-case hexadecimal? */
bool ap_sha256_is_hex(const char *s, size_t len);

/* Lower-case hexadecimal digest of p[0..len), NUL-terminated. */
void ap_sha256_hex(const void *p, size_t len, char hex[AP_SHA256_HEX + 1]);

/* Digest of what read() returns piece by piece until 0; false if it returns a negative number. */
bool ap_sha256_read(ptrdiff_t (*read)(void *user, void *piece, size_t len), void *user,
	char hex[AP_SHA256_HEX + 1]);

#endif
