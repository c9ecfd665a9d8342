/* SPDX-License-Identifier: MIT */
/*
 * The header of a GGUF file. See facts.h. Its form is that of the specification (docs/gguf.md of
 * ggml): magic, version, two counts, keys with values, and name, sides and type of each tensor. It
 * is read once, from the beginning; what is passed over costs no memory. Each step takes at least a
 * byte of the header, whose length is bounded, so it ends whatever the counts say.
 */
#include "cli/estimate/facts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"

#define BUFFER      65536
#define HEADER_MAX  ((uint64_t)256 << 20) /* the tokens of a vocabulary take some 10 MiB */
#define NAME_MAX_   256
#define SIDES_MAX   4 /* GGML_MAX_DIMS */
#define VERSION_MIN 2 /* before it, counts have 32 bits */
#define VERSION_MAX 3
#define LAYERS_MAX  1024 /* whose numbers are told apart */

enum type { TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9 };

/* Bytes of a plain value. */
static const uint8_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static const struct tensor_type {
    uint32_t number, block, bytes;
} types[] = {
#define X(number, block, bytes) {number, block, bytes},
#include "cli/estimate/gguf_types.def"
#undef X
};

struct reader {
    struct cw_facts *facts;
    int fd;
    uint64_t at, end; /* of the header that may be read */
    size_t have, used;
    char buf[BUFFER];
};

/* A number of each layer. */
struct list {
    uint32_t value[LAYERS_MAX];
    uint64_t count; /* 0: not said */
};

/* What is said of the shape beside its fields. */
struct said {
    uint64_t window_every, shared_experts, split, tokens;
    uint64_t mla_key, mla_value, value, window_key;
    struct list windows, kv_heads; /* has it a window; its keys' heads */
    int has_output;
};

/* ---- bytes ---- */

static int cut_off(struct reader *reader)
{
    return cw_facts_refuse(reader->facts, "is damaged or cut off at byte %ju of its header",
                           (uintmax_t)reader->at);
}

static int fill(struct reader *reader)
{
    uint64_t rest = reader->end - reader->at;
    ssize_t got = rest > 0 ? pread(reader->fd, reader->buf, rest < BUFFER ? (size_t)rest : BUFFER,
                                   (off_t)reader->at)
                           : 0;

    if (got <= 0)
        return cut_off(reader);
    reader->have = (size_t)got;
    reader->used = 0;
    return 0;
}

static int take(struct reader *reader, void *to, size_t len)
{
    char *out = to;

    while (len > 0) {
        size_t step = reader->have - reader->used;

        if (step == 0) {
            if (fill(reader) != 0)
                return -1;
            continue;
        }
        step = step < len ? step : len;
        memcpy(out, reader->buf + reader->used, step);
        reader->used += step;
        reader->at += step;
        out += step;
        len -= step;
    }
    return 0;
}

static int skip(struct reader *reader, uint64_t len)
{
    size_t here = reader->have - reader->used;

    if (len > reader->end - reader->at)
        return cut_off(reader);
    reader->at += len;
    if (len <= here)
        reader->used += (size_t)len;
    else
        reader->have = reader->used = 0;
    return 0;
}

/* GGUF is little-endian, as the machines are that this runs on. */
static int take_32(struct reader *reader, uint32_t *out)
{
    return take(reader, out, sizeof(*out));
}

static int take_64(struct reader *reader, uint64_t *out)
{
    return take(reader, out, sizeof(*out));
}

/* What does not fit into `text` is passed over, and the text is "" then. */
static int take_string(struct reader *reader, char text[NAME_MAX_])
{
    uint64_t len;

    text[0] = '\0';
    if (take_64(reader, &len) != 0)
        return -1;
    if (len >= NAME_MAX_)
        return skip(reader, len);
    if (take(reader, text, (size_t)len) != 0)
        return -1;
    text[len] = '\0';
    return 0;
}

