/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs that users pass instead of JSON. */
#ifndef AP_BASE_FOREIGN_H
#define AP_BASE_FOREIGN_H

#include <stddef.h>

#include "base/ctx.h"

/* Describes a text in a foreign format and what is expected, for a message: "is a hostfile, ..;
 * ..". Returns NULL if it is not recognized, which includes anything that begins like JSON, and
 * binary text such as protobuf. In the run arena. O(len). */
const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len);

#endif
