/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs, that users give in the place of JSON. */
#ifndef AP_BASE_FOREIGN_H
#define AP_BASE_FOREIGN_H

#include <stddef.h>

#include "base/ctx.h"

/*
 * What a text is that is none of our formats, and what would be right: "is a hostfile, ..; ..", for a
 * message. NULL where it is nothing that is known; so is all that begins as JSON does, and binary text
 * as protobuf. In the run arena. O(len).
 */
const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len);

#endif
