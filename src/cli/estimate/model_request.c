/* SPDX-License-Identifier: MIT */
/* A model on the command line. See model_request.h. */
#include "cli/estimate/model_request.h"

#include <stdio.h>
#include <string.h>

#include "base/options/number.h"
#include "base/options/option_values.h"
#include "cli/estimate/model_files.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define CONTEXT_DEFAULT 4096
#define CHUNK_DEFAULT   2048
#define CONTEXT_MOST    (UINT64_C(1) << 32)
#define BATCH_MOST      (UINT64_C(1) << 20)
#define DEVICES_MOST    4096
#define FORMAT_DEFAULT  "bf16"
#define MISMATCH        3 /* times */

enum {
    FLAG_BATCH = CW_MODEL_FIRST_FLAG,
    FLAG_CONTEXT,
    FLAG_DTYPE,
    FLAG_KV_DTYPE,
    FLAG_CHUNK,
    FLAG_TP,
    FLAG_TRAIN,
    FLAG_OPTIMIZER,
    FLAG_CHECKPOINTING,
    FLAG_NO_MASTER,
    FLAG_PARAMS,
    FLAG_FIRST_FIELD, /* and the fields of the shape behind it */
};

/* ---- tables ---- */

#define X(name, bits, scope) name " "
static const char formats[] =
#include "base/estimate/number_format.def"
    ;
#undef X

static const struct cw_flag load_flags[] = {
    {.id = FLAG_BATCH, .name = "batch", .value = "N", .help = "sequences at a time (default: 1)"},
    {.id = FLAG_CONTEXT,
     .name = "context",
     .value = "N",
     .help = "tokens in each, as in 8192 or 32K (default: 4096, or what the model was made for "
             "if that is less)"},
    {.id = FLAG_DTYPE,
     .name = "dtype",
     .value = "FORMAT",
     .offers = formats,
     .help = "how the weights are stored: fp32, bf16, fp16, fp8, int8, int4, nf4, mxfp4, or a type "
             "of llama.cpp such as q4_k_m (default: what the file says, else bf16)"},
    {.id = FLAG_KV_DTYPE,
     .name = "kv-dtype",
     .value = "FORMAT",
     .offers = formats,
     .help = "how the cache is stored (default: in 16 bits, or in 32 with fp32)"},
    {.id = FLAG_CHUNK,
     .name = "chunk",
     .value = "N",
     .help = "prompt tokens that are processed at a time (default: 2048)"},
    {.id = FLAG_TP,
     .name = "tp",
     .value = "N",
     .help = "divide the model among N devices (tensor parallelism); sizes are those of each"},
    {.id = FLAG_TRAIN, .name = "train", .help = "training, not inference"},
    {.id = FLAG_OPTIMIZER,
     .name = "optimizer",
     .value = "NAME",
     .words = "*adam adamw8bit sgd sgd-momentum adafactor",
     .help = "with --train: %w"},
    {.id = FLAG_CHECKPOINTING,
     .name = "checkpointing",
     .help = "with --train: keep each layer's input alone, and compute the rest again"},
    {.id = FLAG_NO_MASTER,
     .name = "no-master",
     .help = "with --train: no copy of 16-bit weights in 32 bits"},
};

struct cw_flag_group cw_model_load_flags(void)
{
    return (struct cw_flag_group){load_flags, CW_ARRAY_LEN(load_flags), NULL};
}

struct cw_flag_group cw_model_shape_flags(void)
{
    static struct cw_flag flags[CW_SHAPE_COUNT + 1] = {
        {.id = FLAG_PARAMS,
         .name = "params",
         .value = "N",
         .help = "number of parameters, as in 7.2B: on its own it gives the weights, with "
                 "--train also the gradients and what the optimizer keeps"}};
    size_t count = 1;

    for (unsigned field = 0; field < CW_SHAPE_COUNT; field++) {
        const struct cw_shape_row *row = cw_shape_row((enum cw_shape_field)field);

        if (*row->flag)
            flags[count++] = (struct cw_flag){.id = FLAG_FIRST_FIELD + (int)field,
                                              .name = row->flag,
                                              .value = "N",
                                              .help = row->words};
    }
    return (struct cw_flag_group){flags, count,
                                  "The shape, without a file or in place of what it says:"};
}

/* ---- flags ---- */

static int refuse(const char *flag, const char *value, const char *form)
{
    cw_cli_error("--%s: '%s' is not %s", flag, value, form);
    return -1;
}