static int take_number(struct reader *reader, uint32_t type, uint64_t *out)
{
    *out = 0;
    if (take(reader, out, widths[type]) != 0)
        return -1;
    return 0;
}

/* ---- keys ---- */

static int is_plain(uint32_t type)
{
    return type < CW_ARRAY_LEN(widths) && widths[type] != 0;
}

static int is_whole(uint32_t type)
{
    return is_plain(type) && type != 6 && type != 12; /* not those of 32 and 64 bits with a point */
}

/* Behind "ARCHITECTURE.". */
static int put_number(struct reader *reader, struct said *said, const char *key, uint64_t value)
{
    static const struct {
        const char *key;
        size_t offset;
    } others[] = {
        {"attention.sliding_window_pattern", offsetof(struct said, window_every)},
        {"expert_shared_count", offsetof(struct said, shared_experts)},
        {"attention.key_length_mla", offsetof(struct said, mla_key)},
        {"attention.value_length_mla", offsetof(struct said, mla_value)},
        {"attention.value_length", offsetof(struct said, value)},
        {"attention.key_length_swa", offsetof(struct said, window_key)},
    };
    enum cw_shape_field field = cw_shape_find_gguf(key, strlen(key));

    for (size_t i = 0; i < CW_ARRAY_LEN(others); i++)
        if (strcmp(others[i].key, key) == 0)
            *(uint64_t *)((char *)said + others[i].offset) = value;
    if (!*reader->facts->why && (strncmp(key, "ssm.", 4) == 0 || strncmp(key, "wkv.", 4) == 0))
        cw_facts_refuse(reader->facts,
                        "has %s: some of its layers are no attention, and their memory is not "
                        "known here",
                        key);
    if (field == CW_SHAPE_COUNT)
        return 0;
    reader->facts->has_shape = 1;
    return cw_facts_set(reader->facts, field, key, value);
}

static int take_plain(struct reader *reader, struct said *said, const char *key, uint32_t type)
{
    const char *inner = strchr(key, '.');
    uint64_t value;

    if (take_number(reader, type, &value) != 0)
        return -1;
    if (strcmp(key, "split.count") == 0)
        said->split = value;
    if (!is_whole(type) || !inner || strncmp(key, "general.", 8) == 0 ||
        strncmp(key, "tokenizer.", 10) == 0)
        return 0;
    return put_number(reader, said, inner + 1, value);
}

/* A number for each layer: usable if all are the same. */
static int take_list(struct reader *reader, struct said *said, const char *key, uint32_t type,
                     uint64_t count)
{
    enum cw_shape_field field = cw_shape_find_gguf(key, strlen(key));
    struct list *list = strcmp(key, "attention.sliding_window_pattern") == 0 ? &said->windows
                        : field == CW_SHAPE_kv_heads                         ? &said->kv_heads
                                                                             : NULL;
    uint64_t first = 0, value;

    for (uint64_t i = 0; i < count; i++) {
        if (take_number(reader, type, &value) != 0)
            return -1;
        if (list && i < LAYERS_MAX)
            list->value[i] = (uint32_t)value;
        if (i == 0)
            first = value;
        else if (value != first && field != CW_SHAPE_COUNT)
            reader->facts->varies |= 1u << field;
    }
    if (list)
        list->count = count;
    return field != CW_SHAPE_COUNT && count > 0 && first != 0
               ? cw_facts_set(reader->facts, field, key, first)
               : 0;
}

static int take_array(struct reader *reader, struct said *said, const char *key)
{
    const char *inner = strchr(key, '.');
    uint32_t type;
    uint64_t count, len;

    if (take_32(reader, &type) != 0 || take_64(reader, &count) != 0)
        return -1;
    if (strcmp(key, "tokenizer.ggml.tokens") == 0)
        said->tokens = count;
    if (is_whole(type) && inner && strncmp(key, "tokenizer.", 10) != 0)
        return take_list(reader, said, inner + 1, type, count);
    if (is_plain(type))
        return count > HEADER_MAX ? cut_off(reader) : skip(reader, count * widths[type]);
    if (type != TYPE_STRING)
        return cut_off(reader); /* llama.cpp has no arrays of arrays either */
    for (uint64_t i = 0; i < count; i++)
        if (take_64(reader, &len) != 0 || skip(reader, len) != 0)
            return -1;
    return 0;
}

