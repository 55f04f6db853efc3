#pragma once

#include <string>
#include <vector>

#include "configs/load.h"

namespace lockstep::config {

/// `config` as a text file that load reads back to the same config, every value followed by a
/// comment that says where it came from: "configs/a.txtpb:7:3", "--set train.steps=5",
/// "LOCKSTEP_TRAIN_STEPS=5" or "default".
std::string annotated_text(const RunConfig& config, const Origins& origins);

/// A value, a whole list ("[1, 2]") or a chosen member without fields ("{}"), that two configs do
/// not share.
struct Difference {
  std::string path;
  std::string a;  ///< as a config file writes it; empty where a does not have it
  std::string b;
};

/// Where `a` and `b` differ, in the order of their paths.
std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

}  // namespace lockstep::config
