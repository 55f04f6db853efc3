#include "configs/load.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "configs/diagnosis.h"
#include "configs/field.h"
#include "configs/message.h"
#include "configs/origins.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/base/files/regular_file.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::TextFormat;
using ParseInfoTree = TextFormat::ParseInfoTree;
using ParseLocation = TextFormat::ParseLocation;

constexpr size_t kLargestFile = 4 << 20;

class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!error) error = Finding{line, column, message};
  }
  std::optional<Finding> error;
};

std::string read_file(const std::string& path) {
  try {
    RegularFile file(path, kMostTextBytes);
    if (file.bytes() > kLargestFile) {
      throw SourceError(
          path, fmt::format("is larger than {} MiB, so it is no config.", kLargestFile >> 20));
    }
    return file.read_to_end();
  } catch (const FileError& error) {
    throw SourceError(path, fmt::format("cannot be read: {}.", error.reason()));
  }
}

/// Rejects binary files: control bytes never occur in a config, but early in weights, archives and
/// programs.
void check_is_text(const std::string& text, const std::string& name) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x7f || (byte < 0x20 && (byte < '\t' || byte > '\r'))) {
      throw SourceError(name,
                        fmt::format("is not text: byte {} is 0x{:02x}. A config is a protobuf "
                                    "text file such as configs/examples/gpt_kjv.txtpb.",
                                    i, byte));
    }
  }
}

std::string place(const std::string& name, int line, int column) {
  return fmt::format("{}:{}:{}", name, line + 1, column + 1);
}

/// Returns the place where a text that was just parsed sets `field`; for a list in several pieces,
/// the last one. Returns nothing if it does not. Detects empty lists, which the message itself
/// cannot show.
std::optional<ParseLocation> written_at(const ParseInfoTree& tree,
                                        const pb::FieldDescriptor& field) {
  const bool is_list = field.is_repeated();
  ParseLocation last = tree.GetLocation(&field, is_list ? 0 : -1);
  for (int i = 1; is_list; ++i) {
    const ParseLocation piece = tree.GetLocation(&field, i);
    if (piece.line < 0) break;
    last = piece;
  }
  return last.line < 0 ? std::nullopt : std::optional(last);
}

/// Prepares `config` (null if that message does not exist yet) for merging `layer`: records the
/// origins of all fields that `layer` sets and clears the lists that it replaces.
void prepare(pb::Message* config, const pb::Message& layer, const ParseInfoTree& tree,
             const std::string& path, const std::string& name, Origins& origins) {
  const pb::Descriptor& type = *layer.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    const std::optional<ParseLocation> location = written_at(tree, field);
    if (!location) continue;
    const std::string field_path = join_path(path, field.name());
    origins[field_path] = place(name, location->line, location->column);
    if (config != nullptr && field.is_repeated()) {
      config->GetReflection()->ClearField(config, &field);
    }
    if (lists_fields(field)) {
      // Of the elements that are replaced nothing stays.
      std::erase_if(origins,
                    [&](const auto& entry) { return entry.first.starts_with(field_path + "["); });
      for (int j = 0; j < layer.GetReflection()->FieldSize(layer, &field); ++j) {
        const ParseLocation begin = tree.GetLocation(&field, j);
        const std::string element = value_path(field_path, j);
        origins[element] = place(name, begin.line, begin.column);
        prepare(nullptr, layer.GetReflection()->GetRepeatedMessage(layer, &field, j),
                *tree.GetTreeForNested(&field, j), element, name, origins);
      }
      continue;
    }
    if (!holds_fields(field)) continue;
    const bool has = config != nullptr && config->GetReflection()->HasField(*config, &field);
    prepare(has ? config->GetReflection()->MutableMessage(config, &field) : nullptr,
            layer.GetReflection()->GetMessage(layer, &field), *tree.GetTreeForNested(&field, -1),
            field_path, name, origins);
  }
}

}  // namespace

SourceError::SourceError(std::string where, std::string problem)
    : ConfigError(where.empty() ? problem : fmt::format("{}: {}", where, problem)),
      where_(std::move(where)),
      problem_(std::move(problem)) {}

std::string moved_config(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(path, ignored)) return "";
  const fs::path old(path);
  const fs::path moved = old.parent_path() / "examples" / old.filename();
  return old.parent_path().filename() == "configs" && fs::exists(moved, ignored) ? moved.string()
                                                                                 : "";
}

void merge_message_text(pb::Message& config, Origins& origins, const std::string& text,
                        const std::string& name) {
  check_is_text(text, name);
  // Parses into a new message: Parse, unlike Merge, rejects fields set twice, but clears its
  // target.
  const std::unique_ptr<pb::Message> layer(config.New());
  ParseInfoTree tree;
  FirstError collector;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(text, layer.get())) {
    const Finding first = collector.error.value_or(Finding{0, 0, "cannot be parsed."});
    const Finding finding = diagnose(text, *config.GetDescriptor(), first);
    throw SourceError(place(name, finding.line, finding.column), finding.problem);
  }
  prepare(&config, *layer, tree, "", name, origins);
  origins[""] = name;
  config.MergeFrom(*layer);
  forget_dropped(config, origins);
}

void merge_message_file(pb::Message& config, Origins& origins, const std::string& path) {
  merge_message_text(config, origins, read_file(path), path);
}

void merge_text(RunConfig& config, Origins& origins, const std::string& text,
                const std::string& name) {
  merge_message_text(config, origins, text, name);
}

void merge_file(RunConfig& config, Origins& origins, const std::string& path) {
  const std::string moved = moved_config(path);
  merge_message_file(config, origins, moved.empty() ? path : moved);
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

}  // namespace lockstep::config