/* "4096" or "32K", which is 32768. */
static int set_count(uint64_t *to, const char *flag, const char *value, uint64_t most)
{
    struct cw_device_sizes sizes = {.count = 0};
    char form[64];

    if (cw_sizes_parse(value, 0, &sizes) == 0 && sizes.count == 0 &&
        sizes.fallback.kind == CW_SIZE_BYTES && sizes.fallback.amount > 0 &&
        sizes.fallback.amount <= most) {
        *to = sizes.fallback.amount;
        return 0;
    }
    snprintf(form, sizeof(form), "a number from 1 to %ju", (uintmax_t)most);
    return refuse(flag, value, form);
}

/* "7.2B": units of thousands. */
static int set_parameters(struct cw_model_request *request, const char *value)
{
    static const char units[] = "kmbt";
    struct cw_decimal number;
    const char *at = cw_number_read_decimal(value, &number), *unit;
    uint64_t factor = 1;

    if (at && *at && (unit = strchr(units, *at | 0x20))) {
        for (const char *u = units; u <= unit; u++)
            factor *= 1000;
        at++;
    }
    if (!at || *at || cw_number_scale(&number, factor, &request->parameters) != 0 ||
        request->parameters == 0 || (number.has_point && factor == 1))
        return refuse("params", value, "a number of parameters, as in 350M or 7.2B");
    return 0;
}

static int set_format(const struct cw_number_format **to, const char *flag, const char *value)
{
    struct cw_nearest nearest = cw_nearest_to(value, strlen(value));
    char guess[CW_SUGGESTION_MAX];
    const struct cw_number_format *format;

    *to = cw_number_format_find(value);
    if (*to)
        return 0;
    for (size_t i = 0; (format = cw_number_format_at(i)); i++)
        cw_nearest_offer(&nearest, format->name, strlen(format->name));
    cw_cli_error("--%s: '%s' is not one of %.*s%s", flag, value, (int)sizeof(formats) - 2, formats,
                 cw_cli_suggestion(guess, sizeof(guess), &nearest));
    return -1;
}

static void set_optimizer(struct cw_model_request *request, const char *value)
{
    unsigned i = 0;

    while (i < CW_OPTIMIZER_COUNT - 1 &&
           strcmp(cw_optimizer_name((enum cw_optimizer)i), value) != 0)
        i++;
    request->load.optimizer = (enum cw_optimizer)i;
}

static int set_field(struct cw_model_request *request, enum cw_shape_field field, const char *value)
{
    const struct cw_shape_row *row = cw_shape_row(field);

    request->has_shape = 1;
    return set_count(cw_shape_at(&request->given, field), row->flag, value, row->most);
}

int cw_model_set_flag(struct cw_model_request *request, int flag, const char *value)
{
    struct cw_estimate_load *load = &request->load;

    request->has_load |= flag < FLAG_PARAMS;
    switch (flag) {
    case FLAG_BATCH:
        return set_count(&load->batch, "batch", value, BATCH_MOST);
    case FLAG_CONTEXT:
        return set_count(&load->context, "context", value, CONTEXT_MOST);
    case FLAG_DTYPE:
        return set_format(&load->weights, "dtype", value);
    case FLAG_KV_DTYPE:
        return set_format(&load->cache, "kv-dtype", value);
    case FLAG_CHUNK:
        return set_count(&load->chunk, "chunk", value, CONTEXT_MOST);
    case FLAG_TP:
        return set_count(&load->devices, "tp", value, DEVICES_MOST);
    case FLAG_TRAIN:
        load->is_training = 1;
        return 0;
    case FLAG_OPTIMIZER:
        set_optimizer(request, value);
        return 0;
    case FLAG_CHECKPOINTING:
        load->is_checkpointed = 1;
        return 0;
    case FLAG_NO_MASTER:
        load->has_no_master = 1;
        return 0;
    case FLAG_PARAMS:
        return set_parameters(request, value);
    default:
        return set_field(request, (enum cw_shape_field)(flag - FLAG_FIRST_FIELD), value);
    }
}

/* ---- what is asked ---- */

