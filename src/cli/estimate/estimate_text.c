/* SPDX-License-Identifier: MIT */
/* An estimate as text. See estimate_print.h. */
#include "cli/estimate/estimate_print.h"

#include "base/out.h"
#include "cli/ui/message.h"

#define SIZE_TEXT 24
#define NOTE_MAX  160

static const char *size_text(char buf[SIZE_TEXT], uint64_t bytes)
{
    return cw_format_size(buf, SIZE_TEXT, bytes);
}

/* "7.24 billion". */
static void print_count(FILE *to, uint64_t count)
{
    if (count >= 1000000000)
        fprintf(to, "%.2f billion", (double)count / 1e9);
    else
        fprintf(to, "%.1f million", (double)count / 1e6);
}

static void print_head(FILE *to, const struct cw_model_answer *answer)
{
    const struct cw_estimate *estimate = &answer->estimate;
    const struct cw_estimate_load *load = &answer->load;

    fprintf(to, "%s%s", answer->facts.name, answer->facts.name[0] ? ": " : "");
    print_count(to, estimate->parameters);
    fprintf(to, " parameters");
    if (estimate->active_parameters != 0 &&
        estimate->active_parameters < estimate->parameters / 10 * 9) {
        fprintf(to, " (a token uses ");
        print_count(to, estimate->active_parameters);
        fputc(')', to);
    }
    fprintf(to, ", %s, %s, batch %ju, context %ju\n",
            answer->is_stored && answer->facts.is_gguf ? "as stored" : load->weights->name,
            load->is_training ? "training" : "inference", (uintmax_t)load->batch,
            (uintmax_t)load->context);
    if (load->devices > 1)
        fprintf(to, "on each of %ju devices:\n", (uintmax_t)load->devices);
}

/* What stands behind the size of a part. */
static void note_cache(const struct cw_model_answer *answer, char note[NOTE_MAX])
{
    const struct cw_shape *shape = &answer->facts.shape;
    char size[SIZE_TEXT];
    int len = snprintf(note, NOTE_MAX, "%s a token in %s",
                       size_text(size, answer->estimate.token_bytes), answer->load.cache->name);

    if (shape->kv_rank != 0)
        snprintf(note + len, NOTE_MAX - (size_t)len, ", latent (MLA)");
    else if (shape->window_layers != 0)
        snprintf(note + len, NOTE_MAX - (size_t)len, "; %ju of %ju layers keep %ju tokens",
                 (uintmax_t)shape->window_layers, (uintmax_t)shape->layers,
                 (uintmax_t)shape->window);
}

static void note_activations(const struct cw_estimate_load *load, char note[NOTE_MAX])
{
    uint64_t tokens = load->batch * load->context;

    if (load->is_training)
        snprintf(note, NOTE_MAX, "%ju token%s%s", (uintmax_t)tokens, cw_cli_plural(tokens),
                 load->is_checkpointed ? ", with checkpointing" : "");
    else
        snprintf(note, NOTE_MAX, "%ju tokens at a time",
                 (uintmax_t)(tokens < load->chunk ? tokens : load->chunk));
}

static void make_note(const struct cw_model_answer *answer, unsigned part, char note[NOTE_MAX])
{
    const struct cw_estimate_load *load = &answer->load;

    note[0] = '\0';
    if (part == CW_PART_WEIGHTS && answer->is_stored)
        snprintf(note, NOTE_MAX, "as the file has them");
    else if (part == CW_PART_CACHE)
        note_cache(answer, note);
    else if (part == CW_PART_ACTIVATIONS)
        note_activations(load, note);
    else if (part == CW_PART_MASTER)
        snprintf(note, NOTE_MAX, "a copy of the weights in 32 bits");
    else if (part == CW_PART_OPTIMIZER)
        snprintf(note, NOTE_MAX, "%s", cw_optimizer_name(load->optimizer));
}

static void print_row(FILE *to, const char *name, uint64_t bytes, const char *note)
{
    char size[SIZE_TEXT];

    fprintf(to, "  %-12s %10s%s%s\n", name, size_text(size, bytes), *note ? "   " : "", note);
}

static void print_parts(FILE *to, const struct cw_model_answer *answer)
{
    const struct cw_estimate *estimate = &answer->estimate;
    char note[NOTE_MAX], size[SIZE_TEXT];

    for (unsigned i = 0; i < CW_PART_COUNT; i++) {
        if (estimate->part[i] == 0)
            continue;
        make_note(answer, i, note);
        print_row(to,
                  i == CW_PART_CACHE ? "KV cache" : cw_estimate_part_name((enum cw_estimate_part)i),
                  estimate->part[i], note);
    }
    snprintf(note, sizeof(note), "and %s in reserve: driver, context, 10 %%",
             size_text(size, estimate->reserve));
    print_row(to, "total", estimate->total, note);
}

/* ---- devices ---- */

static void print_fit(FILE *to, const struct cw_model_answer *answer, const char *name,
                      uint64_t memory, const char *what)
{
    uint64_t need = answer->estimate.total + answer->estimate.reserve;
    uint64_t longest = cw_model_longest(answer, memory);
    char size[SIZE_TEXT];

    fprintf(to, "  %-12s ", name);
    if (need > memory)
        fprintf(to, "no, %s too much", size_text(size, need - memory));
    else if (answer->estimate.is_partial)
        fprintf(to, "not known: the sum has %s",
                answer->facts.has_shape ? "the text part alone" : "no cache and no activations");
    else
        fprintf(to, "fits, %s left", size_text(size, memory - need));
    if (longest == CW_MODEL_LONGEST_MOST)
        fprintf(to, "; contexts of %ju and more", (uintmax_t)longest);
    else if (longest != 0)
        fprintf(to, "; contexts up to %ju", (uintmax_t)longest);
    fprintf(to, "%s%s\n", *what ? "  " : "", what);
}

static void print_against(FILE *to, const struct cw_model_answer *answer,
                          const struct cw_estimate_against *against)
{
    char name[32], what[160], size[SIZE_TEXT];

    for (unsigned i = 0; i < against->memories; i++)
        print_fit(to, answer, size_text(size, against->memory[i]), against->memory[i], "");
    for (unsigned i = 0; against->devices && i < against->devices->count; i++) {
        const struct cw_device_memory *device = &against->devices->device[i];

        snprintf(what, sizeof(what), "(%s free, %s)", size_text(size, device->free), device->name);
        print_fit(to, answer, cw_device_label(device, name, sizeof(name)), device->free, what);
    }
}

/* What is taken for granted. */
static void print_assumptions(FILE *to, const struct cw_model_answer *answer)
{
    const struct cw_estimate_load *load = &answer->load;

    const char *words = !load->is_training    ? "prompts in chunks, logits of last tokens"
                        : load->has_no_master ? "no dropout, states as wide as the weights"
                                              : "no dropout, mixed precision as in ZeRO";

    fprintf(to,
            "assumes no stored attention scores, %s;\nthe rules and their sources are in "
            "docs/estimate.md\n",
            words);
}

void cw_estimate_print_text(FILE *to, const struct cw_model_answer *answer,
                            const struct cw_estimate_against *against)
{
    print_head(to, answer);
    print_parts(to, answer);
    fputc('\n', to);
    print_against(to, answer, against);
    fputc('\n', to);
    print_assumptions(to, answer);
}
