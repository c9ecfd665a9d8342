/* SPDX-License-Identifier: MIT */
/*
 * What transformers take, against what their makers have published. Shapes and sizes are those of
 * the models' config.json and papers, which each row names.
 */
#include "base/estimate/estimate.h"

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "base/device_reserve.h"

#define GIB 1073741824.0

/* Billions of parameters: all, and those that a token uses, 0 if nobody says. */
struct model {
    const char *name;
    double all, active;
    struct cw_shape shape;
};

static const struct model models[] = {
    /* arXiv 2310.06825; model.safetensors.index.json: 14,483,464,192 bytes */
    {"Mistral 7B",
     7.241732096,
     0,
     {.layers = 32,
      .hidden = 4096,
      .heads = 32,
      .kv_heads = 8,
      .ffn = 14336,
      .vocab = 32000,
      .window = 4096}},
    /* arXiv 2407.21783, table 3; index: 16,060,522,496 bytes */
    {"Llama 3 8B",
     8.030261248,
     0,
     {.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256}},
    /* the same; index: 141,107,412,992 bytes */
    {"Llama 3 70B",
     70.553706496,
     0,
     {.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256}},
    /* qwenlm.github.io/blog/qwen-moe: 14.3B, 2.7B */
    {"Qwen1.5-MoE-A2.7B",
     14.3,
     2.7,
     {.layers = 24,
      .hidden = 2048,
      .heads = 16,
      .ffn = 5632,
      .vocab = 151936,
      .experts = 60,
      .experts_used = 4,
      .expert_ffn = 1408,
      .shared_ffn = 5632}},
    /* arXiv 2505.09388: 30.5B, 3.3B */
    {"Qwen3-30B-A3B",
     30.5,
     3.3,
     {.layers = 48,
      .hidden = 2048,
      .heads = 32,
      .kv_heads = 4,
      .head_dim = 128,
      .vocab = 151936,
      .experts = 128,
      .experts_used = 8,
      .expert_ffn = 768}},
    /* arXiv 2401.04088: 47B, 13B; the model's card has 46.7B */
    {"Mixtral 8x7B",
     46.7,
     12.9,
     {.layers = 32,
      .hidden = 4096,
      .heads = 32,
      .kv_heads = 8,
      .ffn = 14336,
      .vocab = 32000,
      .experts = 8,
      .experts_used = 2}},
    /* arXiv 2405.04434, appendix B: 15.7B; its 2.4B leave out the embedding */
    {"DeepSeek-V2-Lite",
     15.7,
     0,
     {.layers = 27,
      .hidden = 2048,
      .heads = 16,
      .ffn = 10944,
      .vocab = 102400,
      .experts = 64,
      .experts_used = 6,
      .expert_ffn = 1408,
      .shared_ffn = 2816,
      .dense_layers = 1,
      .kv_rank = 512,
      .rope_dim = 64,
      .nope_dim = 128,
      .value_dim = 128}},
    /* arXiv 2412.19437: 671B, 37B */
    {"DeepSeek-V3",
     671,
     37,
     {.layers = 61,
      .hidden = 7168,
      .heads = 128,
      .ffn = 18432,
      .vocab = 129280,
      .experts = 256,
      .experts_used = 8,
      .expert_ffn = 2048,
      .shared_ffn = 2048,
      .dense_layers = 3,
      .q_rank = 1536,
      .kv_rank = 512,
      .rope_dim = 64,
      .nope_dim = 128,
      .value_dim = 128}},
    /* arXiv 2408.00118, table 2: 918M and 8,324M */
    {"Gemma 2 9B",
     9.242,
     0,
     {.layers = 42,
      .hidden = 3584,
      .heads = 16,
      .kv_heads = 8,
      .head_dim = 256,
      .ffn = 14336,
      .vocab = 256000,
      .tied = 1,
      .window = 4096,
      .window_layers = 21}},
    /* huggingface.co/google/gemma-4-31B: 30.7B */
    {"Gemma 4 31B",
     30.697,
     0,
     {.layers = 60,
      .hidden = 5376,
      .heads = 32,
      .kv_heads = 16,
      .head_dim = 256,
      .ffn = 21504,
      .vocab = 262144,
      .tied = 1,
      .window = 1024,
      .window_layers = 50,
      .full_kv_heads = 4,
      .full_head_dim = 512,
      .full_keys_are_values = 1}},
    /* huggingface.co/openai-community/gpt2: 124M */
    {"GPT-2",
     0.1244,
     0,
     {.layers = 12,
      .hidden = 768,
      .heads = 12,
      .ffn = 3072,
      .vocab = 50257,
      .plain_ffn = 1,
      .tied = 1,
      .learned_positions = 1024}},
};

