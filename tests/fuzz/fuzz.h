/* SPDX-License-Identifier: MIT */
/*
 * The targets of the fuzzer: one function each, which takes any bytes. A target must end soon,
 * whatever the bytes, keep nothing from one call to the next, and stop the program by fuzz_wrong
 * when a promise of the code is broken; crashes and hangs are seen by the driver (fuzz.c).
 */
#ifndef CW_TESTS_FUZZ_H
#define CW_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Of text.c. */
void fuzz_options(const uint8_t *bytes, size_t size);
void fuzz_suppressions(const uint8_t *bytes, size_t size);
void fuzz_names(const uint8_t *bytes, size_t size);
void fuzz_csv(const uint8_t *bytes, size_t size);
void fuzz_json(const uint8_t *bytes, size_t size);
/* Of files.c. */
void fuzz_elf(const uint8_t *bytes, size_t size);
void fuzz_dwarf(const uint8_t *bytes, size_t size);
void fuzz_config(const uint8_t *bytes, size_t size);
void fuzz_model(const uint8_t *bytes, size_t size);
void fuzz_http(const uint8_t *bytes, size_t size);
/* Of compare.c. */
void fuzz_diff(const uint8_t *bytes, size_t size);
void fuzz_merge(const uint8_t *bytes, size_t size);
void fuzz_torch(const uint8_t *bytes, size_t size);
/* Of calls.c. */
void fuzz_calls(const uint8_t *bytes, size_t size);
/* Of check/fuzz.c, which has mutations of its own for a run without libFuzzer. */
int fuzz_live(const uint8_t *bytes, size_t size);

/* A file with these bytes; its path. One at a time. */
const char *fuzz_file(const uint8_t *bytes, size_t size);
/* The bytes with a NUL behind, cut off at the first NUL; to be freed. */
char *fuzz_text(const uint8_t *bytes, size_t size);
/* Says what is wrong, and aborts. */
void fuzz_wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
