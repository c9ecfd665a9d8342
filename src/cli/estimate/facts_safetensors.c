/* SPDX-License-Identifier: MIT */
/* The header of a file in safetensors. See facts.h. Its form: 8 bytes with the header's length,
 * then JSON with type and shape of each tensor (github.com/huggingface/safetensors, README). */
#include "cli/estimate/facts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/input/json_walk.h"

#define HEADER_MAX UINT64_C(100000000) /* of the safetensors library */
#define DIGITS_MAX 21

static const struct dtype {
    const char *name;
    uint8_t bits, is_real; /* packed weights are kept as integers */
} dtypes[] = {
    {"C64", 64, 1},        {"F64", 64, 1},    {"F32", 32, 1},    {"F16", 16, 1},
    {"BF16", 16, 1},       {"F8_E4M3", 8, 1}, {"F8_E5M2", 8, 1}, {"F8_E4M3FNUZ", 8, 1},
    {"F8_E5M2FNUZ", 8, 1}, {"F8_E8M0", 8, 0}, {"F6_E2M3", 6, 1}, {"F6_E3M2", 6, 1},
    {"F4", 4, 1},          {"I64", 64, 0},    {"U64", 64, 0},    {"I32", 32, 0},
    {"U32", 32, 0},        {"I16", 16, 0},    {"U16", 16, 0},    {"I8", 8, 0},
    {"U8", 8, 0},          {"BOOL", 8, 0},
};

struct header {
    struct cw_facts *facts;
    char name[CW_JSON_WALK_KEY]; /* of the tensor that is being read */
    const struct dtype *dtype;
    uint64_t elements;
    uint64_t parameters, bits; /* so far */
    int is_open, has_packed;
};

static void finish_tensor(struct header *header)
{
    if (!header->is_open)
        return;
    header->is_open = 0;
    if (!header->dtype)
        return;
    header->bits = cw_plus(header->bits, cw_times(header->elements, header->dtype->bits));
    header->parameters = cw_plus(header->parameters, header->elements);
    header->has_packed |= !header->dtype->is_real;
}

static int set_dtype(struct header *header, const char *text, size_t len)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(dtypes); i++)
        if (strlen(dtypes[i].name) == len && memcmp(dtypes[i].name, text, len) == 0) {
            header->dtype = &dtypes[i];
            return 0;
        }
    return cw_facts_refuse(header->facts, "has a tensor '%.64s' of an unknown type '%.*s'",
                           header->name, len < 16 ? (int)len : 16, text);
}

static int set_dimension(struct header *header, const char *text, size_t len)
{
    char digits[DIGITS_MAX];

    if (len >= sizeof(digits) || text[0] == '-')
        return cw_facts_refuse(header->facts, "has a tensor '%.64s' with a side of %.*s",
                               header->name, len < 24 ? (int)len : 24, text);
    memcpy(digits, text, len);
    digits[len] = '\0';
    header->elements = cw_times(header->elements, strtoull(digits, NULL, 10));
    return 0;
}

static int on_value(void *arg, const struct cw_json_at *at, enum cw_json_kind kind,
                    const char *text, size_t len)
{
    struct header *header = arg;

    if (at->depth != 2 || strcmp(at->key[0], "__metadata__") == 0)
        return 0;
    if (!header->is_open || strcmp(header->name, at->key[0]) != 0) {
        finish_tensor(header);
        header->is_open = 1;
        header->dtype = NULL;
        header->elements = 1;
        strcpy(header->name, at->key[0]);
    }
    if (strcmp(at->key[1], "dtype") == 0 && kind == CW_JSON_IS_STRING)
        return set_dtype(header, text, len);
    return strcmp(at->key[1], "shape") == 0 && kind == CW_JSON_IS_NUMBER
               ? set_dimension(header, text, len)
               : 0;
}

int cw_facts_read_safetensors(struct cw_facts *facts, int fd, uint64_t size)
{
    struct header header = {.facts = facts};
    unsigned char begin[8];
    uint64_t len = 0;
    int rc;

    if (pread(fd, begin, sizeof(begin), 0) != (ssize_t)sizeof(begin))
        return cw_facts_refuse(facts, "is cut off");
    for (unsigned i = 0; i < sizeof(begin); i++)
        len |= (uint64_t)begin[i] << (8 * i);
    if (len > HEADER_MAX || len > size - sizeof(begin))
        return cw_facts_refuse(facts,
                               "is damaged or cut off: its header would take %ju bytes of %ju",
                               (uintmax_t)len, (uintmax_t)size);
    rc = cw_json_walk(fd, sizeof(begin), len, on_value, &header, facts->why, sizeof(facts->why));
    if (rc != 0)
        return rc;
    finish_tensor(&header);
    facts->stored.bytes = header.bits / 8;
    if (header.bits == UINT64_MAX || facts->stored.bytes > size - sizeof(begin) - len)
        return cw_facts_refuse(facts,
                               "is damaged or cut off: its tensors take %ju bytes, and the "
                               "file has %ju",
                               (uintmax_t)facts->stored.bytes, (uintmax_t)size);
    if (facts->stored.bytes == 0)
        return cw_facts_refuse(facts, "has no tensors");
    facts->stored.parameters = header.has_packed ? 0 : header.parameters;
    facts->has_weights = 1;
    return 0;
}