static struct cw_estimate_load load;
static struct cw_estimate estimate;
static struct cw_refusal refusal;

static void setup(void)
{
    load = (struct cw_estimate_load){.batch = 1,
                                     .context = 8192,
                                     .chunk = 2048,
                                     .devices = 1,
                                     .weights = cw_number_format_find("bf16"),
                                     .cache = cw_number_format_find("bf16")};
}

TestSuite(estimate, .init = setup);

static struct cw_shape shape_of(const char *name)
{
    struct cw_shape shape = {.layers = 0};

    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        if (strcmp(models[i].name, name) == 0)
            shape = models[i].shape;
    cr_assert(shape.layers != 0, "no model %s", name);
    cr_assert_eq(cw_shape_complete(&shape, &refusal), 0, "%s: %s", name, refusal.why);
    return shape;
}

static void make(const char *name)
{
    struct cw_shape shape = shape_of(name);

    cr_assert_eq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0, "%s: %s", name,
                 refusal.why);
}

static void expect_near(double got, double published, double share, const char *what)
{
    cr_expect(fabs(got / published - 1) <= share, "%s: %.4f, published %.4f", what, got, published);
}

Test(estimate, parameters_are_those_that_were_published)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        make(models[i].name);
        expect_near((double)estimate.parameters / 1e9, models[i].all, 0.003, models[i].name);
        cr_expect_eq(estimate.weights, 2 * estimate.parameters, "%s", models[i].name);
        if (models[i].active != 0)
            expect_near((double)estimate.active_parameters / 1e9, models[i].active, 0.03,
                        models[i].name);
    }
}

/* Sizes of files: the indexes of safetensors; TechxGenus/Meta-Llama-3-8B-AWQ; the table of
 * llama.cpp's tools/quantize/README.md for Llama 3.1 8B, in GiB. */
Test(estimate, weights_take_what_their_files_take)
{
    static const struct {
        const char *model, *format;
        double bytes;
    } files[] = {{"Mistral 7B", "bf16", 14483464192.},   {"Llama 3 8B", "fp16", 16060522496.},
                 {"Llama 3 70B", "bf16", 141107412992.}, {"Llama 3 8B", "int4", 5.74e9},
                 {"Llama 3 8B", "q8_0", 7.95 * GIB},     {"Llama 3 8B", "Q4_K_M", 4.58 * GIB},
                 {"Llama 3 8B", "q2_k", 2.95 * GIB},     {"Llama 3 8B", "fp32", 32121044992.}};

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        load.weights = cw_number_format_find(files[i].format);
        cr_assert(load.weights, "%s", files[i].format);
        make(files[i].model);
        expect_near((double)estimate.weights, files[i].bytes, 0.005, files[i].format);
    }
}

Test(estimate, numbers_take_whole_bytes)
{
    const struct cw_number_format *format = cw_number_format_find("mxfp4"); /* 4.25 bits */

    cr_expect_eq(cw_number_format_bytes(format, 1), 1u);
    cr_expect_eq(cw_number_format_bytes(format, 31), 17u);
    cr_expect_eq(cw_number_format_bytes(format, 32), 17u);
}

/* Bytes of a token in all layers: 70.272 KB of DeepSeek-V3, beside 327.680 and 516.096 KB of
 * models with grouped queries (arXiv 2505.09343, table 1); 320 KiB of Llama 3 70B. */
Test(estimate, the_cache_takes_what_was_published)
{
    static const struct cw_shape qwen2_5_72b = {
        .layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 29568, .vocab = 152064};
    struct cw_shape shape = qwen2_5_72b;

    make("DeepSeek-V3");
    cr_expect_eq(estimate.token_bytes, 70272);
    cr_expect_eq(estimate.part[CW_PART_CACHE], 70272u * 8192);
    cr_assert_eq(cw_shape_complete(&shape, &refusal), 0);
    cr_assert_eq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    cr_expect_eq(estimate.token_bytes, 327680);
    make("Llama 3 70B");
    cr_expect_eq(estimate.token_bytes, 320u << 10);
    load.batch = 4;
    make("Llama 3 70B");
    cr_expect_eq(estimate.part[CW_PART_CACHE], 4 * (uint64_t)(320u << 10) * 8192);
    load.cache = cw_number_format_find("q8_0");
    make("Llama 3 70B");
    cr_expect_lt(estimate.part[CW_PART_CACHE], 4 * (uint64_t)(320u << 10) * 8192 * 54 / 100);
}

