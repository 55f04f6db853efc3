#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What users may read about the fields of a config, from the schema and its comments.
namespace lockstep::config {

struct FieldDoc {
  std::string path;      ///< "train.steps"
  std::string type;      ///< "integer", "number", "bool", "text", "enum", "{ ... }"; "list of ..."
  std::string unit;      ///< "MiB"; empty if there is none
  std::string fallback;  ///< the default as in a config, "required", or "depends on other fields"
  std::string range;     ///< "from 1 to 4096", "one of COSINE, CONSTANT"; empty for any value
  std::string comment;   ///< of the field, on one line; of the message if the field has none
};

/// All fields, messages before their members, in the schema's order.
std::vector<FieldDoc> field_docs();

/// The fields at and below `path` ("" is all of them) whose path or comment holds every one of
/// `words`, upper and lower case alike. Throws ConfigError, with the nearest path, if there is no
/// such path.
std::vector<FieldDoc> find_field_docs(std::string_view path, const std::vector<std::string>& words);

/// The comment of the field at `path` in the schema, on one line.
std::string field_comment(std::string_view path);

}  // namespace lockstep::config
