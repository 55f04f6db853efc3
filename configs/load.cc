#include "configs/load.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "configs/diagnosis.h"
#include "configs/field.h"
#include "configs/run.pb.h"
#include "configs/variables.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using ParseInfoTree = pb::TextFormat::ParseInfoTree;

constexpr size_t kLargestFile = 4 << 20;

class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!error) error = Finding{line, column, message};
  }
  std::optional<Finding> error;
};

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const bool complete = file.eof();
  if (!complete && file.gcount() == 0) {
    throw SourceError(path, fmt::format("cannot be read: {}.",
                                        errno != 0 ? std::strerror(errno) : "not a readable file"));
  }
  if (!complete) {
    throw SourceError(
        path, fmt::format("is larger than {} MiB, so it is no config.", kLargestFile >> 20));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

/// Control bytes never occur in a config, and always early in weights, archives and programs.
void check_is_text(const std::string& text, const std::string& name) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x7f || (byte < 0x20 && (byte < '\t' || byte > '\r'))) {
      throw SourceError(name,
                        fmt::format("is not text: byte {} is 0x{:02x}. A config is a protobuf "
                                    "text file such as configs/gpt_kjv.txtpb.",
                                    i, byte));
    }
  }
}

std::string place(const std::string& name, int line, int column) {
  return fmt::format("{}:{}:{}", name, line + 1, column + 1);
}

void record_origins(const pb::Message& message, const ParseInfoTree& tree, const std::string& path,
                    const std::string& name, Origins& origins) {
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const int index = field->is_repeated() ? 0 : -1;
    const std::string field_path = join_path(path, field->name());
    const pb::TextFormat::ParseLocation location = tree.GetLocation(field, index);
    origins[field_path] = place(name, location.line, location.column);
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      record_origins(message.GetReflection()->GetMessage(message, field),
                     *tree.GetTreeForNested(field, index), field_path, name, origins);
    }
  }
}

}  // namespace

SourceError::SourceError(std::string where, std::string problem)
    : ConfigError(where.empty() ? problem : fmt::format("{}: {}", where, problem)),
      where_(std::move(where)),
      problem_(std::move(problem)) {}

void merge_text(RunConfig& config, Origins& origins, const std::string& text,
                const std::string& name) {
  check_is_text(text, name);
  // A fresh message per layer: only Parse refuses a field that is set twice, and it clears first.
  RunConfig layer;
  ParseInfoTree tree;
  FirstError collector;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(text, &layer)) {
    const Finding first = collector.error.value_or(Finding{0, 0, "cannot be parsed."});
    const Finding finding = diagnose(text, *RunConfig::descriptor(), first);
    throw SourceError(place(name, finding.line, finding.column), finding.problem);
  }
  record_origins(layer, tree, "", name, origins);
  origins[""] = name;
  config.MergeFrom(layer);
}

void merge_file(RunConfig& config, Origins& origins, const std::string& path) {
  merge_text(config, origins, read_file(path), path);
}

void set_value(RunConfig& config, Origins& origins, std::string_view assignment) {
  set_value(config, origins, assignment, fmt::format("--set {}", assignment));
}

void set_value(RunConfig& config, Origins& origins, std::string_view assignment,
               const std::string& where) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw SourceError(where, "expected path=value, as in --set train.steps=100.");
  }
  const std::string_view value = assignment.substr(equals + 1);
  std::string_view rest = assignment.substr(0, equals);
  // A copy, so that a wrong end of the path leaves the config as it was.
  RunConfig changed = config;
  pb::Message* message = &changed;
  std::string path;
  while (true) {
    const size_t dot = rest.find('.');
    const std::string name(rest.substr(0, dot));
    const pb::FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      throw SourceError(where, unknown_field(path, *message->GetDescriptor(), name));
    }
    path = join_path(path, name);
    const bool last = dot == std::string_view::npos;
    const bool holds_fields = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    if (!holds_fields && !last) {
      throw SourceError(where, fmt::format("{} holds one value, it has no fields.", path));
    }
    if (!holds_fields) {
      if (!assign(*message, *field, value)) {
        throw SourceError(where, wrong_value(path, *field, value.empty() ? "empty" : value));
      }
      break;
    }
    message = message->GetReflection()->MutableMessage(message, field);
    if (last) {
      if (value != "{}") {
        throw SourceError(where,
                          fmt::format("{} holds fields: set one of them, as in {}.FIELD=VALUE, or "
                                      "choose it with {}={{}}.",
                                      path, path, path));
      }
      break;
    }
    rest.remove_prefix(dot + 1);
  }
  config = std::move(changed);
  origins[path] = where;
}

RunConfig load(std::span<const std::string> files, std::span<const std::string> overrides,
               Origins* origins, const Variables& variables) {
  RunConfig config;
  Origins found;
  for (const std::string& file : files) merge_file(config, found, file);
  apply_variables(config, found, variables);
  for (const std::string& assignment : overrides) set_value(config, found, assignment);
  resolve(config, found);
  if (origins != nullptr) *origins = std::move(found);
  return config;
}

RunConfig load_text(const std::string& text, const std::string& name) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, text, name);
  resolve(config, origins);
  return config;
}

std::string to_text(const RunConfig& config) {
  std::string text;
  pb::TextFormat::PrintToString(config, &text);
  return "# proto-file: configs/run.proto\n# proto-message: lockstep.config.RunConfig\n\n" + text;
}

}  // namespace lockstep::config