/* Names the file, if there is one, and the flag that would help. */
static int fail(const struct cw_model_request *request, const struct cw_refusal *refusal)
{
    const char *path = request->path, *flag = "", *names = "";
    char help[160] = "";

    if (refusal->missing != CW_SHAPE_COUNT) {
        flag = cw_shape_row(refusal->missing)->flag;
        names = cw_shape_row(refusal->missing)->names;
    }
    if (path && *names)
        snprintf(help, sizeof(help), "; config.json calls it %.*s%s%s", (int)strcspn(names, " "),
                 names, *flag ? ", or give --" : "", flag);
    else if (*flag)
        snprintf(help, sizeof(help), "; give --%s", flag);
    cw_cli_error("%s%s%s%s%s", path ? "'" : "", path ? path : "", path ? "': " : "", refusal->why,
                 help);
    return CW_EXIT_FAILURE;
}

static void apply_given(const struct cw_model_request *request, struct cw_facts *facts)
{
    struct cw_shape given = request->given;

    for (unsigned field = 0; field < CW_SHAPE_COUNT; field++) {
        uint64_t value = *cw_shape_at(&given, (enum cw_shape_field)field);

        if (value == 0)
            continue;
        *cw_shape_at(&facts->shape, (enum cw_shape_field)field) = value;
        facts->varies &= ~(1u << field);
    }
    facts->has_shape |= request->has_shape;
    if (request->parameters != 0) {
        facts->stored = (struct cw_estimate_stored){.parameters = request->parameters};
        facts->has_weights = 1;
    }
}

/* A shape whose numbers differ from layer to layer is none, and where a file has one that is none,
 * its weights may still be known. 0, or -1 after a message. */
static int check_shape(const struct cw_model_request *request, struct cw_facts *facts)
{
    const struct cw_shape_row *row;

    if (facts->varies != 0) {
        row = cw_shape_row((enum cw_shape_field)__builtin_ctz(facts->varies));
        snprintf(facts->shapeless, sizeof(facts->shapeless),
                 "'%.*s': %s is not the same in all layers, which cannot be estimated%s%s",
                 CW_FACTS_PATH, request->path, row->name, *row->flag ? "; give --" : "", row->flag);
        cw_facts_drop_shape(facts);
    }
    if (!*facts->shapeless || facts->has_shape || facts->has_weights)
        return 0;
    cw_cli_error("%s", facts->shapeless);
    return -1;
}

/* Which format the weights have, and whether the file's own bytes count. */
static int choose_format(struct cw_model_answer *answer)
{
    struct cw_facts *facts = &answer->facts;
    struct cw_estimate_load *load = &answer->load;
    int is_given = load->weights != NULL;

    if (!is_given)
        load->weights = facts->weights ? facts->weights : cw_number_format_find(FORMAT_DEFAULT);
    answer->is_stored = !is_given && facts->stored.bytes != 0;
    if (facts->stored.parameters == 0 && !facts->has_shape)
        facts->stored.parameters = cw_number_format_count(
            facts->weights ? facts->weights : cw_number_format_find(FORMAT_DEFAULT),
            facts->stored.bytes);
    if (!answer->is_stored)
        facts->stored.bytes = 0;
    if (load->is_training &&
        (!cw_number_format_is_plain(load->weights) || (facts->is_gguf && !is_given))) {
        cw_cli_error("--train: weights in %s are not trained; give --dtype=bf16, fp16 or fp32",
                     facts->is_gguf && !is_given ? "GGUF" : load->weights->name);
        return CW_EXIT_USAGE;
    }
    if (!load->cache)
        load->cache = cw_number_format_find(load->weights->bits > 160000 ? "fp32" : "bf16");
    return CW_EXIT_OK;
}

static void fill_in(struct cw_estimate_load *load, const struct cw_facts *facts)
{
    uint64_t positions = facts->shape.positions;

    if (load->batch == 0)
        load->batch = 1;
    if (load->devices == 0)
        load->devices = 1;
    if (load->chunk == 0)
        load->chunk = CHUNK_DEFAULT;
    if (load->context == 0)
        load->context = positions != 0 && positions < CONTEXT_DEFAULT ? positions : CONTEXT_DEFAULT;
    else if (positions != 0 && load->context > positions)
        cw_cli_warn("a context of %ju is longer than the %ju that the model was made for",
                    (uintmax_t)load->context, (uintmax_t)positions);
}

