#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The fields a run config can hold, listed from the schema.
namespace lockstep::config {

/// Every scalar field's and list's path ("train.steps"), and the path of every member of a oneof
/// that may be chosen without setting anything in it ("data.random"), in the schema's order.
std::vector<std::string> field_paths();

/// What may follow "--set " and starts with `prefix`: "train.steps=" for paths ("+=" too for
/// lists), and once a path is complete its values where the schema knows them:
/// "schedule.kind=COSINE", "data.random={}".
std::vector<std::string> completions(std::string_view prefix);

}  // namespace lockstep::config
