/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden completion SHELL`: a script that completes commands, flags and their values in a shell,
 * generated from the tables of the commands (cli/ui/flags.h).
 */

#include <getopt.h>
#include <string.h>
#include <stdio.h>

#include "cli/ui/flags.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

const struct cw_command_line *cw_line_completion(void)
{
    static const struct cw_command_line line = {
        .usage = "bash|zsh|fish",
        .about =
            "Print the script that completes cuwarden command lines in a shell. To load it in bash "
            "or zsh, run 'source <(cuwarden completion bash)' (or zsh); in fish, 'cuwarden "
            "completion fish | source'. 'make install' installs the scripts for all three.",
        .words = "bash zsh fish",
        .least = 1,
        .most = 1,
        .missing = "shell: bash, zsh or fish",
    };

    return &line;
}

#define WORDS_MAX 512 /* longest help of a flag, or list of values */

/* ---- bash ---- */

static const char bash_begin[] =
    "# cuwarden(1) completion for bash, made by 'cuwarden completion bash'.\n"
    "# Offers the ids in names of live files. Anybody may have made them: only digits of a name "
    "are\n"
    "# used, nothing is expanded, and default directories of other users are skipped.\n"
    "_cuwarden_processes()\n"
    "{\n"
    "  local directory file pid\n"
    "  for directory in \"${CUWARDEN_LIVE:-auto}\" \"/dev/shm/cuwarden-$EUID\" "
    "\"${TMPDIR:-/tmp}/cuwarden-$EUID\"; do\n"
    "    case $directory in\n"
    "      auto | off) continue ;;\n"
    "      */\"cuwarden-$EUID\") [ -O \"$directory\" ] && [ ! -L \"$directory\" ] || continue ;;\n"
    "    esac\n"
    "    for file in \"$directory\"/*.live \"$directory\"/run-*/*.live; do\n"
    "      [ -O \"$file\" ] || [ \"$EUID\" = 0 ] || continue\n"
    "      pid=${file##*/} pid=${pid%%-*}\n"
    "      case $pid in '' | *[!0123456789]*) ;; \"$cur\"*) COMPREPLY+=(\"$pid\") ;; esac\n"
    "    done\n"
    "  done\n"
    "}\n"
    "\n"
    "# Adds what compgen finds, each line as it is.\n"
    "_cuwarden_offer()\n"
    "{\n"
    "  local line\n"
    "  while IFS= read -r line; do\n"
    "    COMPREPLY+=(\"$line\")\n"
    "  done < <(compgen \"$@\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_cuwarden()\n"
    "{\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} flag= at command=${COMP_WORDS[1]-} first=0\n"
    "  local flags= takes= operands= words= values= kind=\n"
    "  COMPREPLY=()\n"
    "  # bash splits words at '='.\n"
    "  if [ \"$cur\" = = ]; then\n"
    "    cur= flag=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  elif [ \"$COMP_CWORD\" -gt 2 ] && [ \"${COMP_WORDS[COMP_CWORD-1]}\" = = ]; then\n"
    "    flag=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  fi\n";

static const char bash_end[] =
    "    *) return ;;\n"
    "  esac\n"
    "  # A value may also be a separate word.\n"
    "  at=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  case $flag:$at in :-*) case \" $takes \" in *\" $at \"*) flag=$at ;; esac ;; esac\n"
    "  [ -z \"$flag\" ] || _cuwarden_value \"$command$flag\"\n"
    "  case $kind in\n"
    "    file) compopt -o filenames 2>/dev/null; _cuwarden_offer -f; return ;;\n"
    "    directory) compopt -o filenames 2>/dev/null; _cuwarden_offer -d; return ;;\n"
    "    words) _cuwarden_offer -W \"$values\"; return ;;\n"
    "    other) return ;;\n"
    "  esac\n"
    "  # The first operand, if the command runs a program: the rest belongs to that program.\n"
    "  for ((at = 2; at < COMP_CWORD; at++)); do\n"
    "    case ${COMP_WORDS[at]} in\n"
    "      --) first=$((at + 1)); break ;;\n"
    "      =) at=$((at + 1)) ;;\n"
    "      -*) case \" $takes \" in *\" ${COMP_WORDS[at]} \"*)\n"
    "        [ \"${COMP_WORDS[at+1]-}\" = = ] || at=$((at + 1)) ;; esac ;;\n"
    "      *) first=$at; break ;;\n"
    "    esac\n"
    "  done\n"
    "  case $operands in\n"
    "    *program*)\n"
    "      if [ \"$first\" -gt 0 ] && [ \"$first\" -lt \"$COMP_CWORD\" ]; then\n"
    "        if declare -F _command_offset >/dev/null; then _command_offset \"$first\"; return; "
    "fi\n"
    "        compopt -o filenames 2>/dev/null; _cuwarden_offer -f; return\n"
    "      fi ;;\n"
    "  esac\n"
    "  case $cur in\n"
    "    -*)\n"
    "      if [ \"$first\" = 0 ]; then\n"
    "        _cuwarden_offer -W \"$flags\"\n"
    "        case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
    "        return\n"
    "      fi ;;\n"
    "  esac\n"
    "  _cuwarden_offer -W \"$words\"\n"
    "  case $operands in *pid*) _cuwarden_processes ;; esac\n"
    "  # As file names they would be quoted and end with a blank.\n"
    "  if [ -n \"$cur\" ] && [ ${#COMPREPLY[@]} -gt 0 ]; then\n"
    "    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
    "    return\n"
    "  fi\n"
    "  case $operands in *program*) _cuwarden_offer -c ;; esac\n"
    "  case $operands in *program* | *file*)\n"
    "    compopt -o filenames 2>/dev/null; _cuwarden_offer -f ;;\n"
    "  esac\n"
    "}\n"
    "complete -F _cuwarden cuwarden\n";

enum value { VALUE_NONE, VALUE_FILE, VALUE_DIRECTORY, VALUE_OTHER };

static enum value value_of(const struct cw_flag *flag)
{
    if (!flag->value)
        return VALUE_NONE;
    if (strcmp(flag->value, "FILE") == 0)
        return VALUE_FILE;
    return strcmp(flag->value, "DIR") == 0 ? VALUE_DIRECTORY : VALUE_OTHER;
}

static void print_bash_values(const struct cw_command *command)
{
    static const char *const kinds[] = {
        [VALUE_FILE] = "file",
        [VALUE_DIRECTORY] = "directory",
        [VALUE_OTHER] = "other",
    };
    const struct cw_flag *flag;
    char words[WORDS_MAX];

    for (size_t i = 0; (flag = cw_flags_at(command->line(), i)); i++) {
        if (!flag->value)
            continue;
        printf("    %s--%s", command->name, flag->name);
        if (cw_flag_letter(flag))
            printf(" | %s-%c", command->name, cw_flag_letter(flag));
        if (*cw_flag_values(flag, words, sizeof(words)))
            printf(") kind=words values='%s' ;;\n", words);
        else
            printf(") kind=%s ;;\n", kinds[value_of(flag)]);
    }
}

static void print_bash_command(const struct cw_command *command)
{
    const struct cw_command_line *line = command->line();
    const struct cw_flag *flag;
    char words[WORDS_MAX];

    printf("    %s)\n      flags='", command->name);
    for (size_t i = 0; (flag = cw_flags_at(line, i)); i++)
        printf("%s--%s%s", i > 0 ? " " : "", flag->name, flag->value ? "=" : "");
    printf("'\n      takes='");
    for (size_t i = 0; (flag = cw_flags_at(line, i)); i++) {
        if (!flag->value)
            continue;
        printf("--%s ", flag->name);
        if (cw_flag_letter(flag))
            printf("-%c ", cw_flag_letter(flag));
    }
    printf("'\n      operands='%s%s%s' words='%s' ;;\n",
           line->operands & CW_OPERAND_PROGRAM ? "program " : "",
           line->operands & CW_OPERAND_PID ? "pid " : "",
           line->operands & CW_OPERAND_FILE ? "file " : "",
           cw_flags_operand_words(line, words, sizeof(words)));
}

static void print_bash(const struct cw_command *commands, size_t count)
{
    fputs(bash_begin, stdout);
    printf("  if [ \"$COMP_CWORD\" -le 1 ]; then\n    _cuwarden_offer -W '");
    for (size_t i = 0; i < count; i++)
        printf("%s ", commands[i].name);
    printf("--help --version'\n    return\n  fi\n  case $command in\n");
    for (size_t i = 0; i < count; i++)
        print_bash_command(&commands[i]);
    fputs(bash_end, stdout);
    printf("\n_cuwarden_value()\n{\n  case $1 in\n");
    for (size_t i = 0; i < count; i++)
        print_bash_values(&commands[i]);
    printf("    *) return 0 ;;\n  esac\n}\n");
}

/* ---- zsh ---- */

/* Inside '...' of the shell, where colons and brackets are special to zsh. */
static void put_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_action(const struct cw_flag *flag)
{
    char words[WORDS_MAX];

    if (!flag->value)
        return;
    printf(":value:");
    if (*cw_flag_values(flag, words, sizeof(words)))
        printf("(%s)", words);
    else if (value_of(flag) != VALUE_OTHER)
        printf("%s", value_of(flag) == VALUE_FILE ? "_files" : "_files -/");
    else
        putchar(' ');
}

static void print_zsh_flag(const struct cw_flag *flag)
{
    char help[WORDS_MAX], letter = cw_flag_letter(flag);

    cw_flag_help(flag, help, sizeof(help));
    if (letter) {
        printf(" \\\n        '-%c%s[", letter, flag->value ? "+" : "");
        put_zsh_text(help);
        printf("]");
        print_zsh_action(flag);
        printf("'");
    }
    printf(" \\\n        '--%s%s[", flag->name, flag->value ? "=" : "");
    put_zsh_text(help);
    printf("]");
    print_zsh_action(flag);
    printf("'");
}

static void print_zsh_operands(const struct cw_command_line *line)
{
    char words[WORDS_MAX];

    cw_flags_operand_words(line, words, sizeof(words));
    if (line->operands & CW_OPERAND_PROGRAM)
        printf(" \\\n        '(-)1:program:_cuwarden_program' '*::arguments: _normal'");
    else if (line->operands || *words)
        printf(" \\\n        '*:operand: _cuwarden_operands %d %d \"%s\"'",
               (line->operands & CW_OPERAND_PID) != 0, (line->operands & CW_OPERAND_FILE) != 0,
               words);
}

static void print_zsh(const struct cw_command *commands, size_t count)
{
    printf("#compdef cuwarden\n"
           "# cuwarden(1) completion for zsh, made by 'cuwarden completion zsh'.\n"
           "_cuwarden_operands()\n"
           "{\n"
           "  local -a words pids places\n"
           "  local file\n"
           "  words=(${=3})\n"
           "  # Anybody may have made such names: those that are not the library's, and default\n"
           "  # directories of other users, are skipped.\n"
           "  if [[ $1 != 0 ]]; then\n"
           "    [[ ${CUWARDEN_LIVE:-auto} = (auto|off) ]] || places=($CUWARDEN_LIVE)\n"
           "    places+=(/dev/shm/cuwarden-$EUID(N/U) ${TMPDIR:-/tmp}/cuwarden-$EUID(N/U))\n"
           "    for file in ${^places}/<->-<->-[0-9a-f]##.live(N.) "
           "${^places}/run-*/<->-<->-[0-9a-f]##.live(N.); do\n"
           "      [[ -O $file || $EUID = 0 ]] && pids+=(${file:t})\n"
           "    done\n"
           "  fi\n"
           "  compadd -S '' -- ${(M)words:#*=}\n"
           "  compadd -- ${words:#*=}\n"
           "  compadd -- ${pids%%%%-*}\n"
           "  [[ $2 = 0 ]] || _files\n"
           "}\n"
           "\n"
           "_cuwarden_program()\n"
           "{\n"
           "  _alternative 'commands:program:_command_names -e' files:program:_files\n"
           "}\n"
           "\n"
           "_cuwarden()\n"
           "{\n"
           "  local -a names\n"
           "  if (( CURRENT == 2 )); then\n"
           "    names=(\n");
    for (size_t i = 0; i < count; i++) {
        printf("      '%s:", commands[i].name);
        put_zsh_text(commands[i].summary);
        printf("'\n");
    }
    printf("    )\n"
           "    _describe command names\n"
           "    return\n"
           "  fi\n"
           "  local command=$words[2]\n"
           "  shift words\n"
           "  (( CURRENT-- ))\n"
           "  case $command in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s)\n      _arguments -S", commands[i].name);
        for (size_t j = 0; cw_flags_at(commands[i].line(), j); j++)
            print_zsh_flag(cw_flags_at(commands[i].line(), j));
        print_zsh_operands(commands[i].line());
        printf(" ;;\n");
    }
    printf("  esac\n"
           "}\n"
           "\n"
           "if [ \"$funcstack[1]\" = _cuwarden ]; then _cuwarden \"$@\"; "
           "else compdef _cuwarden cuwarden; fi\n");
}

/* ---- fish ---- */

static void put_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void print_fish_flag(const char *command, const struct cw_flag *flag)
{
    static const char *const kinds[] = {
        [VALUE_NONE] = "",
        [VALUE_FILE] = " -r -F",
        [VALUE_DIRECTORY] = " -x -a '(__fish_complete_directories)'",
        [VALUE_OTHER] = " -x",
    };
    char text[WORDS_MAX];

    printf("complete -c cuwarden -n '__cuwarden_in %s' -l %s", command, flag->name);
    if (cw_flag_letter(flag))
        printf(" -s %c", cw_flag_letter(flag));
    printf("%s", kinds[value_of(flag)]);
    if (*cw_flag_values(flag, text, sizeof(text)))
        printf(" -a '%s'", text);
    printf(" -d ");
    put_fish_text(cw_flag_help(flag, text, sizeof(text)));
    putchar('\n');
}

static void print_fish_operands(const char *command, const struct cw_command_line *line)
{
    char words[WORDS_MAX];

    if (line->operands & CW_OPERAND_PROGRAM)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -x -a "
               "'(__fish_complete_subcommand --fcs-skip=2)'\n",
               command);
    if (line->operands & CW_OPERAND_PID)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -a '(__cuwarden_processes)'\n", command);
    if (line->operands & CW_OPERAND_FILE)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -F\n", command);
    if (*cw_flags_operand_words(line, words, sizeof(words)))
        printf("complete -c cuwarden -n '__cuwarden_in %s' -a '%s'\n", command, words);
}

static void print_fish(const struct cw_command *commands, size_t count)
{
    printf("# cuwarden(1) completion for fish, made by 'cuwarden completion fish'.\n"
           "function __cuwarden_in\n"
           "    set -l words (commandline -opc)\n"
           "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
           "end\n"
           "\n"
           "function __cuwarden_processes\n"
           "    # Anybody may have made such names: those that are not the library's, and default\n"
           "    # directories of other users, are skipped.\n"
           "    set -l uid (id -u)\n"
           "    set -l parents /dev/shm /tmp\n"
           "    test -n \"$TMPDIR\"; and set parents[2] $TMPDIR\n"
           "    set -l places\n"
           "    contains -- \"$CUWARDEN_LIVE\" '' auto off; or set places $CUWARDEN_LIVE\n"
           "    for place in $parents/cuwarden-$uid\n"
           "        test -O $place; and not test -L $place; and set -a places $place\n"
           "    end\n"
           "    for file in $places/*.live $places/run-*/*.live\n"
           "        test -O $file; or test $uid = 0; or continue\n"
           "        string match -r '(?<=/)[0-9]+(?=-[0-9]+-[0-9a-f]+\\.live\\z)' -- $file\n"
           "    end\n"
           "end\n"
           "\n"
           "complete -c cuwarden -f\n"
           "complete -c cuwarden -n __fish_use_subcommand -s h -l help -d 'display help'\n"
           "complete -c cuwarden -n __fish_use_subcommand -s V -l version -d 'output version'\n");
    for (size_t i = 0; i < count; i++) {
        printf("complete -c cuwarden -n __fish_use_subcommand -a %s -d ", commands[i].name);
        put_fish_text(commands[i].summary);
        putchar('\n');
        for (size_t j = 0; cw_flags_at(commands[i].line(), j); j++)
            print_fish_flag(commands[i].name, cw_flags_at(commands[i].line(), j));
        print_fish_operands(commands[i].name, commands[i].line());
    }
}

/* ---- all ---- */

static const struct shell {
    const char *name;
    void (*print)(const struct cw_command *commands, size_t count);
} shells[] = {
    {"bash", print_bash},
    {"zsh", print_zsh},
    {"fish", print_fish},
};

static const struct shell *find_shell(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(shells); i++) {
        if (strcmp(shells[i].name, name) == 0)
            return &shells[i];
    }
    cw_cli_error("'%s' is not one of bash, zsh, fish", name);
    return NULL;
}

int cw_cmd_completion(int argc, char **argv)
{
    int status = cw_flags_parse(cw_line_completion(), argc, argv, NULL, NULL);
    const struct cw_command *commands;
    const struct shell *shell;
    size_t count;

    if (status >= 0)
        return status;
    shell = find_shell(argv[optind]);
    if (!shell)
        return cw_cli_usage_error();
    commands = cw_cli_commands(&count);
    shell->print(commands, count);
    return CW_EXIT_OK;
}
