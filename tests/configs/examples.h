#pragma once

namespace lockstep::config {

/// The shortest config that is complete.
inline constexpr const char* kSmallest =
    R"(model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 } }
data { random {} }
train { steps: 3 batch_size: 4 }
)";

/// The same of a model that classifies images.
inline constexpr const char* kSmallestClassifier =
    R"(model { resnet { height: 8 width: 8 classes: 10 } }
data { table { path: "rows.csv" } }
train { steps: 3 batch_size: 4 }
)";

}  // namespace lockstep::config
