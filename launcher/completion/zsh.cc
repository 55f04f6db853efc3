#include "launcher/completion/zsh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "core/base/shell_text.h"
#include "launcher/command_line.h"

namespace lockstep::launcher {
namespace {

/// {0}: the program, {1}: patterns of verbs, {2}: choices by option, {3}: words by verb.
constexpr const char* kZshScript = R"zsh(#compdef {0}
# zsh completion for {0}, written by `{0} completion zsh`.
# Load it with: source <({0} completion zsh)
_{0}() {{
  local verb="" word last=$words[CURRENT-1]
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "${{verb:+$verb }}$word" in
      {1}) verb="${{verb:+$verb }}$word" ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then
    last=${{PREFIX%%=*}}
    compset -P 1 '*='
  fi
  case "$last" in
    --set)
      local -a paths
      paths=(${{(f)"$($words[1] completion paths "$PREFIX" 2> /dev/null)"}})
      compadd -S '' -- ${{(M)paths:#*=}}
      compadd -- ${{paths:#*=}}
      return ;;
{2}  esac
  local -a verbs options
  case "$verb" in
{3}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( $#verbs )); then
    _describe verb verbs
  else
    _files
  fi
}}
if [[ $funcstack[1] == _{0} ]]; then
  _{0} "$@"
else
  compdef _{0} {0}
fi
)zsh";

/// "'name:its help'", as _describe reads it.
std::string described(const std::string& name, const std::string& text) {
  return shell_text({name + ":" + text.substr(0, text.find('\n'))});
}

struct ZshTables {
  std::vector<std::string> verbs;
  std::string choices;
  std::string words;
};

void collect_for_zsh(const Verb& verb, const std::string& path, ZshTables& tables) {
  std::vector<std::string> verbs;
  std::vector<std::string> options;
  for (const Verb& below : verb.verbs()) {
    const std::string path_below = path.empty() ? below.name() : path + " " + below.name();
    tables.verbs.push_back(fmt::format("\"{}\"", path_below));
    verbs.push_back(described(below.name(), below.text()));
    collect_for_zsh(below, path_below, tables);
  }
  for (const Verb::Words& option : verb.options()) {
    for (const std::string& name : option.names) options.push_back(described(name, option.text));
    if (option.names.empty() || option.choices.empty()) continue;
    const std::string entry =
        fmt::format("    {}) compadd -- {}; return ;;\n", fmt::join(option.names, " | "),
                    fmt::join(option.choices, " "));
    if (tables.choices.find(entry) == std::string::npos) tables.choices += entry;
  }
  tables.words += fmt::format("    \"{}\") verbs=({}) options=({}) ;;\n", path,
                              fmt::join(verbs, " "), fmt::join(options, " "));
}

}  // namespace

std::string zsh_completion(const Verb& program) {
  ZshTables tables;
  collect_for_zsh(program, "", tables);
  return fmt::format(kZshScript, program.name(), fmt::join(tables.verbs, " | "), tables.choices,
                     tables.words);
}

}  // namespace lockstep::launcher
