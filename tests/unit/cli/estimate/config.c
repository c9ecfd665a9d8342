/* SPDX-License-Identifier: MIT */
/* What a config.json says of a model, and which of them are refused. */
#include "facts_fixture.h"

#define SHAPE                                                                                      \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":8,"                        \
    "\"intermediate_size\":256,\"vocab_size\":100"

#define SLIDING "\"sliding_attention\""
#define FULL    "\"full_attention\""

TestSuite(config, .init = command_listen);

static void accept(const char *json)
{
    cr_assert_eq(read_bytes(json, strlen(json), strlen(json)), 0, "%s: %s", json, command_said);
}

/* A shape that cannot be told leaves the weights, of which another file may say more. */
static void refuse(const char *json, const char *words)
{
    int rc, is_shapeless;

    command_errors = 0;
    rc = read_bytes(json, strlen(json), strlen(json));
    is_shapeless = rc == 0 && *facts.shapeless != '\0' && !facts.has_shape;
    cr_expect(is_shapeless || (rc == -1 && command_errors == 1), "%s: %d, %u lines", json, rc,
              command_errors);
    cr_expect(strstr(is_shapeless ? facts.shapeless : command_said, words), "%s\nsays %s\nnot  %s",
              json, is_shapeless ? facts.shapeless : command_said, words);
}

