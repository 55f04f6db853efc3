#include "launcher/completion/fish.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "launcher/command_line.h"

namespace lockstep::launcher {
namespace {

/// {0}: the program, {1}: verbs, {2}: one line for each verb and option.
constexpr const char* kFishScript =
    R"(# fish completion for {0}, written by `{0} completion fish`.
# Load it with: {0} completion fish | source
function __{0}_in --description 'Is this the verb before the cursor?'
    set -l verb
    for word in (commandline -opc)[2..-1]
        switch "$verb $word"
            case {1}
                set verb "$verb $word"
        end
    end
    test "$verb" = "$argv"
end
function __{0}_paths
    set -l word (commandline -ct | string replace -r '^--set=' '')
    {0} completion paths "$word" 2>/dev/null
end
{2})";

std::string quoted_for_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

struct FishTables {
  std::vector<std::string> verbs;
  std::string lines;
};

std::string option_line(const std::string& program, const std::string& begin,
                        const Verb::Words& option) {
  std::string line = begin;
  bool is_set = false;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    line += is_long ? " -l " + name.substr(2) : " -s " + name.substr(1);
    is_set = is_set || name == "--set";
  }
  if (is_set) {
    line += fmt::format(" -x -a '(__{}_paths)'", program);
  } else if (!option.choices.empty()) {
    line += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
  } else if (option.takes_value) {
    line += " -r";
  }
  return line;
}

/// `path` begins each word with a space, as the script's function does.
void collect_for_fish(const Verb& verb, const std::string& program, const std::string& path,
                      FishTables& tables) {
  const std::string begin = fmt::format("complete -c {0} -n '__{0}_in \"{1}\"'", program, path);
  for (const Verb& below : verb.verbs()) {
    tables.verbs.push_back("'" + path + " " + below.name() + "'");
    tables.lines +=
        fmt::format("{} -f -a {} -d {}\n", begin, below.name(), quoted_for_fish(below.text()));
    collect_for_fish(below, program, path + " " + below.name(), tables);
  }
  for (const Verb::Words& option : verb.options()) {
    if (option.names.empty()) continue;
    tables.lines += fmt::format("{} -d {}\n", option_line(program, begin, option),
                                quoted_for_fish(option.text));
  }
}

}  // namespace

std::string fish_completion(const Verb& program) {
  FishTables tables;
  collect_for_fish(program, program.name(), "", tables);
  return fmt::format(kFishScript, program.name(), fmt::join(tables.verbs, " "), tables.lines);
}

}  // namespace lockstep::launcher
