#pragma once

#include <string>
#include <vector>

#include "configs/load.h"

namespace lockstep::config {

/// Returns `config` as a text file that load reads back to the same config, with the origin of
/// every value as a comment: "configs/a.txtpb:7:3", "--set train.steps=5", "LOCKSTEP_TRAIN_STEPS=5"
/// or "default".
std::string annotated_text(const RunConfig& config, const Origins& origins);

/// A difference between two configs: a value, a whole list ("[1, 2]") or a chosen member without
/// fields ("{}").
struct Difference {
  std::string path;
  std::string a;  ///< value as in a config file; empty if a does not have it
  std::string b;
};

/// Returns the differences between `a` and `b`, ordered by path.
std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

}  // namespace lockstep::config
