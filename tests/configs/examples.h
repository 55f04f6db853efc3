#pragma once

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::config {

/// The shortest complete config.
inline constexpr const char* kSmallest =
    R"(model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 } }
data { random {} }
train { steps: 3 batch_size: 4 }
)";

/// The shortest complete config of an image classifier.
inline constexpr const char* kSmallestClassifier =
    R"(model { resnet { height: 8 width: 8 classes: 10 } }
data { table { path: "rows.csv" } }
train { steps: 3 batch_size: 4 }
)";

/// kSmallest with these `name=value` assignments, resolved.
inline RunConfig smallest_with(const std::vector<std::string>& assignments) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallest, "a");
  for (const std::string& assignment : assignments) set_value(config, origins, assignment);
  resolve(config, origins);
  return config;
}

}  // namespace lockstep::config