static int take_key(struct reader *reader, struct said *said)
{
    char key[NAME_MAX_], text[NAME_MAX_];
    uint32_t type;

    if (take_string(reader, key) != 0 || take_32(reader, &type) != 0)
        return -1;
    if (type == TYPE_ARRAY)
        return take_array(reader, said, key);
    if (is_plain(type))
        return take_plain(reader, said, key, type);
    if (type != TYPE_STRING)
        return cut_off(reader);
    if (take_string(reader, text) != 0)
        return -1;
    if (strcmp(key, "general.architecture") == 0)
        snprintf(reader->facts->name, CW_FACTS_NAME, "%s", cw_printable_clean_string(text));
    return 0;
}

/* ---- tensors ---- */

static const struct tensor_type *type_of(uint32_t number)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(types); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

static int take_tensor(struct reader *reader, struct said *said)
{
    struct cw_estimate_stored *stored = &reader->facts->stored;
    const struct tensor_type *type;
    uint64_t elements = 1, side, offset;
    uint32_t sides, number;
    char name[NAME_MAX_];

    if (take_string(reader, name) != 0 || take_32(reader, &sides) != 0)
        return -1;
    if (sides > SIDES_MAX)
        return cut_off(reader);
    for (uint32_t i = 0; i < sides; i++) {
        if (take_64(reader, &side) != 0)
            return -1;
        elements = cw_times(elements, side);
    }
    if (take_32(reader, &number) != 0 || take_64(reader, &offset) != 0)
        return -1;
    type = type_of(number);
    if (!type)
        return cw_facts_refuse(reader->facts, "has a tensor '%.64s' of the unknown type %u",
                               cw_printable_clean_string(name), (unsigned)number);
    said->has_output |= strcmp(name, "output.weight") == 0;
    stored->parameters = cw_plus(stored->parameters, elements);
    stored->bytes = cw_plus(stored->bytes, cw_times(cw_parts(elements, type->block), type->bytes));
    return 0;
}

/* ---- the whole ---- */

static int check_file(const struct reader *reader, const struct said *said, uint64_t size)
{
    struct cw_facts *facts = reader->facts;

    if (said->split > 1)
        return cw_facts_refuse(facts,
                               "is one of %ju parts: join them with llama-gguf-split "
                               "--merge, or name a config.json",
                               (uintmax_t)said->split);
    if (facts->stored.bytes == 0)
        return cw_facts_refuse(facts, "has no tensors");
    if (facts->stored.bytes > size - reader->at)
        return cw_facts_refuse(facts,
                               "is cut off: its tensors take %ju bytes, and the file has %ju",
                               (uintmax_t)facts->stored.bytes, (uintmax_t)size);
    return 0;
}

/* The heads of keys, where those of layers with a window and of the others are two numbers. */
static void put_kinds(struct cw_facts *facts, const struct said *said)
{
    struct cw_shape *shape = &facts->shape;
    uint64_t heads[2] = {0, 0};

    if (said->window_key != 0 && said->window_key <= cw_shape_row(CW_SHAPE_head_dim)->most) {
        shape->full_head_dim = shape->head_dim;
        shape->head_dim = said->window_key;
    }
    if (said->kv_heads.count != said->windows.count || said->windows.count > LAYERS_MAX)
        return;
    for (uint64_t i = 0; i < said->windows.count; i++) {
        uint64_t value = said->kv_heads.value[i], *kind = &heads[said->windows.value[i] != 0];

        if (value > cw_shape_row(CW_SHAPE_kv_heads)->most || (*kind != 0 && *kind != value))
            return;
        *kind = value;
    }
    if (heads[0] == 0 || heads[1] == 0)
        return;
    shape->full_kv_heads = heads[0];
    shape->kv_heads = heads[1];
    facts->varies &= ~(1u << CW_SHAPE_kv_heads);
}

