#include "data/example_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/base/parse_json.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using Parts = std::vector<ExamplePart>;

/// "a number", "an array".
std::string kind_of(const json& value) {
  if (value.is_null()) return "null";
  return fmt::format("{} {}", value.is_array() || value.is_object() ? "an" : "a",
                     value.type_name());
}

/// The string `name` of `object`. Throws DataError with what is wrong otherwise; `where` precedes
/// the name.
const std::string& text_of(const json& object, const std::string& name,
                           const std::string& where = {}) {
  const auto found = object.find(name);
  LS_CHECK(found != object.end(), DataError, "the object has no member {}{:?}: expected a string",
           where, name);
  LS_CHECK(found->is_string(), DataError, "{}{:?} is {}: expected a string", where, name,
           kind_of(*found));
  return found->get_ref<const std::string&>();
}

Parts completion_parts(const json& object, const ExampleForm& form) {
  const std::string& prompt = text_of(object, form.prompt);
  const std::string& completion = text_of(object, form.completion);
  LS_CHECK(!completion.empty(), DataError, "{:?} is empty: expected a text to learn",
           form.completion);
  return {{prompt, false, form.special}, {completion, true, form.special}};
}

std::string with_role(std::string text, const std::string& role) {
  constexpr std::string_view kRole = "{role}";
  for (size_t at = text.find(kRole); at != text.npos; at = text.find(kRole, at + role.size())) {
    text.replace(at, kRole.size(), role);
  }
  return text;
}

Parts chat_parts(const json& object, const ChatForm& form) {
  const auto messages = object.find(form.field);
  LS_CHECK(messages != object.end(), DataError,
           "the object has no member {:?}: expected one with an array of messages", form.field);
  LS_CHECK(messages->is_array(), DataError, "{:?} is {}: expected an array of messages", form.field,
           kind_of(*messages));
  Parts parts;
  bool has_content = false;
  for (size_t i = 0; i < messages->size(); ++i) {
    const json& message = (*messages)[i];
    const std::string where = fmt::format("{}[{}].", form.field, i);
    LS_CHECK(message.is_object(), DataError, "{}[{}] is {}: expected an object", form.field, i,
             kind_of(message));
    const std::string& role = text_of(message, "role", where);
    const std::string& content = text_of(message, "content", where);
    const bool counted = role == form.trained_role;
    has_content = has_content || (counted && !content.empty());
    parts.push_back({with_role(form.begin, role), false, true});
    parts.push_back({content, counted, false});
    parts.push_back({with_role(form.end, role), counted, true});
  }
  LS_CHECK(has_content, DataError, "{:?} has no message of role {:?} with a content to learn",
           form.field, form.trained_role);
  return parts;
}

/// Throws DataError with what is wrong with the line.
Parts read_line(std::string_view line, const ExampleForm& form) {
  if (const std::string problem = utf8_problem(line); !problem.empty()) throw DataError(problem);
  json object;
  try {
    object = parse_json(line);
  } catch (const JsonSyntaxError& error) {
    throw DataError(
        fmt::format("expected a JSON object, got what is no JSON from byte {} on", error.byte()));
  } catch (const DataError&) {
    throw DataError("expected a JSON object, got one nested too deeply or with too large a number");
  }
  LS_CHECK(object.is_object(), DataError, "expected a JSON object, got {}", kind_of(object));
  return form.chat ? chat_parts(object, *form.chat) : completion_parts(object, form);
}

ByteSource open_examples(const std::filesystem::path& path, const ExampleForm& form) {
  LS_CHECK(is_json_lines(path), DataError,
           "[data] {}: expected a file of JSON lines, whose name ends in .jsonl, .jsonl.gz or "
           ".jsonl.zst, or a .parquet file. Rename it, or name such files alone.",
           path.string());
  if (form.chat) return open_json_lines(path, {form.chat->field});
  return open_json_lines(path, {form.prompt, form.completion});
}

}  // namespace

ExampleReader::ExampleReader(const std::filesystem::path& path, ExampleForm form)
    : ExampleReader(open_examples(path, form), path.string(), form) {}

ExampleReader::ExampleReader(ByteSource source, std::string file, ExampleForm form)
    : form_(std::move(form)),
      lines_(std::move(source), std::move(file), form_.skip_damaged_lines) {}

bool ExampleReader::next(std::vector<ExamplePart>& parts) {
  while (lines_.next()) {
    try {
      parts = read_line(lines_.text(), form_);
      return true;
    } catch (const DataError& error) {
      lines_.skip(error.what());
    }
  }
  return false;
}

}  // namespace lockstep::train