Test(estimate, a_window_bounds_the_cache)
{
    make("Mistral 7B");
    cr_expect_eq(estimate.part[CW_PART_CACHE], (uint64_t)128 * 1024 * 4096);
    load.context = 1000;
    make("Mistral 7B");
    cr_expect_eq(estimate.part[CW_PART_CACHE], (uint64_t)128 * 1024 * 1000);
    load.context = 8192;
    make("Gemma 2 9B"); /* 21 layers of 4096 tokens, 21 of 8192, 8 KiB a layer */
    cr_expect_eq(estimate.part[CW_PART_CACHE], (uint64_t)8192 * 21 * (4096 + 8192));
}

Test(estimate, layers_without_a_window_may_have_heads_of_their_own)
{
    load.context = 262144;
    make("Gemma 4 31B");
    cr_expect_eq(estimate.token_bytes, 10u * 2 * 4 * 512 * 2 + 50u * 2 * 16 * 256 * 2);
    cr_expect_eq(estimate.part[CW_PART_CACHE],
                 (uint64_t)10 * 8192 * 262144 + (uint64_t)50 * 16384 * 1024);
    load.devices = 8; /* more than these layers have keys: each device has one */
    make("Gemma 4 31B");
    cr_expect_eq(estimate.token_bytes, 10u * 2 * 512 * 2 + 50u * 2 * 2 * 256 * 2);
    load.devices = 1;
    load.is_training = load.is_checkpointed = 1; /* the wider kind counts */
    make("Gemma 4 31B");
    cr_expect_gt(estimate.part[CW_PART_ACTIVATIONS], (uint64_t)262144 * 2 * 2 * 32 * 512);
}

/* 34 bytes times hidden for a token and a layer of GPT, of which 2 are masks of dropout (arXiv
 * 2205.05198, equation 2, selective recomputation). */
Test(estimate, training_keeps_what_megatron_keeps)
{
    uint64_t whole;

    load.is_training = 1;
    load.context = 1024;
    make("GPT-2");
    whole = estimate.part[CW_PART_ACTIVATIONS];
    whole -= (uint64_t)1024 * (50257 * 10 + 2 * 768 * 2);
    expect_near((double)whole / 12 / 1024 / 768, 32, 0.01, "bytes by hidden");
    load.is_checkpointed = 1;
    make("GPT-2");
    cr_expect_lt(estimate.part[CW_PART_ACTIVATIONS] - (uint64_t)1024 * 50257 * 10, whole / 5);
}

static uint64_t kept_with(struct cw_shape shape, uint64_t dense_layers, uint64_t experts)
{
    shape.dense_layers = dense_layers;
    shape.experts = experts;
    cr_assert_eq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0, "%s", refusal.why);
    return estimate.part[CW_PART_ACTIVATIONS];
}

/* Each of them as much as a layer of a model that has no others. */
Test(estimate, training_keeps_of_each_dense_layer_and_of_each_with_experts)
{
    struct cw_shape shape = shape_of("DeepSeek-V3");
    uint64_t with_experts, dense, n = shape.layers;

    load.is_training = 1;
    load.context = 1024;
    with_experts = kept_with(shape, 0, shape.experts);
    dense = kept_with(shape, n, 0);
    cr_assert_neq(with_experts, dense);
    cr_expect_eq(n * kept_with(shape, 3, shape.experts), (n - 3) * with_experts + 3 * dense);
}

