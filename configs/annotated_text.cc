#include "configs/annotated_text.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <map>

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
/// the text is read back.
std::vector<const pb::FieldDescriptor*> written_fields(const pb::Message& message) {
  std::vector<const pb::FieldDescriptor*> fields;
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    if (field->is_repeated() || message.GetReflection()->HasField(message, field)) {
      fields.push_back(field);
    }
  }
  return fields;
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
    const pb::Message& inner = message.GetReflection()->GetMessage(message, field);
    if (written_fields(inner).empty()) {
      lines.push_back({start + " {}", field_path});
      continue;
    }
    lines.push_back({start + " {", ""});
    write(inner, field_path, indent + "  ", lines);
    lines.push_back({indent + "}", ""});
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
    const pb::Message& inner = message.GetReflection()->GetMessage(message, field);
    if (written_fields(inner).empty()) values[field_path] = "{}";
    flatten(inner, field_path, values);
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
