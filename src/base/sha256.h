/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 through nettle. */
#ifndef AP_BASE_SHA256_H
#define AP_BASE_SHA256_H

#include <stddef.h>

/* Lower-case hexadecimal digest of p[0..len), NUL-terminated. */
void ap_sha256_hex(const void *p, size_t len, char hex[65]);

#endif