static int check_request(const struct cw_model_request *request)
{
    const struct cw_estimate_load *load = &request->load;
    const char *flag = load->is_checkpointed                  ? "checkpointing"
                       : load->has_no_master                  ? "no-master"
                       : load->optimizer != CW_OPTIMIZER_ADAM ? "optimizer"
                                                              : NULL;

    if (flag && !load->is_training) {
        cw_cli_error("--%s is for training: add --train", flag);
        return cw_cli_usage_error();
    }
    if (request->path || request->parameters != 0 || request->has_shape)
        return CW_EXIT_OK;
    cw_cli_error("missing model: a file, a directory, --params=N, or --layers=N and more");
    return cw_cli_usage_error();
}

static const struct cw_shape *shape_of(const struct cw_model_answer *answer)
{
    return answer->facts.has_shape ? &answer->facts.shape : NULL;
}

/* Bytes of a file that has them count in any format. */
static void warn_of_format(const struct cw_model_request *request,
                           const struct cw_model_answer *answer)
{
    if (*answer->facts.quantizer && !answer->is_stored && !request->load.weights)
        cw_cli_warn("'%s' is quantised by %s in a way that is not known here: the weights count as "
                    "%s; give --dtype, or its index",
                    request->path, answer->facts.quantizer, answer->load.weights->name);
}

/* An index beside another model's config.json: no format is so wide or so narrow. */
static void warn_of_mismatch(const struct cw_model_request *request,
                             const struct cw_model_answer *answer)
{
    const struct cw_facts *facts = &answer->facts;
    uint64_t stored = facts->stored.bytes, reckoned = answer->estimate.reckoned;
    char a[32], b[32];

    if (answer->is_stored && reckoned != 0 && !*facts->quantizer && !facts->is_part &&
        (stored / MISMATCH > reckoned || reckoned / MISMATCH > stored))
        cw_cli_warn("'%s': %s of weights are stored, but a model of its shape has %s: do the files "
                    "belong together? The stored size counts",
                    request->path, cw_format_size(a, sizeof(a), stored),
                    cw_format_size(b, sizeof(b), reckoned));
}

static void warn_of_parts(const struct cw_model_request *request,
                          const struct cw_model_answer *answer)
{
    const struct cw_facts *facts = &answer->facts;
    const char *missing = answer->load.is_training ? "activations" : "cache and no activations";

    if (answer->estimate.is_partial && *facts->shapeless)
        cw_cli_warn("%s; so the sum has no %s", facts->shapeless, missing);
    else if (answer->estimate.is_partial)
        cw_cli_warn("the shape is not known, so the sum has no %s: %s", missing,
                    request->path ? "put config.json beside the file, or give --layers and more"
                                  : "give --layers and more");
    if (facts->is_part && !facts->has_weights)
        cw_cli_warn("'%s' is of a model of several kinds: only its text part is estimated; the "
                    "index of its weights would tell of all",
                    request->path);
}

int cw_model_estimate(const struct cw_model_request *request, struct cw_model_answer *answer)
{
    struct cw_facts *facts = &answer->facts;
    struct cw_shape given = request->given;
    struct cw_refusal refusal;
    int status = check_request(request);

    if (status != CW_EXIT_OK)
        return status;
    *answer = (struct cw_model_answer){.load = request->load};
    if (request->path && cw_model_files_read(facts, request->path) != 0)
        return CW_EXIT_FAILURE;
    apply_given(request, facts);
    if (check_shape(request, facts) != 0)
        return CW_EXIT_FAILURE;
    status = choose_format(answer);
    if (status != CW_EXIT_OK)
        return status;
    if (facts->has_shape && (cw_shape_check_partners(&given, &facts->shape, &refusal) != 0 ||
                             cw_shape_complete(&facts->shape, &refusal) != 0))
        return fail(request, &refusal);
    fill_in(&answer->load, facts);
    if (cw_estimate_make(shape_of(answer), facts->has_weights ? &facts->stored : NULL,
                         &answer->load, &answer->estimate, &refusal) != 0)
        return fail(request, &refusal);
    warn_of_parts(request, answer);
    warn_of_format(request, answer);
    warn_of_mismatch(request, answer);
    answer->estimate.is_partial |= facts->is_part && !facts->has_weights;
    return CW_EXIT_OK;
}

uint64_t cw_model_longest(const struct cw_model_answer *answer, uint64_t memory)
{
    uint64_t positions = answer->facts.shape.positions;

    if (answer->estimate.is_partial)
        return 0;
    return cw_estimate_longest(
        shape_of(answer), answer->facts.has_weights ? &answer->facts.stored : NULL, &answer->load,
        memory, positions != 0 ? positions : CW_MODEL_LONGEST_MOST);
}
