#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Lists the fields of a run config from the schema.
namespace lockstep::config {

/// Returns the paths of all scalar fields and lists ("train.steps") and of all oneof members that
/// may be chosen without setting a field in them ("data.random"), in the schema's order.
std::vector<std::string> field_paths();

/// Returns completions of `prefix` after "--set ": "train.steps=" for paths (also "+=" for lists)
/// and, for a complete path, its values if the schema lists them: "schedule.kind=COSINE",
/// "data.random={}".
std::vector<std::string> completions(std::string_view prefix);

}  // namespace lockstep::config