/* llama.cpp knows of most architectures which layers have a window, and of the rest, none. */
static void put_window(struct cw_shape *shape, const struct said *said,
                       const struct cw_family *family)
{
    uint64_t every = said->window_every != 0 ? said->window_every : family->every;

    if (shape->window == 0)
        shape->window = family->chunk;
    if (said->windows.count != 0) {
        for (uint64_t i = 0; i < said->windows.count && i < LAYERS_MAX; i++)
            shape->window_layers += said->windows.value[i] != 0;
    } else if (every > 1) {
        shape->window_layers = shape->layers - shape->layers / every;
    }
    if (shape->window_layers == 0)
        shape->window = 0;
}

static void put_latent(struct cw_shape *shape, const struct said *said)
{
    uint64_t key = said->mla_key != 0 ? said->mla_key : shape->head_dim;

    if (shape->kv_rank == 0)
        return;
    shape->nope_dim = key > shape->rope_dim ? key - shape->rope_dim : 0;
    shape->value_dim = said->mla_value != 0 ? said->mla_value : said->value;
}

static int finish(struct reader *reader, const struct said *said, uint64_t size)
{
    struct cw_facts *facts = reader->facts;
    const struct cw_family *family = cw_family_of(facts->name, 1);
    struct cw_shape *shape = &facts->shape;

    if (check_file(reader, said, size) != 0)
        return -1;
    facts->has_weights = facts->is_gguf = 1;
    if (!*facts->why && !*family->names)
        cw_facts_refuse(facts, "is of %s, which is not known here",
                        *facts->name ? facts->name : "an unnamed architecture");
    if (*facts->why)
        return cw_facts_drop_shape(facts);
    if (shape->vocab == 0)
        shape->vocab = said->tokens <= cw_shape_row(CW_SHAPE_vocab)->most ? said->tokens : 0;
    shape->plain_ffn = family->plain_ffn;
    shape->tied = !said->has_output;
    if (shape->shared_ffn == 0 && said->shared_experts <= cw_shape_row(CW_SHAPE_experts)->most)
        shape->shared_ffn = said->shared_experts * shape->expert_ffn;
    put_kinds(facts, said);
    put_window(shape, said, family);
    put_latent(shape, said);
    return 0;
}

static int read_all(struct reader *reader, uint64_t size)
{
    static struct said said;
    uint64_t tensors, keys;
    uint32_t magic, version;

    said = (struct said){.split = 0};
    if (take_32(reader, &magic) != 0 || take_32(reader, &version) != 0)
        return -1;
    if (version < VERSION_MIN || version > VERSION_MAX)
        return cw_facts_refuse(reader->facts, "is GGUF of version %u; versions %d and %d are known",
                               (unsigned)version, VERSION_MIN, VERSION_MAX);
    if (take_64(reader, &tensors) != 0 || take_64(reader, &keys) != 0)
        return -1;
    for (uint64_t i = 0; i < keys; i++)
        if (take_key(reader, &said) != 0)
            return -1;
    for (uint64_t i = 0; i < tensors; i++)
        if (take_tensor(reader, &said) != 0)
            return -1;
    return finish(reader, &said, size);
}

int cw_facts_read_gguf(struct cw_facts *facts, int fd, uint64_t size)
{
    static struct reader reader;

    reader.facts = facts;
    reader.fd = fd;
    reader.at = 0;
    reader.end = size < HEADER_MAX ? size : HEADER_MAX;
    reader.have = reader.used = 0;
    return read_all(&reader, size);
}
