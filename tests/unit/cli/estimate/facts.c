/* SPDX-License-Identifier: MIT */
/* What files of weights say, and how those are refused that say what cannot be. */
#include "facts_fixture.h"

TestSuite(facts, .init = command_listen);

/* ---- safetensors ---- */

static int read_header(const char *json, uint64_t data)
{
    char bytes[1024];
    uint64_t len = strlen(json);

    memcpy(bytes, &len, 8);
    memcpy(bytes + 8, json, len);
    return read_bytes(bytes, 8 + len, 8 + len + data);
}

Test(facts, a_header_of_safetensors_tells_parameters_and_bytes)
{
    const char *json = "{\"__metadata__\":{\"format\":\"pt\"},"
                       "\"a.b\":{\"dtype\":\"BF16\",\"shape\":[10,20],\"data_offsets\":[0,400]},"
                       "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[400,404]}}";

    cr_assert_eq(read_header(json, 404), 0, "%s", command_said);
    cr_expect_eq(facts.stored.parameters, 201);
    cr_expect_eq(facts.stored.bytes, 404);
    cr_expect_eq(read_header(json, 403), -1);
    cr_expect(strstr(command_said, "its tensors take 404 bytes"), "%s", command_said);
    cr_assert_eq(read_header("{\"q\":{\"dtype\":\"I32\",\"shape\":[8]}}", 32), 0);
    cr_expect_eq(facts.stored.parameters, 0, "packed weights have no number of parameters");
    cr_expect_eq(read_header("{\"q\":{\"dtype\":\"Q9\",\"shape\":[8]}}", 32), -1);
    cr_expect(strstr(command_said, "has a tensor 'q' of an unknown type 'Q9'"), "%s", command_said);
    cr_expect_eq(read_header("{\"q\":{\"dtype\":\"I32\",\"shape\":[-8]}}", 32), -1);
    cr_expect_eq(
        read_header("{\"q\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296,4294967296]}}", 32),
        -1);
    cr_expect_eq(read_header("{}", 0), -1);
    cr_expect(strstr(command_said, "has no tensors"), "%s", command_said);
    cr_expect_eq(read_bytes("\xff\xff\xff\xff\xff\xff\xff\x7f{", 9, 100), -1);
    cr_expect(strstr(command_said, "its header would take"), "%s", command_said);
}

