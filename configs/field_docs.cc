#include "configs/field_docs.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "configs/field.h"
#include "configs/options.pb.h"
#include "configs/run.pb.h"
#include "configs/schema_bytes.h"
#include "core/base/check.h"
#include "core/base/nearest.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

/// The schema with the places of its texts, and so their comments.
class CommentedSchema {
 public:
  CommentedSchema() {
    pb::FileDescriptorSet files;
    const std::string_view bytes = schema_bytes();
    LS_ASSERT(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    for (const pb::FileDescriptorProto& file : files.file()) {
      LS_ASSERT(pool_.BuildFile(file) != nullptr);
    }
  }

  std::string comment(const FieldDescriptor& field) const {
    std::string text = comment_of(pool_.FindFieldByName(field.full_name()));
    if (text.empty() && field.message_type() != nullptr) {
      text = comment_of(pool_.FindMessageTypeByName(field.message_type()->full_name()));
    }
    return text;
  }

 private:
  template <class Descriptor>
  static std::string comment_of(const Descriptor* descriptor) {
    pb::SourceLocation place;
    LS_ASSERT(descriptor != nullptr && descriptor->GetSourceLocation(&place));
    std::string text;
    for (const char c : place.leading_comments) {
      const bool is_space = c == ' ' || c == '\n';
      if (!is_space) {
        text += c;
      } else if (!text.empty() && text.back() != ' ') {
        text += ' ';
      }
    }
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }

  pb::DescriptorPool pool_;
};

std::string type_of(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{ ... }";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "bool";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "enum";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number";
    default:
      return "integer";
  }
}

/// The other members that may be chosen, for a member of a oneof.
std::string choice_of(const FieldDescriptor& field) {
  const pb::OneofDescriptor* const choice = field.real_containing_oneof();
  if (choice == nullptr) return "";
  std::string names;
  for (int i = 0; i < choice->field_count(); ++i) {
    names += (i == 0 ? "" : ", ") + choice->field(i)->name();
  }
  return choice->field_count() == 1 ? "" : "one of " + names;
}

std::string range_of(const FieldDescriptor& field) {
  if (holds_fields(field)) return choice_of(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return "";
  std::string text = expected_value(field);
  for (const std::string_view kind : {"an integer", "a number", "text in quotes"}) {
    if (text.starts_with(kind)) text.erase(0, kind.size());
  }
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

std::string fallback_of(const FieldDescriptor& field) {
  const pb::OneofDescriptor* const choice = field.real_containing_oneof();
  if (choice != nullptr) {
    if (choice->options().GetExtension(required_choice)) return "one is required";
    return choice->options().GetExtension(default_choice) == field.name() ? "chosen by default"
                                                                          : "not chosen";
  }
  if (field.options().GetExtension(required)) return "required";
  if (holds_fields(field)) return "";
  if (!field.options().HasExtension(default_value)) return "depends on other fields";
  const std::string& text = field.options().GetExtension(default_value);
  if (text.empty()) return "empty";
  std::string shown;  // on one line
  for (const char c : text) shown += c == '\n' ? "\\n" : std::string(1, c);
  return shown;
}

void collect(const pb::Descriptor& type, const std::string& parent, const CommentedSchema& schema,
             std::vector<FieldDoc>& docs) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    FieldDoc doc;
    doc.path = join_path(parent, field.name());
    doc.type = (field.is_repeated() ? "list of " : "") + type_of(field);
    doc.unit = field.options().GetExtension(unit);
    doc.fallback = fallback_of(field);
    doc.range = range_of(field);
    doc.comment = schema.comment(field);
    docs.push_back(doc);
    if (holds_fields(field)) collect(*field.message_type(), doc.path, schema, docs);
  }
}

const std::vector<FieldDoc>& all_docs() {
  static const std::vector<FieldDoc> kDocs = [] {
    std::vector<FieldDoc> docs;
    collect(*RunConfig::descriptor(), "", CommentedSchema(), docs);
    return docs;
  }();
  return kDocs;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_at_or_below(std::string_view path, std::string_view parent) {
  return parent.empty() || path == parent ||
         (path.starts_with(parent) && path[parent.size()] == '.');
}

/// The path that `wanted` was most likely meant to be: near in whole, or in its last name.
std::optional<std::string> nearest_path(std::string_view wanted) {
  std::vector<std::string_view> paths;
  for (const FieldDoc& doc : all_docs()) paths.push_back(doc.path);
  if (const auto meant = nearest(wanted, paths)) return std::string(*meant);
  const auto last_name = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
  std::vector<std::string_view> names;
  for (const std::string_view path : paths) names.push_back(last_name(path));
  const auto meant = nearest(last_name(wanted), names);
  if (!meant) return std::nullopt;
  return std::string(paths[static_cast<size_t>(std::ranges::find(names, *meant) - names.begin())]);
}

}  // namespace

std::vector<FieldDoc> field_docs() { return all_docs(); }

std::vector<FieldDoc> find_field_docs(std::string_view path,
                                      const std::vector<std::string>& words) {
  std::vector<FieldDoc> found;
  bool is_known = false;
  for (const FieldDoc& doc : all_docs()) {
    if (!is_at_or_below(doc.path, path)) continue;
    is_known = true;
    const std::string text = lower(doc.path + " " + doc.comment);
    const auto holds = [&](const std::string& word) { return text.find(lower(word)) != text.npos; };
    if (std::ranges::all_of(words, holds)) found.push_back(doc);
  }
  if (!is_known) {
    const auto meant = nearest_path(path);
    throw ConfigError(fmt::format("[config] a run has no field \"{}\".{}", path,
                                  meant ? fmt::format(" Did you mean \"{}\"?", *meant)
                                        : " `lockstep config fields` lists them all."));
  }
  return found;
}

std::string field_comment(std::string_view path) {
  const auto& docs = all_docs();
  const auto found = std::ranges::find(docs, path, &FieldDoc::path);
  LS_CHECK(found != docs.end(), ConfigError, "[config] a run has no field \"{}\".", path);
  return found->comment;
}

}  // namespace lockstep::config
