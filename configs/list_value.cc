#include "configs/list_value.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <memory>
#include <utility>

#include "configs/field.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

/// Returns the position after the quoted text that begins at `begin`; npos if it is not closed.
size_t after_quotes(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[begin]) {
      return i + 1;
    }
  }
  return text.npos;
}

}  // namespace

std::optional<std::vector<std::string>> list_values(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  if (text.front() == '[') {
    if (text.size() < 2 || text.back() != ']') return std::nullopt;
    text = trimmed(text.substr(1, text.size() - 2));
    if (text.empty()) return std::vector<std::string>();
  }
  std::vector<std::string> values;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"' || text[i] == '\'') {
      i = after_quotes(text, i);
      if (i == text.npos) return std::nullopt;
    } else if (text[i] == '[' || text[i] == ']') {
      return std::nullopt;
    } else if (text[i] == ',') {
      values.emplace_back(trimmed(text.substr(begin, i - begin)));
      begin = ++i;
    } else {
      ++i;
    }
  }
  values.emplace_back(trimmed(text.substr(begin)));
  return values;
}

std::string assign_list(pb::Message& message, const pb::FieldDescriptor& field,
                        std::string_view path, std::string_view text, ListChange change) {
  const std::optional<std::vector<std::string>> values = list_values(text);
  if (!values) {
    return fmt::format("{} is {}: expected {}.", path, text.empty() ? "empty" : text,
                       expected(field));
  }
  const pb::Reflection& reflection = *message.GetReflection();
  int index = change == ListChange::kAppend ? reflection.FieldSize(message, &field) : 0;
  const std::unique_ptr<pb::Message> fresh(message.New());
  for (const std::string& value : *values) {
    if (value.empty() || !assign(*fresh, field, value)) {
      return wrong_value(value_path(path, index), field, value.empty() ? "empty" : value);
    }
    ++index;
  }
  if (change == ListChange::kReplace) reflection.ClearField(&message, &field);
  message.MergeFrom(*fresh);
  return {};
}

}  // namespace lockstep::config