/* The types of safetensors 0.8, and the bits of each. */
Test(facts, every_type_of_safetensors_is_counted)
{
    static const struct {
        const char *name;
        uint64_t bits;
    } types[] = {{"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
                 {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
                 {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                 {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
                 {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
                 {"I64", 64},    {"U64", 64}};
    char json[128];

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        snprintf(json, sizeof(json), "{\"q\":{\"dtype\":\"%s\",\"shape\":[32]}}", types[i].name);
        cr_assert_eq(read_header(json, 256), 0, "%s", command_said);
        cr_expect_eq(facts.stored.bytes, 4 * types[i].bits, "%s", types[i].name);
    }
}

/* ---- GGUF ---- */

static char gguf[4096];
static size_t gguf_len;

static void put(const void *bytes, size_t len)
{
    memcpy(gguf + gguf_len, bytes, len);
    gguf_len += len;
}

static void put_32(uint32_t value)
{
    put(&value, sizeof(value));
}

static void put_64(uint64_t value)
{
    put(&value, sizeof(value));
}

static void put_text(const char *text)
{
    put_64(strlen(text));
    put(text, strlen(text));
}

static void put_key(const char *key, uint32_t value)
{
    put_text(key);
    put_32(4);
    put_32(value);
}

static void begin(uint64_t tensors, uint64_t keys)
{
    gguf_len = 0;
    put("GGUF", 4);
    put_32(3);
    put_64(tensors);
    put_64(keys);
}

static void put_tensor(const char *name, uint64_t side, uint64_t other, uint32_t type)
{
    put_text(name);
    put_32(2);
    put_64(side);
    put_64(other);
    put_32(type);
    put_64(0);
}

/* A model of 2 layers and 10 tokens, whose tensors take 1,188 bytes. */
static void put_model(void)
{
    begin(2, 10);
    put_text("general.architecture");
    put_32(8);
    put_text("gemma2");
    put_key("gemma2.block_count", 2);
    put_key("gemma2.embedding_length", 64);
    put_key("gemma2.feed_forward_length", 256);
    put_key("gemma2.attention.head_count", 8);
    put_key("gemma2.attention.head_count_kv", 2);
    put_key("gemma2.attention.sliding_window", 32);
    put_key("gemma2.context_length", 128);
    put_text("tokenizer.ggml.tokens");
    put_32(9);
    put_32(8);
    put_64(10);
    for (int i = 0; i < 10; i++)
        put_text("token");
    put_text("gemma2.rope.freq_base");
    put_32(6);
    put_32(0x461c4000);
    put_tensor("token_embd.weight", 256, 2, 12);
    put_tensor("blk.0.ffn_norm.weight", 225, 1, 0);
}

Test(facts, a_header_of_gguf_tells_shape_and_bytes)
{
    put_model();
    cr_assert_eq(read_bytes(gguf, gguf_len, gguf_len + 1188), 0, "%s", command_said);
    cr_expect(facts.is_gguf && facts.has_shape && facts.has_weights);
    cr_expect_str_eq(facts.name, "gemma2");
    cr_expect_eq(facts.stored.parameters, 512 + 225);
    cr_expect_eq(facts.stored.bytes, 2 * 144 + 900);
    cr_expect_eq(facts.shape.kv_heads, 2);
    cr_expect_eq(facts.shape.vocab, 10);
    cr_expect_eq(facts.shape.window_layers, 1);
    cr_expect_eq(facts.shape.positions, 128);
    cr_expect_eq(facts.shape.tied, 1);
    cr_expect_eq(read_bytes(gguf, gguf_len, gguf_len + 1187), -1);
    cr_expect(strstr(command_said, "is cut off: its tensors take 1188 bytes"), "%s", command_said);
}

Test(facts, names_of_any_length_are_passed_over)
{
    static char name[1001];

    memset(name, 'n', 1000);
    begin(1, 2);
    put_key(name, 7);
    put_text("general.architecture");
    put_32(8);
    put_text(name);
    put_tensor(name, 1, 1, 0);
    cr_assert_eq(read_bytes(gguf, gguf_len, gguf_len + 4), 0, "%s", command_said);
    cr_expect_eq(facts.stored.bytes, 4);
}

/* Wherever it ends, it is refused in a line. */
Test(facts, a_header_of_gguf_may_end_anywhere)
{
    put_model();
    for (size_t len = 4; len < gguf_len; len++) {
        command_errors = 0;
        cr_expect_eq(read_bytes(gguf, len, len), -1, "%zu bytes", len);
        cr_expect_eq(command_errors, 1, "%zu bytes", len);
    }
}

static void refuse_gguf(const char *words)
{
    cr_expect_eq(read_bytes(gguf, gguf_len, sizeof(gguf)), -1);
    cr_expect(strstr(command_said, words), "%s\nnot %s", command_said, words);
}

Test(facts, counts_and_types_of_gguf_that_cannot_be_are_refused)
{
    begin(0, 0);
    gguf[4] = 1;
    refuse_gguf("is GGUF of version 1; versions 2 and 3 are known");
    begin(UINT64_MAX, 0);
    refuse_gguf("is damaged or cut off");
    begin(0, UINT64_MAX);
    refuse_gguf("is damaged or cut off");
    begin(0, 1);
    put_key("llama.block_count", 0);
    refuse_gguf("has a block_count of 0, which is not from 1 to 10000");
    begin(0, 1);
    put_text("split.count");
    put_32(4);
    put_32(3);
    refuse_gguf("is one of 3 parts");
    begin(1, 0);
    put_tensor("x", 1, 1, 99);
    refuse_gguf("has a tensor 'x' of the unknown type 99");
    begin(1, 0);
    put_tensor("x", UINT64_MAX, UINT64_MAX, 0);
    refuse_gguf("is cut off: its tensors take");
    begin(0, 1);
    put_text("a.b");
    put_32(9);
    put_32(8);
    put_64(UINT64_MAX);
    refuse_gguf("is damaged or cut off");
    begin(0, 1);
    put_text("a.b");
    put_32(9);
    put_32(9);
    put_64(1);
    refuse_gguf("is damaged or cut off");
    begin(0, 0);
    refuse_gguf("has no tensors");
}

static void put_list(const char *key, uint32_t type, const void *values, uint64_t count,
                     size_t width)
{
    put_text(key);
    put_32(9);
    put_32(type);
    put_64(count);
    put(values, count * width);
}

static void put_architecture(const char *name)
{
    put_text("general.architecture");
    put_32(8);
    put_text(name);
}

static void accept_gguf(void)
{
    put_tensor("output.weight", 1, 1, 0);
    cr_assert_eq(read_bytes(gguf, gguf_len, gguf_len + 4), 0, "%s", command_said);
}

Test(facts, lists_of_gguf_count_layers_with_a_window)
{
    static const uint8_t pattern[] = {1, 1, 1, 0};
    static const uint32_t heads[] = {16, 16, 16, 4}, others[] = {4, 4, 8, 4};

    for (unsigned is_odd = 0; is_odd <= 1; is_odd++) {
        begin(1, 7);
        put_architecture("gemma4");
        put_key("x.block_count", 4);
        put_key("x.attention.sliding_window", 32);
        put_key("x.attention.key_length", 512);
        put_key("x.attention.key_length_swa", 256);
        put_list("x.attention.sliding_window_pattern", 7, pattern, 4, 1);
        put_list("x.attention.head_count_kv", 4, is_odd ? others : heads, 4, 4);
        accept_gguf();
        cr_expect_eq(facts.shape.window_layers, 3);
        cr_expect_eq(facts.varies, is_odd ? 1u << CW_SHAPE_kv_heads : 0);
        cr_expect_eq(facts.shape.tied, 0);
        cr_expect_eq(facts.shape.head_dim, 256);
        cr_expect_eq(facts.shape.full_head_dim, 512);
        cr_expect(is_odd || (facts.shape.kv_heads == 16 && facts.shape.full_kv_heads == 4));
    }
}

/* llama.cpp knows by the architecture which layers have a window, and how long Llama 4's is. */
Test(facts, windows_of_gguf_are_those_of_llama_cpp)
{
    static const struct {
        const char *name;
        uint32_t said;
        uint64_t window, layers;
    } rows[] = {{"llama4", 0, 8192, 36},   {"gemma2", 4096, 4096, 24},  {"gemma3", 1024, 1024, 40},
                {"gpt-oss", 128, 128, 24}, {"cohere2", 4096, 4096, 36}, {"phi3", 2047, 0, 0},
                {"llama", 4096, 0, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin(1, 2 + (rows[i].said != 0));
        put_architecture(rows[i].name);
        put_key("x.block_count", 48);
        if (rows[i].said != 0)
            put_key("x.attention.sliding_window", rows[i].said);
        accept_gguf();
        cr_expect_eq(facts.shape.window, rows[i].window, "%s", rows[i].name);
        cr_expect_eq(facts.shape.window_layers, rows[i].layers, "%s", rows[i].name);
    }
}

/* Their weights are known to the byte. */
Test(facts, architectures_of_gguf_that_are_not_known_have_weights_alone)
{
    static const char *const names[] = {"rwkv7", "bert", "new"};

    for (size_t i = 0; i <= sizeof(names) / sizeof(*names); i++) {
        begin(1, 3);
        put_architecture(i < 3 ? names[i] : "llama");
        put_key("x.block_count", 48);
        put_key(i < 3 ? "x.embedding_length" : "x.ssm.state_size", 8);
        accept_gguf();
        cr_expect(facts.has_weights && !facts.has_shape && facts.stored.bytes == 4);
        cr_expect(strstr(facts.shapeless, i < 3 ? names[i] : "has ssm.state_size"), "%s",
                  facts.shapeless);
    }
}

/* ---- names ---- */

Test(facts, files_that_are_none_are_refused)
{
    cr_expect_eq(cw_model_files_read(&facts, "/nowhere/config.json"), -1);
    cr_expect(strstr(command_said, "cannot read '/nowhere/config.json': No such file"), "%s",
              command_said);
    cr_expect_eq(cw_model_files_read(&facts, "/dev/zero"), -1);
    cr_expect(strstr(command_said, "is not a regular file"), "%s", command_said);
    cr_expect_eq(cw_model_files_read(&facts, "/proc/self/fd"), -1);
    cr_expect(strstr(command_said, "has no config.json"), "%s", command_said);
}
