#include "tests/forms/declared.h"

#include <algorithm>
#include <regex>

#include "core/base/check.h"

namespace lockstep::forms {

namespace {

std::string without_comments(std::string_view text) {
  return std::regex_replace(std::string(text), std::regex("//[^\n]*"), "");
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \n") - first + 1));
}

/// Index of the bracket that closes the one at `open`, or npos.
size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == '}') && --depth == 0) return i;
  }
  return std::string_view::npos;
}

Overload overload_of(std::string_view parameters) {
  Overload overload;
  for (const std::string& parameter : split_list(parameters)) {
    const size_t equals = parameter.find('=');
    const std::string declared = trimmed(parameter.substr(0, equals));
    if (equals == std::string::npos) ++overload.required;
    // The parameter's name is the last word.
    overload.kinds.push_back(kind_of_type(declared.substr(0, declared.find_last_of(" &*") + 1)));
  }
  return overload;
}

}  // namespace

std::string kind_of_type(std::string_view type) {
  std::string kind = trimmed(type);
  for (const char* ignored : {"const ", "&", "std::optional<", ">", " "}) {
    for (size_t at; (at = kind.find(ignored)) != std::string::npos;) {
      kind.erase(at, std::string_view(ignored).size());
    }
  }
  return kind.starts_with("Optional") ? kind.substr(std::string_view("Optional").size()) : kind;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '<' || text[i] == '(' || text[i] == '{')) ++depth;
    if (i < text.size() && (text[i] == '>' || text[i] == ')' || text[i] == '}')) --depth;
    if (i != text.size() && (text[i] != ',' || depth != 0)) continue;
    if (std::string part = trimmed(text.substr(start, i - start)); !part.empty()) {
      parts.push_back(std::move(part));
    }
    start = i + 1;
  }
  return parts;
}

Overloads declared_functions(std::string_view text) {
  const std::string code = without_comments(text);
  // A type at the start of a line, indented by a class at most, then a name and a bracket.
  static const std::regex pattern(
      R"(\n(?:  )?(?:inline |\[\[nodiscard\]\] )*(?!return|throw|else|using|template)[A-Za-z_][\w:<>, &*]*[ &*]([a-z]\w*)\()");
  Overloads functions;
  for (auto it = std::sregex_iterator(code.begin(), code.end(), pattern);
       it != std::sregex_iterator(); ++it) {
    const size_t open = static_cast<size_t>(it->position(0) + it->length(0)) - 1;
    const size_t close = closing(code, open);
    LS_CHECK(close != std::string::npos, Error, "[forms] no bracket closes {}(.", it->str(1));
    functions[it->str(1)].push_back(overload_of(code.substr(open + 1, close - open - 1)));
  }
  return functions;
}

std::string class_body(std::string_view text, std::string_view name) {
  const std::string code = without_comments(text);
  const std::regex start("class (\\[\\[nodiscard\\]\\] )?" + std::string(name) + " \\{");
  std::smatch match;
  LS_CHECK(std::regex_search(code, match, start), Error, "[forms] no class {}.", name);
  const size_t open = static_cast<size_t>(match.position(0) + match.length(0)) - 1;
  return code.substr(open + 1, closing(code, open) - open - 1);
}

bool fit_in(const std::vector<Overload>& present, Overload& added) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Overload& other : present) {
      const auto [mine, theirs] = std::ranges::mismatch(added.kinds, other.kinds);
      const size_t common = static_cast<size_t>(mine - added.kinds.begin());
      if (std::max(added.required, other.required) > common) continue;
      if (common == added.kinds.size()) return false;
      added.required = common + 1;
      changed = true;
    }
  }
  return true;
}

}  // namespace lockstep::forms