Test(config, fields_have_the_names_of_several_families)
{
    accept("{" SHAPE ",\"num_key_value_heads\":2,\"head_dim\":16,\"torch_dtype\":\"float16\","
           "\"model_type\":\"llama\",\"tie_word_embeddings\":false,\"rope_scaling\":"
           "{\"num_hidden_layers\":9}}");
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

Test(config, windows_follow_the_list_or_the_rule_of_the_architecture)
{
    static const struct {
        const char *more;
        uint64_t window, layers;
    } rows[] = {
        {"\"sliding_window\":32", 32, 0},
        {"\"sliding_window\":32,\"model_type\":\"mistral\"", 32, 0},
        {"\"sliding_window\":32,\"model_type\":\"llama\"", 0, 0},
        {"\"sliding_window\":32,\"model_type\":\"vaultgemma\"", 32, 2},
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

Test(config, layers_with_experts_are_counted)
{
    static const struct {
        const char *more;
        uint64_t dense;
    } rows[] = {{"\"decoder_sparse_step\":1", 0},
                {"\"decoder_sparse_step\":2", 2},
                {"\"first_k_dense_replace\":1,\"moe_layer_freq\":1", 1},
                {"\"mlp_only_layers\":[0,1,2]", 3},
                {"\"mlp_layer_types\":[\"dense\",\"dense\",\"sparse\",\"sparse\"]", 2},
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

Test(config, quantised_weights_are_recognised)
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

Test(config, what_stands_under_text_config_counts_more)
{
    accept("{\"model_type\":\"gemma3\",\"hidden_size\":9,\"text_config\":{\"model_type\":"
           "\"gemma3_text\"," SHAPE
           "},\"vision_config\":{\"hidden_size\":3},\"vocab_size\":7,\"kv_lora_rank\":5}");
    cr_expect_eq(facts.shape.kv_rank, 0);
    cr_expect_eq(facts.shape.hidden, 64);
    cr_expect_eq(facts.shape.vocab, 100);
    cr_expect(facts.is_part);
    cr_expect_str_eq(facts.name, "gemma3_text");
}

Test(config, what_cannot_be_is_named_with_its_value)
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

Test(config, a_number_for_each_layer_must_be_the_same)
{
    accept("{" SHAPE ",\"num_key_value_heads\":[2,2,2,2]}");
    cr_expect_eq(facts.shape.kv_heads, 2);
    cr_expect_eq(facts.varies, 0);
    accept("{" SHAPE ",\"num_key_value_heads\":[2,2,4,2]}");
    cr_expect_eq(facts.varies, 1u << CW_SHAPE_kv_heads);
}

/* yajl has no limit of depth. What is passed over may tell of memory, unless its name is known. */
Test(config, deep_json_is_passed_over)
{
    static char json[300000];
    size_t len = (size_t)sprintf(json, "{\"rope_scaling\":");

    memset(json + len, '[', 100000);
    memset(json + len + 100000, ']', 100000);
    sprintf(json + len + 200000, "," SHAPE "}");
    accept(json);
    cr_expect_eq(facts.shape.hidden, 64);
    memcpy(json, "{\"block_config\"", 15);
    refuse(json, "has block_config: whether that takes memory is not known here");
}

/* What was under it would be missing from the sum. */
Test(config, a_name_that_is_too_long_is_refused)
{
    static char json[4096];

    sprintf(json, "{\"%1023s\":{\"hidden_size\":5}," SHAPE "}", "_eps");
    accept(json);
    sprintf(json, "{\"%1024s\":{\"hidden_size\":5}," SHAPE "}", "k");
    refuse(json, "has a name of 1024 bytes, and may have 1023");
}

/* Wherever the quantization is told of, also where its bits are not known. */
Test(config, quantization_is_found_where_the_file_has_it)
{
    static const struct {
        const char *json, *format, *quantizer;
    } rows[] = {
        {"{\"text_config\":{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}," SHAPE
         "}}",
         "int4", ""},
        {"{\"quantization\":{\"group_size\":64,\"bits\":8}," SHAPE "}", "int8", ""},
        {"{\"quantization\":{\"group_size\":64,\"bits\":3}," SHAPE "}", NULL, "quantization"},
        {"{\"language_config\":{\"quantization_config\":{\"config_groups\":{\"group_0\":{"
         "\"weights\":"
         "{\"num_bits\":4}}}}," SHAPE "}}",
         NULL, "quantization_config"},
        {"{\"compression_config\":{\"quant_method\":\"compressed-tensors\"}," SHAPE "}", NULL,
         "compressed-tensors"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        accept(rows[i].json);
        cr_assert_eq(facts.weights == NULL, rows[i].format == NULL, "%s", rows[i].json);
        if (rows[i].format)
            cr_expect_str_eq(facts.weights->name, rows[i].format, "%s", rows[i].json);
        else
            cr_expect_str_eq(facts.quantizer, rows[i].quantizer, "%s", rows[i].json);
    }
}

/* In a known family texts and truths are its own affair, in others every key must be known. */
Test(config, keys_that_are_not_known_refuse_by_their_names)
{
    static const char llama_like[] = "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-5,";
    char json[1024];

    accept("{\"model_type\":\"llama\",\"fixed_by\":\"me\",\"is_fixed\":true,\"extra\":0," SHAPE
           "}");
    accept("{\"extra\":null,\"extra_list\":[],\"extra_object\":{}," SHAPE "}");
    refuse(
        "{\"model_type\":\"llama\",\"extra_rank\":8,\"memory_rows\":[0,9],\"adapter\":{\"rank\":1},"
        "\"b\":1,\"a\":2,\"a\":3," SHAPE "}",
        "has extra_rank, memory_rows, adapter, b and 1 more: whether that takes memory is not "
        "known here; describe the model by --layers and more, or name its weights");
    refuse("{\"share_embeddings\":false," SHAPE "}", "has share_embeddings: whether");
    refuse("{\"text_config\":{\"extra\":8," SHAPE "},\"outer\":1}", "has extra: whether");
    refuse("{\"model_type\":\"new\"," SHAPE "}",
           "is of new: only decoders can be estimated, and nothing shows that it is one");
    for (unsigned is_decoder = 0; is_decoder <= 1; is_decoder++) {
        snprintf(json, sizeof(json),
                 "{\"model_type\":\"new\",%s\"architectures\":[\"New%s\"]," SHAPE "}", llama_like,
                 is_decoder ? "ForCausalLM" : "Model");
        if (is_decoder)
            accept(json);
        else
            refuse(json, "nothing shows that it is one");
    }
    cr_expect_eq(facts.shape.tied, 0, "the larger is taken of what is not said");
}

/* ---- published models ---- */

/* "@60/6": a list of 60 layers' types, each 6th without a window. */
static void expand(const char *text, char *json, size_t cap)
{
    size_t len = 0;
    unsigned layers, every;

    for (; *text; text++) {
        if (*text != '@') {
            json[len++] = *text == '\'' ? '"' : *text;
            continue;
        }
        cr_assert_eq(sscanf(text, "@%u/%u", &layers, &every), 2, "%s", text);
        for (unsigned i = 1; i <= layers; i++)
            len += (size_t)snprintf(json + len, cap - len, "%s%s", i > 1 ? "," : "[",
                                    i % every == 0 ? FULL : SLIDING);
        json[len++] = ']';
        text += strspn(text + 1, "0123456789/");
    }
    json[len] = '\0';
}

static const struct {
    const char *name;
    double millions;
    uint64_t windows;
    const char *text;
} published[] = {
#define X(name, millions, windows, text) {name, millions, windows, "{" text "}"},
#include "published.def"
#undef X
};

Test(config, published_models_have_the_parameters_that_they_have)
{
    static char json[16384];
    struct cw_estimate_load load = {.batch = 1,
                                    .context = 1,
                                    .chunk = 1,
                                    .devices = 1,
                                    .weights = cw_number_format_find("bf16"),
                                    .cache = cw_number_format_find("bf16")};
    struct cw_estimate estimate;
    struct cw_refusal refusal;

    for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++) {
        expand(published[i].text, json, sizeof(json));
        accept(json);
        cr_assert(facts.has_shape && facts.varies == 0, "%s: %s", published[i].name,
                  facts.shapeless);
        cr_assert_eq(cw_shape_complete(&facts.shape, &refusal), 0, "%s: %s", published[i].name,
                     refusal.why);
        cr_assert_eq(cw_estimate_make(&facts.shape, NULL, &load, &estimate, &refusal), 0);
        cr_expect_float_eq((double)estimate.parameters / 1e6 / published[i].millions, 1, 0.01,
                           "%s: %.0f millions, not %.0f", published[i].name,
                           (double)estimate.parameters / 1e6, published[i].millions);
        cr_expect_eq(facts.shape.window_layers, published[i].windows, "%s: %ju windows",
                     published[i].name, (uintmax_t)facts.shape.window_layers);
    }
}

Test(config, every_family_has_a_published_model)
{
    static const struct cw_family families[] = {
#define X(...) {__VA_ARGS__},
#include "cli/estimate/families.def"
#undef X
    };
    char type[128];

    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        for (const char *at = families[i].names; *at; at += strcspn(at, " "), at += *at == ' ') {
            size_t row = 0;

            snprintf(type, sizeof(type), "'model_type':'%.*s'", (int)strcspn(at, " "), at);
            while (row < sizeof(published) / sizeof(*published) &&
                   !strstr(published[row].text, type))
                row++;
            cr_expect_lt(row, sizeof(published) / sizeof(*published), "%s", type);
        }
}

Test(config, models_whose_memory_would_be_wrong_are_refused)
{
    static const struct {
        const char *name, *words, *text;
    } rows[] = {
#define X(name, words, text) {name, words, "{" text "}"},
#include "refused.def"
#undef X
    };
    static char json[16384];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        expand(rows[i].text, json, sizeof(json));
        refuse(json, rows[i].words);
    }
}

Test(config, an_index_tells_the_bytes)
{
    accept("{\"metadata\":{\"total_size\":14483464192},\"weight_map\":{\"a.weight\":\"f\"}}");
    cr_expect(facts.has_weights && !facts.has_shape);
    cr_expect_eq(facts.stored.bytes, 14483464192);
    refuse("{\"metadata\":{},\"weight_map\":{\"a\":\"f\"}}", "without a metadata.total_size");
    refuse("{\"metadata\":{\"total_size\":-1},\"weight_map\":{\"a\":\"f\"}}", "cannot be negative");
}

Test(config, families_are_found_by_whole_names)
{
    cr_expect(cw_family_of("gpt2", 0)->has_table);
    cr_expect(!cw_family_of("gpt", 0)->plain_ffn && !cw_family_of("", 0)->plain_ffn);
    cr_expect_eq(cw_family_of("gemma3", 0)->every, 6);
    cr_expect_eq(cw_family_of("gemma", 0)->every, 0);
    cr_expect_eq(cw_family_of("phi", 0)->plain_ffn, 1);
    cr_expect_eq(cw_family_of("phi3", 0)->plain_ffn, 0);
}
