/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the program and of the library; meson.build says the same (a lint test compares). */
#ifndef AUTOPAR_VERSION_H
#define AUTOPAR_VERSION_H

#define AP_VERSION "0.3.0"

#endif
