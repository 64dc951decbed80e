/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that are made for several processors: AP_WIDE before a function compiles it for any processor, and
 * for those with vectors of four and of eight doubles, of which the loader takes the one that runs here.
 * All compute the same numbers to the last bit, as nothing is contracted or reordered: only for
 * functions whose loops compilers vectorize, and which run long.
 */
#ifndef AP_BASE_WIDE_H
#define AP_BASE_WIDE_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define AP_WIDE /* the choice is made before a sanitizer is ready */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AP_WIDE
#endif

#if !defined(AP_WIDE) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__)
#define AP_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#elif !defined(AP_WIDE)
#define AP_WIDE
#endif

#endif
