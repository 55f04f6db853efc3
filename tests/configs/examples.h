#pragma once

namespace lockstep::config {

/// The shortest config that is complete.
inline constexpr const char* kSmallest =
    R"(model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 } }
data { random {} }
train { steps: 3 batch_size: 4 }
)";

}  // namespace lockstep::config
