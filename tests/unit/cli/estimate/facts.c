/* SPDX-License-Identifier: MIT */
/* What files of models say, and how those are refused that say what cannot be. */
#include "cli/estimate/model_files.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command_fixture.h"

#define SHAPE                                                                                      \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":8,"                        \
    "\"intermediate_size\":256,\"vocab_size\":100"

#define SLIDING "\"sliding_attention\""
#define FULL    "\"full_attention\""

static struct cw_facts facts;

TestSuite(facts, .init = command_listen);

static int read_bytes(const void *bytes, size_t size, uint64_t file_size)
{
    char path[64];
    int fd = memfd_create("model", 0), rc;

    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    cr_assert_eq(ftruncate(fd, (off_t)file_size), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    rc = cw_model_files_read(&facts, path);
    close(fd);
    return rc;
}

static void accept(const char *json)
{
    cr_assert_eq(read_bytes(json, strlen(json), strlen(json)), 0, "%s: %s", json, command_said);
}

static void refuse(const char *json, const char *words)
{
    command_errors = 0;
    cr_expect_eq(read_bytes(json, strlen(json), strlen(json)), -1, "%s", json);
    cr_expect_eq(command_errors, 1, "%s: %u lines", json, command_errors);
    cr_expect(strstr(command_said, words), "%s\nsays %s\nnot  %s", json, command_said, words);
}

/* ---- config.json ---- */

Test(facts, fields_have_the_names_of_several_families)
{
    accept(
        "{" SHAPE ",\"num_key_value_heads\":2,\"head_dim\":16,\"torch_dtype\":\"float16\","
        "\"model_type\":\"llama\",\"tie_word_embeddings\":false,\"x\":{\"num_hidden_layers\":9}}");
    cr_expect(facts.has_shape && !facts.has_weights);
    cr_expect_eq(facts.shape.layers, 4);
    cr_expect_eq(facts.shape.kv_heads, 2);
    cr_expect_eq(facts.shape.head_dim, 16);
    cr_expect_eq(facts.shape.tied, 0);
    cr_expect_str_eq(facts.weights->name, "fp16");
    cr_expect_str_eq(facts.name, "llama");
    accept("{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,\"n_head\":12,\"n_inner\":null,"
           "\"vocab_size\":50257,\"n_positions\":1024}");
    cr_expect_eq(facts.shape.ffn, 4 * 768);
    cr_expect_eq(facts.shape.learned_positions, 1024);
    cr_expect(facts.shape.plain_ffn && facts.shape.tied);
    accept("{\"model_type\":\"falcon\",\"multi_query\":true," SHAPE "}");
    cr_expect_eq(facts.shape.kv_heads, 1);
    accept("{" SHAPE ",\"num_attention_heads\":8.0,\"vocab_size\":1e2}");
    cr_expect_eq(facts.shape.heads, 8);
}

Test(facts, windows_follow_the_list_or_the_rule_of_the_architecture)
{
    static const struct {
        const char *more;
        uint64_t window, layers;
    } rows[] = {
        {"\"sliding_window\":32", 32, 0},
        {"\"sliding_window\":null", 0, 0},
        {"\"sliding_window\":32,\"use_sliding_window\":false", 0, 0},
        {"\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":3", 32, 1},
        {"\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":4", 0, 0},
        {"\"sliding_window\":32,\"model_type\":\"gemma2\"", 32, 2},
        {"\"sliding_window\":32,\"sliding_window_pattern\":4", 32, 3},
        {"\"sliding_window\":32,\"layer_types\":[" SLIDING "," SLIDING "," SLIDING "," FULL "]", 32,
         3},
        {"\"sliding_window\":32,\"layer_types\":[" FULL "," FULL "," FULL "," FULL "]", 0, 0},
    };
    char json[512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(json, sizeof(json), "{" SHAPE ",%s}", rows[i].more);
        accept(json);
        cr_expect_eq(facts.shape.window, rows[i].window, "%s", rows[i].more);
        cr_expect_eq(facts.shape.window_layers, rows[i].layers, "%s: %lu", rows[i].more,
                     (unsigned long)facts.shape.window_layers);
    }
}

Test(facts, layers_with_experts_are_counted)
{
    static const struct {
        const char *more;
        uint64_t dense;
    } rows[] = {{"\"decoder_sparse_step\":1", 0},
                {"\"decoder_sparse_step\":2", 2},
                {"\"first_k_dense_replace\":1,\"moe_layer_freq\":1", 1},
                {"\"mlp_only_layers\":[0,1,2]", 3},
                {"\"mlp_only_layers\":[]", 0}};
    char json[512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(json, sizeof(json),
                 "{" SHAPE ",\"n_routed_experts\":8,\"num_experts_per_tok\":2,"
                 "\"moe_intermediate_size\":32,\"n_shared_experts\":3,%s}",
                 rows[i].more);
        accept(json);
        cr_expect_eq(facts.shape.dense_layers, rows[i].dense, "%s", rows[i].more);
        cr_expect_eq(facts.shape.shared_ffn, 96);
    }
}

Test(facts, quantised_weights_are_recognised)
{
    static const struct {
        const char *more, *format;
    } rows[] = {{"\"quant_method\":\"gptq\",\"bits\":4", "int4"},
                {"\"quant_method\":\"gptq\",\"bits\":8", "int8"},
                {"\"quant_method\":\"awq\"", "int4"},
                {"\"quant_method\":\"fp8\"", "fp8"},
                {"\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true", "nf4"},
                {"\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true", "int8"}};
    char json[512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(json, sizeof(json),
                 "{" SHAPE ",\"torch_dtype\":\"bfloat16\",\"quantization_config\":{%s}}",
                 rows[i].more);
        accept(json);
        cr_expect_str_eq(facts.weights->name, rows[i].format, "%s", rows[i].more);
    }
}

Test(facts, what_stands_under_text_config_counts_more)
{
    accept("{\"model_type\":\"gemma3\",\"hidden_size\":9,\"text_config\":{\"model_type\":"
           "\"gemma3_text\"," SHAPE "},\"vision_config\":{\"hidden_size\":3},\"vocab_size\":7}");
    cr_expect_eq(facts.shape.hidden, 64);
    cr_expect_eq(facts.shape.vocab, 100);
    cr_expect(facts.is_part);
    cr_expect_str_eq(facts.name, "gemma3_text");
}

Test(facts, what_cannot_be_is_named_with_its_value)
{
    refuse("{\"num_hidden_layers\":-3}",
           "has a num_hidden_layers of -3: a size cannot be negative");
    refuse("{\"hidden_size\":0}", "has a hidden_size of 0, which is not from 1 to 1048576");
    refuse("{\"hidden_size\":64.5}", "has a hidden_size of 64.5, which is not a whole number");
    refuse("{\"hidden_size\":1e300}", "has a hidden_size of 1e300, which is too large");
    refuse("{\"hidden_size\":123456789012345678901234567890123}", "has a hidden_size of 33 digits");
    refuse("{\"hidden_size\":99999999}", "which is not from 1 to 1048576");
    refuse("{\"hidden_size\":\"64\"}", "has a text for hidden_size, not a number");
    refuse("{\"hidden_size\":64,\"is_encoder_decoder\":true,\"model_type\":\"t5\"}",
           "of an encoder with a decoder (t5)");
    refuse("{\"hidden_size\":64,\"layer_types\":[\"linear_attention\"]}",
           "has layers of type 'linear_attention'");
    refuse("{\"name\":\"x\"}", "has no field of a transformer");
    refuse("{\"hidden_size\":64,", "is damaged or cut off at byte 18: it is no JSON");
    refuse("{}{}", "is damaged or cut off");
    refuse("[]", "is neither a config.json, nor");
    refuse("", "is neither a config.json, nor");
}

Test(facts, a_number_for_each_layer_must_be_the_same)
{
    accept("{" SHAPE ",\"num_key_value_heads\":[2,2,2,2]}");
    cr_expect_eq(facts.shape.kv_heads, 2);
    cr_expect_eq(facts.varies, 0);
    accept("{" SHAPE ",\"num_key_value_heads\":[2,2,4,2]}");
    cr_expect_eq(facts.varies, 1u << CW_SHAPE_kv_heads);
}

/* yajl has no limit of depth. */
Test(facts, deep_json_is_passed_over)
{
    static char json[300000];
    size_t len = (size_t)sprintf(json, "{\"a\":");

    memset(json + len, '[', 100000);
    memset(json + len + 100000, ']', 100000);
    sprintf(json + len + 200000, "," SHAPE "}");
    accept(json);
    cr_expect_eq(facts.shape.hidden, 64);
}

/* What was under it would be missing from the sum. */
Test(facts, a_name_that_is_too_long_is_refused)
{
    static char json[4096];

    sprintf(json, "{\"%1023s\":{\"hidden_size\":5}," SHAPE "}", "k");
    accept(json);
    sprintf(json, "{\"%1024s\":{\"hidden_size\":5}," SHAPE "}", "k");
    refuse(json, "has a name of 1024 bytes, and may have 1023");
}

/* ---- safetensors ---- */

Test(facts, an_index_tells_the_bytes)
{
    accept("{\"metadata\":{\"total_size\":14483464192},\"weight_map\":{\"a.weight\":\"f\"}}");
    cr_expect(facts.has_weights && !facts.has_shape);
    cr_expect_eq(facts.stored.bytes, 14483464192);
    refuse("{\"metadata\":{},\"weight_map\":{\"a\":\"f\"}}", "without a metadata.total_size");
    refuse("{\"metadata\":{\"total_size\":-1},\"weight_map\":{\"a\":\"f\"}}", "cannot be negative");
}

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

Test(facts, lists_of_gguf_count_layers_with_a_window)
{
    static const uint8_t pattern[] = {1, 1, 1, 0};
    static const uint32_t heads[] = {4, 4, 8, 4};

    begin(1, 4);
    put_key("x.block_count", 4);
    put_key("x.attention.sliding_window", 32);
    put_text("x.attention.sliding_window_pattern");
    put_32(9);
    put_32(7);
    put_64(4);
    put(pattern, 4);
    put_text("x.attention.head_count_kv");
    put_32(9);
    put_32(4);
    put_64(4);
    put(heads, 16);
    put_tensor("output.weight", 1, 1, 0);
    cr_assert_eq(read_bytes(gguf, gguf_len, gguf_len + 4), 0, "%s", command_said);
    cr_expect_eq(facts.shape.window_layers, 3);
    cr_expect_eq(facts.varies, 1u << CW_SHAPE_kv_heads);
    cr_expect_eq(facts.shape.tied, 0);
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

Test(facts, families_are_found_by_whole_names)
{
    cr_expect(cw_family_of("gpt2")->has_table);
    cr_expect(!cw_family_of("gpt")->plain_ffn && !cw_family_of("")->plain_ffn);
    cr_expect_eq(cw_family_of("gemma3")->every, 6);
    cr_expect_eq(cw_family_of("gemma")->every, 0);
    cr_expect_eq(cw_family_of("phi")->plain_ffn, 1);
    cr_expect_eq(cw_family_of("phi3")->plain_ffn, 0);
}
