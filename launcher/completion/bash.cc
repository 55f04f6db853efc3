#include "launcher/completion/bash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "launcher/command_line.h"

namespace lockstep::launcher {
namespace {

/// {0}: the program, {1}: patterns of verbs, {2}: words by verb, {3}: choices by option.
/// Bash splits words at '=', so the script parses the line itself and, if the word under the cursor
/// holds a '=', returns only what follows the last one.
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

void collect(const Verb& verb, const std::string& path, Tables& tables) {
  std::vector<std::string> words;
  for (const Verb& below : verb.verbs()) {
    const std::string path_below = path.empty() ? below.name() : path + " " + below.name();
    words.push_back(below.name());
    tables.verbs.push_back(fmt::format("\"{}\"", path_below));
    collect(below, path_below, tables);
  }
  for (const auto& [names, choices, text, takes_value] : verb.options()) {
    words.insert(words.end(), names.begin(), names.end());
    if (names.empty() || choices.empty()) continue;
    const std::string entry =
        fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(names, " | "), fmt::join(choices, " "));
    // Options of the same name have the same choices in all verbs.
    if (tables.choices.find(entry) == std::string::npos) tables.choices += entry;
  }
  tables.words += fmt::format("        \"{}\") words=\"{}\" ;;\n", path, fmt::join(words, " "));
}

}  // namespace

std::string bash_completion(const Verb& program) {
  Tables tables;
  collect(program, "", tables);
  return fmt::format(kScript, program.name(), fmt::join(tables.verbs, " | "), tables.words,
                     tables.choices);
}

}  // namespace lockstep::launcher
