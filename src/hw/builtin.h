/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of chips/ and chips/software/, built into the program. */
#ifndef AP_HW_BUILTIN_H
#define AP_HW_BUILTIN_H

struct ap_builtin {
	const char *name; /* file name without ".json"; NULL in the last row */
	const char *text;
};

extern const struct ap_builtin ap_builtin_chips[];
extern const struct ap_builtin ap_builtin_software[];

#endif