/* Bytes for a parameter: ZeRO (arXiv 1910.02054, section 3.1) has 16 for Adam. */
Test(estimate, optimisers_take_what_they_are_known_for)
{
    static const struct {
        enum cw_optimizer optimizer;
        const char *format;
        int has_no_master;
        double bytes;
    } rows[] = {
        {CW_OPTIMIZER_ADAM, "bf16", 0, 16},        {CW_OPTIMIZER_ADAM, "fp32", 0, 16},
        {CW_OPTIMIZER_ADAM, "bf16", 1, 8},         {CW_OPTIMIZER_ADAMW8BIT, "bf16", 0, 10.03},
        {CW_OPTIMIZER_ADAMW8BIT, "bf16", 1, 6.03}, {CW_OPTIMIZER_SGD, "bf16", 0, 8},
        {CW_OPTIMIZER_MOMENTUM, "fp32", 0, 12},    {CW_OPTIMIZER_ADAFACTOR, "bf16", 0, 8.005},
    };

    load.is_training = 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        load.optimizer = rows[i].optimizer;
        load.weights = cw_number_format_find(rows[i].format);
        load.has_no_master = (uint8_t)rows[i].has_no_master;
        make("Llama 3 8B");
        expect_near((double)(estimate.total - estimate.part[CW_PART_ACTIVATIONS]) /
                        (double)estimate.parameters,
                    rows[i].bytes, 0.002, cw_optimizer_name(rows[i].optimizer));
        cr_expect_eq(estimate.part[CW_PART_CACHE], 0);
    }
}

Test(estimate, devices_share_matrices_and_heads_but_not_norms_or_latent_vectors)
{
    uint64_t whole;

    make("Llama 3 70B");
    whole = estimate.part[CW_PART_WEIGHTS];
    load.devices = 8;
    make("Llama 3 70B");
    expect_near((double)estimate.part[CW_PART_WEIGHTS], (double)whole / 8, 0.001, "weights");
    cr_expect_gt(estimate.part[CW_PART_WEIGHTS], whole / 8);
    cr_expect_eq(estimate.token_bytes, 40u << 10);
    load.devices = 16; /* more than there are keys: each device has one */
    make("Llama 3 70B");
    cr_expect_eq(estimate.token_bytes, 40u << 10);
    make("DeepSeek-V3");
    cr_expect_eq(estimate.token_bytes, 70272);
}

Test(estimate, what_the_file_says_of_its_weights_counts_more_than_the_shape)
{
    struct cw_estimate_stored stored = {.bytes = 4920734720};
    struct cw_shape shape = shape_of("Llama 3 8B");
    uint64_t cache;

    cr_assert_eq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    cache = estimate.part[CW_PART_CACHE];
    cr_assert_eq(cw_estimate_make(&shape, &stored, &load, &estimate, &refusal), 0);
    cr_expect_eq(estimate.part[CW_PART_WEIGHTS], stored.bytes);
    cr_expect_eq(estimate.part[CW_PART_CACHE], cache);
    stored = (struct cw_estimate_stored){.parameters = 7000000000};
    cr_assert_eq(cw_estimate_make(NULL, &stored, &load, &estimate, &refusal), 0);
    cr_expect_eq(estimate.total, 14000000000);
    cr_expect(estimate.is_partial);
}

Test(estimate, the_longest_context_is_the_last_that_fits)
{
    struct cw_shape shape = shape_of("Llama 3 8B");
    uint64_t memory = (uint64_t)24 << 30;

    load.context = cw_estimate_longest(&shape, NULL, &load, memory, 1 << 20);
    cr_assert_gt(load.context, 8192);
    make("Llama 3 8B");
    cr_expect_leq(estimate.total + estimate.reserve, memory);
    load.context++;
    make("Llama 3 8B");
    cr_expect_gt(estimate.total + estimate.reserve, memory);
    cr_expect_eq(cw_estimate_longest(&shape, NULL, &load, memory, 100), 100);
    cr_expect_eq(cw_estimate_longest(&shape, NULL, &load, (uint64_t)16 << 30, 1 << 20), 0);
}

Test(estimate, the_reserve_grows_with_the_need_up_to_two_gibibytes)
{
    cr_expect_eq(cw_device_reserve(0), (uint64_t)600 << 20);
    cr_expect_eq(cw_device_reserve((uint64_t)1000 << 20), (uint64_t)700 << 20);
    cr_expect_eq(cw_device_reserve((uint64_t)14 << 30),
                 ((uint64_t)600 << 20) + ((uint64_t)14 << 30) / 10);
    cr_expect_eq(cw_device_reserve((uint64_t)80 << 30), (uint64_t)2 << 30);
    cr_expect_eq(cw_device_reserve(UINT64_MAX), (uint64_t)2 << 30);
}

