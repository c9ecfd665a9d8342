/* SPDX-License-Identifier: MIT */
/* What was never freed, from the model: LEAKS, and what is not counted as leaked. See form_sites.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text/form_sites.h"
#include "cli/text/form_whole.h"
#include "live/view.h"
#include "report/leaks/leak_class.h"
#include "report/text/text_put.h"

#define LEAKS_MAX   20 /* unless --top says otherwise */
#define APART_MAX   10
#define TRAIL_WIDTH 80

/* ---- lists ---- */

struct cw_model_amount cw_form_left_of(const struct cw_model_site *site)
{
    return (struct cw_model_amount){site->live.count + site->reclaimed.count,
                                    site->live.bytes + site->reclaimed.bytes};
}

void cw_form_list(const struct cw_form_request *request, cw_form_sort_fn is_wanted,
                  struct cw_form_list *out)
{
    out->count = 0;
    out->sum = (struct cw_model_amount){0, 0};
    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_model_site *site = &request->model->site[request->site[i]];
        struct cw_model_amount left = cw_form_left_of(site);

        if (!is_wanted(site))
            continue;
        out->site[out->count++] = request->site[i];
        out->sum.count += left.count;
        out->sum.bytes += left.bytes;
    }
}

uint8_t *cw_form_mark_shown(const struct cw_form_request *request)
{
    uint8_t *is_shown = calloc(request->model->sites + 1u, 1);

    if (!is_shown)
        cw_cli_error("'%s': out of memory", request->model->source);
    for (uint32_t i = 0; is_shown && i < request->sites; i++)
        is_shown[request->site[i]] = 1;
    return is_shown;
}

uint32_t cw_form_shown(const struct cw_form_request *request, uint32_t count, uint32_t max)
{
    return request->selection->top == 0 && count > max ? max : count;
}

int cw_form_is_whole(const struct cw_form_request *request)
{
    const struct cw_selection *selection = request->selection;

    return request->sites == request->model->sites_of && selection->top == 0 &&
           !selection->has_sort && selection->metric == CW_METRIC_LIVE;
}

void cw_form_rest(const struct cw_say *to, const struct cw_form_request *request,
                  const struct cw_form_list *list, uint32_t shown)
{
    uint64_t bytes = list->sum.bytes;

    if (list->count <= shown)
        return;
    for (uint32_t i = 0; i < shown; i++)
        bytes -= cw_form_left_of(&to->model->site[list->site[i]]).bytes;
    cw_say_begin(to);
    fputs("... ", to->out);
    cw_say_count(to, list->count - shown, "more site");
    fputs(", ", to->out);
    cw_say_size(to, bytes);
    fputs(cw_form_is_whole(request) ? " (all of them: CUWARDEN_FORMAT=json)\n"
                                    : " (--top=N shows N)\n",
          to->out);
}

/* ---- LEAKS ---- */

static const char *kind_label(const char *name)
{
    for (unsigned i = 0; i < CW_KIND_COUNT; i++)
        if (strcmp(name, cw_kind_name(i)) == 0)
            return cw_kind_label(i);
    return name; /* of a later version */
}

static void put_size(const struct cw_say *to, const struct cw_model_site *site)
{
    struct cw_model_amount left = cw_form_left_of(site);
    char asked[24], held[24];

    cw_format_size(asked, sizeof(asked), left.bytes);
    cw_format_size(held, sizeof(held), site->held + site->reclaimed.bytes);
    cw_say_begin(to);
    fputs(asked, to->out);
    if (site->held > site->live.bytes && strcmp(asked, held) != 0)
        fprintf(to->out, " (held %s)", held);
    fputs(" in ", to->out);
    cw_say_count(to, left.count, "block");
    fputs("  ", to->out);
    cw_say_clean(to, site->leak, CW_SAY_NAME_MAX);
    if (strcmp(site->leak, cw_leak_class_name(CW_LEAK_GROWING)) == 0) {
        fputc(' ', to->out);
        cw_form_slope(to, site->growth.slope_bytes_per_s);
    }
    if (site->live.count > 0 && site->reclaimed.count > 0)
        fprintf(to->out, " (%" PRIu64 " of them context-destroyed)", site->reclaimed.count);
    fputs("  ", to->out);
    cw_say_call(to, site, CW_SAY_NAME_MAX);
    fputs(", ", to->out);
    cw_say_clean(to, kind_label(site->kind), CW_SAY_NAME_MAX);
    fputc('\n', to->out);
}

static void put_times(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_begin(to);
    fprintf(to->out, "    site %08" PRIx32 "  first ", site->id);
    cw_say_time(to, site->first_ns);
    fputs("  last ", to->out);
    cw_say_time(to, site->last_ns);
    if (site->has_age) {
        fputs("  oldest ", to->out);
        cw_say_time(to, site->oldest_age_ns);
        fputs(" ago", to->out);
    }
    cw_say_tag(to, site);
    fputc('\n', to->out);
}

static int is_class(const struct cw_model_site *site, enum cw_leak_class leak)
{
    return strcmp(site->leak, cw_leak_class_name(leak)) == 0;
}

static int is_leak(const struct cw_model_site *site)
{
    return site->is_leak;
}

