/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as text: what is read back is the same profile, sources and aliases included. Keys are in one
 * order whatever order they were read in; numbers that hold anyway and have no source of their own are left
 * out. */
#ifndef AP_HW_PROFILE_WRITE_H
#define AP_HW_PROFILE_WRITE_H

#include "base/str.h"
#include "hw/chip.h"

/* Append "autopar-chip/1" or "autopar-software/1", with a newline at the end. O(text). */
void ap_chip_write(const struct ap_chip *chip, struct ap_str *out);
void ap_software_write(const struct ap_software *software, struct ap_str *out);

#endif
