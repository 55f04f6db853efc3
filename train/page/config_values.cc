#include "train/page/config_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::train {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Divides a line where its comment begins, outside of quotes.
std::pair<std::string_view, std::string_view> divided(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return {trimmed(line.substr(0, i)), trimmed(line.substr(i + 1))};
    }
  }
  return {trimmed(line), ""};
}

}  // namespace

std::vector<ConfigValue> read_config_values(std::string_view text) {
  std::vector<ConfigValue> values;
  std::vector<std::string> path;
  std::map<std::string, int> blocks;  // of each name, so that those of a list differ
  const auto named = [&](std::string_view name) {
    std::string full;
    for (const std::string& part : path) full += part + ".";
    return full.append(name);
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto [code, comment] = divided(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (code == "}") {
      if (!path.empty()) path.pop_back();
    } else if (code.ends_with("{}")) {
      const std::string_view name = trimmed(code.substr(0, code.size() - 2));
      values.push_back({named(name), "{}", std::string(comment)});
    } else if (const size_t colon = code.find(':'); colon != code.npos) {
      values.push_back({named(trimmed(code.substr(0, colon))),
                        std::string(trimmed(code.substr(colon + 1))), std::string(comment)});
    } else if (code.ends_with('{')) {
      std::string name(trimmed(code.substr(0, code.size() - 1)));
      if (const int earlier = blocks[named(name)]++) name += fmt::format("[{}]", earlier);
      path.push_back(std::move(name));
    }
  }
  return values;
}

std::vector<ConfigValue> with_origins(std::vector<ConfigValue> values,
                                      const std::vector<ConfigValue>& annotated) {
  std::map<std::string, const ConfigValue*> by_path;
  for (const ConfigValue& value : annotated) by_path[value.path] = &value;
  for (ConfigValue& value : values) {
    const auto found = by_path.find(value.path);
    if (found != by_path.end() && found->second->value == value.value) {
      value.origin = found->second->origin;
    }
  }
  return values;
}

}  // namespace lockstep::train