/* ---- what cannot be ---- */

Test(estimate, shapes_that_cannot_be_are_refused_by_name_and_value)
{
    static const struct {
        struct cw_shape shape;
        const char *why;
        enum cw_shape_field missing;
    } rows[] = {
        {{.hidden = 4096, .heads = 32, .vocab = 1, .ffn = 1}, "layers is missing", CW_SHAPE_layers},
        {{.layers = 1, .hidden = 4096, .heads = 32, .ffn = 1}, "vocab is missing", CW_SHAPE_vocab},
        {{.layers = 1, .hidden = 4096, .heads = 30, .vocab = 1, .ffn = 1},
         "heads is 30, without a head_dim, and does not divide hidden, 4096",
         CW_SHAPE_head_dim},
        {{.layers = 1, .hidden = 4096, .heads = 32, .kv_heads = 64, .vocab = 1, .ffn = 1},
         "kv_heads is 64, more than heads, which is 32",
         CW_SHAPE_kv_heads},
        {{.layers = 1, .hidden = 4096, .heads = 32, .kv_heads = 5, .vocab = 1, .ffn = 1},
         "kv_heads is 5, which does not divide heads, 32",
         CW_SHAPE_kv_heads},
        {{.layers = 1, .hidden = 64, .heads = 1, .vocab = 1}, "ffn is missing", CW_SHAPE_ffn},
        {{.layers = 1, .hidden = 64, .heads = 1, .vocab = 1, .ffn = 1, .experts = 8},
         "experts_used is missing",
         CW_SHAPE_experts_used},
        {{.layers = 1,
          .hidden = 64,
          .heads = 1,
          .vocab = 1,
          .ffn = 1,
          .experts = 8,
          .experts_used = 9},
         "experts_used is 9, more than experts, which is 8",
         CW_SHAPE_experts_used},
        {{.layers = 1, .hidden = 64, .heads = 1, .vocab = 1, .ffn = 1, .kv_rank = 8},
         "rope_dim is missing",
         CW_SHAPE_rope_dim},
        {{.layers = 20000, .hidden = 64, .heads = 1, .vocab = 1, .ffn = 1},
         "layers is 20000, more than the possible 10000",
         CW_SHAPE_layers},
        {{.layers = 2,
          .hidden = 64,
          .heads = 1,
          .vocab = 1,
          .ffn = 1,
          .window = 9,
          .window_layers = 3},
         "window_layers is 3, more than layers, which is 2",
         CW_SHAPE_window_layers},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cw_shape shape = rows[i].shape;

        cr_expect_neq(cw_shape_complete(&shape, &refusal), 0, "%s", rows[i].why);
        cr_expect(strncmp(refusal.why, rows[i].why, strlen(rows[i].why)) == 0, "'%s', not '%s'",
                  refusal.why, rows[i].why);
        cr_expect_eq(refusal.missing, rows[i].missing, "%s", refusal.why);
    }
}

Test(estimate, what_cannot_be_divided_is_refused)
{
    struct cw_shape shape = shape_of("Llama 3 8B");

    load.devices = 3;
    cr_expect_neq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    cr_expect_str_eq(refusal.why, "tensor parallelism over 3 devices cannot divide heads, 32");
}

/* Each number at its largest: nothing wraps, and all is said to be too large. */
Test(estimate, numbers_that_overflow_are_refused)
{
    struct cw_shape shape = {.tied = 0};

    for (unsigned field = 0; field < CW_SHAPE_COUNT; field++)
        *cw_shape_at(&shape, (enum cw_shape_field)field) =
            cw_shape_row((enum cw_shape_field)field)->most;
    cr_assert_eq(cw_shape_complete(&shape, &refusal), 0, "%s", refusal.why);
    cr_expect_neq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    cr_expect(strstr(refusal.why, "larger than any machine"), "%s", refusal.why);
    shape = shape_of("Llama 3 8B");
    load.batch = (uint64_t)1 << 40;
    cr_expect_neq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    load.batch = (uint64_t)1 << 20;
    load.context = (uint64_t)1 << 28;
    load.is_training = 1;
    cr_expect_neq(cw_estimate_make(&shape, NULL, &load, &estimate, &refusal), 0);
    cr_expect(strstr(refusal.why, "bytes are more than"), "%s", refusal.why);
}
