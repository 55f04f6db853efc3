#include "configs/annotated_text.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <map>
#include <utility>

#include "configs/field.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;

/// One line of a text file, and the path of the value on it (none for braces).
struct Line {
  std::string text;
  std::string path;
};

constexpr const char* kSchema =
    "# proto-file: configs/run.proto\n# proto-message: lockstep.config.RunConfig\n\n";

/// Returns the fields to write, including empty lists, which would otherwise get their default when
/// the text is read back. A list of messages has none.
std::vector<const pb::FieldDescriptor*> written_fields(const pb::Message& message) {
  std::vector<const pb::FieldDescriptor*> fields;
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    const pb::Reflection& reflection = *message.GetReflection();
    const bool is_written = lists_fields(*field)
                                ? reflection.FieldSize(message, field) > 0
                                : field->is_repeated() || reflection.HasField(message, field);
    if (is_written) fields.push_back(field);
  }
  return fields;
}

/// The messages in `field`, one or a list of them, with their paths.
std::vector<std::pair<std::string, const pb::Message*>> messages_in(
    const pb::Message& message, const pb::FieldDescriptor& field, const std::string& path) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return {{path, &reflection.GetMessage(message, &field)}};
  std::vector<std::pair<std::string, const pb::Message*>> messages;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    messages.emplace_back(value_path(path, i), &reflection.GetRepeatedMessage(message, &field, i));
  }
  return messages;
}

void write(const pb::Message& message, const std::string& path, const std::string& indent,
           std::vector<Line>& lines) {
  for (const pb::FieldDescriptor* field : written_fields(message)) {
    const std::string field_path = join_path(path, field->name());
    const std::string start = indent + field->name();
    if (!holds_fields(*field)) {
      lines.push_back({start + ": " + value_text(message, *field), field_path});
      continue;
    }
    for (const auto& [inner_path, inner] : messages_in(message, *field, field_path)) {
      if (written_fields(*inner).empty()) {
        lines.push_back({start + " {}", inner_path});
        continue;
      }
      lines.push_back({start + " {", ""});
      write(*inner, inner_path, indent + "  ", lines);
      lines.push_back({indent + "}", ""});
    }
  }
}

void flatten(const pb::Message& message, const std::string& path,
             std::map<std::string, std::string>& values) {
  for (const pb::FieldDescriptor* field : written_fields(message)) {
    const std::string field_path = join_path(path, field->name());
    if (!holds_fields(*field)) {
      values[field_path] = value_text(message, *field);
      continue;
    }
    for (const auto& [inner_path, inner] : messages_in(message, *field, field_path)) {
      if (written_fields(*inner).empty()) values[inner_path] = "{}";
      flatten(*inner, inner_path, values);
    }
  }
}

/// Replaces control characters by spaces: values from the command line may hold line ends.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

std::string to_text(const RunConfig& config) {
  std::vector<Line> lines;
  write(config, "", "", lines);
  std::string text = kSchema;
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

std::string annotated_text(const RunConfig& config, const Origins& origins) {
  std::vector<Line> lines;
  write(config, "", "", lines);
  constexpr size_t kWidestAligned = 60;
  size_t width = 0;
  for (const Line& line : lines) {
    if (!line.path.empty() && line.text.size() <= kWidestAligned) {
      width = std::max(width, line.text.size());
    }
  }
  std::string text = kSchema;
  for (const Line& line : lines) {
    const auto origin = origins.find(line.path);
    text += line.path.empty() || origin == origins.end()
                ? line.text + "\n"
                : fmt::format("{:<{}}  # {}\n", line.text, width, one_line(origin->second));
  }
  return text;
}

std::vector<Difference> differences(const RunConfig& a, const RunConfig& b) {
  std::map<std::string, std::string> of_a;
  std::map<std::string, std::string> of_b;
  flatten(a, "", of_a);
  flatten(b, "", of_b);
  std::map<std::string, Difference> found;
  for (const auto& [path, value] : of_a) found[path] = {path, value, ""};
  for (const auto& [path, value] : of_b) {
    found[path].path = path;
    found[path].b = value;
  }
  std::vector<Difference> result;
  for (auto& [path, difference] : found) {
    if (difference.a != difference.b) result.push_back(std::move(difference));
  }
  return result;
}

}  // namespace lockstep::config
