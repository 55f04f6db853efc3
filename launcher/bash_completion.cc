#include "launcher/bash_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep::launcher {
namespace {

/// {0}: the program, {1}: patterns of verbs, {2}: words by verb, {3}: choices by option.
/// Bash splits words at '=', so the script reads the line itself and gives back only what follows
/// the last '=' when the word under the cursor holds one.
constexpr const char* kScript = R"(# bash completion for {0}, written by `{0} completion bash`.
# Load it with: source <({0} completion bash)
_{0}() {{
  local line=${{COMP_LINE:0:COMP_POINT}}
  local current=${{line##*[[:space:]]}}
  local -a before
  read -ra before <<< "${{line%"$current"}}"
  local last=${{before[${{#before[@]}} - 1]}} verb="" word
  for word in "${{before[@]:1}}"; do
    case "${{verb:+$verb }}$word" in
      {1}) verb="${{verb:+$verb }}$word" ;;
    esac
  done
  if [[ $current == --*=* ]]; then
    last=${{current%%=*}}
    current=${{current#*=}}
  fi
  local words=""
  case "$last" in
    --set)
      words=$("${{COMP_WORDS[0]}}" completion paths "$current" 2> /dev/null) ;;
{3}    *)
      case "$verb" in
{2}      esac
      [[ $current == -* ]] || words=$(compgen -W "$words" -X '-*') ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then
    compopt -o nospace 2> /dev/null
  fi
  if [[ $current == *=* && $COMP_WORDBREAKS == *=* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#"${{current%=*}}="}}")
  fi
}}
complete -o default -F _{0} {0}
)";

struct Tables {
  std::vector<std::string> verbs;  ///< "train", "bench", "bench step"
  std::string words;
  std::string choices;
};

/// The values in "TEXT:{a,b,c}", as CLI11 describes an option with fixed choices.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == type.npos || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

void collect(const CLI::App& app, const std::string& path, Tables& tables) {
  std::vector<std::string> words;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string verb_path = path.empty() ? verb->get_name() : path + " " + verb->get_name();
    words.push_back(verb->get_name());
    tables.verbs.push_back(fmt::format("\"{}\"", verb_path));
    collect(*verb, verb_path, tables);
  }
  for (const CLI::Option* option : app.get_options()) {
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    words.insert(words.end(), names.begin(), names.end());
    const std::vector<std::string> choices = choices_of(*option);
    if (names.empty() || choices.empty()) continue;
    const std::string entry =
        fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(names, " | "), fmt::join(choices, " "));
    // Options of one name have one meaning in all verbs.
    if (tables.choices.find(entry) == std::string::npos) tables.choices += entry;
  }
  tables.words += fmt::format("        \"{}\") words=\"{}\" ;;\n", path, fmt::join(words, " "));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  Tables tables;
  collect(app, "", tables);
  return fmt::format(kScript, app.get_name(), fmt::join(tables.verbs, " | "), tables.words,
                     tables.choices);
}

}  // namespace lockstep::launcher