static int is_suppressed(const struct cw_model_site *site)
{
    return is_class(site, CW_LEAK_SUPPRESSED);
}

static void put_heading(const struct cw_say *to, const struct cw_form_list *leaks,
                        struct cw_model_amount suppressed)
{
    cw_say_heading(to, "LEAKS  ");
    if (leaks->count == 0) {
        fputs("none", to->out);
    } else {
        cw_say_amount(to, leaks->sum);
        fputs(" from ", to->out);
        cw_say_count(to, leaks->count, "call site");
    }
    if (suppressed.count > 0) {
        fputs("; suppressed: ", to->out);
        cw_say_amount(to, suppressed);
    }
    fputc('\n', to->out);
}

static void put_leaks(const struct cw_say *to, const struct cw_form_request *request,
                      struct cw_form_list *list)
{
    struct cw_model_amount suppressed;
    uint32_t shown;

    cw_form_list(request, is_suppressed, list);
    suppressed = list->sum;
    cw_form_list(request, is_leak, list);
    shown = cw_form_shown(request, list->count, LEAKS_MAX);
    put_heading(to, list, suppressed);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_model_site *site = &to->model->site[list->site[i]];

        put_size(to, site);
        put_times(to, site);
        cw_form_past_cap(to, site);
        cw_say_stack(to, site);
    }
    cw_form_rest(to, request, list, shown);
}

/* ---- what is not counted ---- */

static int is_of_library(const struct cw_model_site *site)
{
    return is_class(site, CW_LEAK_LIBRARY);
}

static int is_cache(const struct cw_model_site *site)
{
    return is_class(site, CW_LEAK_CACHE);
}

/* "ipc-imported" is one too. */
static int is_import(const struct cw_model_site *site)
{
    return is_class(site, CW_LEAK_IMPORT) || strcmp(site->leak, "ipc-imported") == 0;
}

static int is_other(const struct cw_model_site *site)
{
    return site->leak[0] && !site->is_leak && !is_of_library(site) && !is_cache(site) &&
           !is_import(site);
}

/* "cuBLAS", "PyTorch"; of others their class. */
static const char *owner_of(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_rule *rule = cw_form_rule(to->model, site->rule);

    return rule && rule->owner[0] ? rule->owner : site->leak;
}

static void put_apart_site(const struct cw_say *to, const struct cw_model_site *site)
{
    cw_say_begin(to);
    fputs("  ", to->out);
    cw_say_amount(to, cw_form_left_of(site));
    fputs("  ", to->out);
    cw_say_clean(to, owner_of(to, site), CW_SAY_NAME_MAX);
    fputs("  ", to->out);
    cw_say_call(to, site, CW_TEXT_NAME_WIDTH);
    fprintf(to->out, "  site %08" PRIx32, site->id);
    cw_say_tag(to, site);
    fputc('\n', to->out);
    cw_say_begin(to);
    fputs("      ", to->out);
    if (is_of_library(site))
        cw_say_entry(to, site);
    else
        cw_say_trail(to, site, TRAIL_WIDTH);
    fputc('\n', to->out);
}

static void put_hints(const struct cw_say *to, const struct cw_form_list *list)
{
    const struct cw_leak_hint *hint;

    for (uint32_t i = 0; (hint = cw_leak_hint(i)) != NULL; i++)
        for (uint32_t k = 0; k < list->count; k++) {
            const struct cw_model_site *site = &to->model->site[list->site[k]];

            if (site->device == CW_MODEL_HOST || strcmp(owner_of(to, site), hint->owner) != 0)
                continue;
            cw_say_begin(to);
            fprintf(to->out, "  to see here what lives in the cache of %s, run it with\n",
                    hint->owner);
            cw_say_begin(to);
            fprintf(to->out, "    %s\n", hint->setting);
            break;
        }
}

static void put_apart(const struct cw_say *to, const struct cw_form_request *request,
                      struct cw_form_list *list, cw_form_sort_fn is_wanted, const char *heading,
                      const char *why)
{
    uint32_t shown;

    cw_form_list(request, is_wanted, list);
    if (list->count == 0)
        return;
    shown = cw_form_shown(request, list->count, APART_MAX);
    cw_say_heading(to, heading);
    fputs("  ", to->out);
    cw_say_amount(to, list->sum);
    fprintf(to->out, ", not counted as leaked: %s\n", why);
    for (uint32_t i = 0; i < shown; i++)
        put_apart_site(to, &to->model->site[list->site[i]]);
    cw_form_rest(to, request, list, shown);
}

void cw_form_leaks(const struct cw_say *to, const struct cw_form_request *request,
                   struct cw_form_list *list)
{
    put_leaks(to, request, list);
    put_apart(to, request, list, is_of_library, "LIBRARIES", "owned by libraries of NVIDIA");
    put_apart(to, request, list, is_cache, "CACHES", "kept on purpose by frameworks");
    put_hints(to, list);
    put_apart(to, request, list, is_import, "IMPORTS", "memory of another process or API");
    if (!cw_form_is_whole(request))
        put_apart(to, request, list, is_other, "APART", "suppressed, or without memory");
}
