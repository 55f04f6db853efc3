#pragma once

#include <vector>

#include "nn/layers.h"

namespace lockstep::nn {

/// One product for linear layers without biases that read the same input. The layers stay modules
/// with weights of their own, under their own names; their weights, and the casts of them that
/// autocast keeps, lie side by side in memory, so that the product reads them in place. Sharding
/// moves weights; the product copies those that do not lie so, with the same bits.
class JointLinear {
 public:
  /// The layers must outlive this, and stay where they are: a module that has both cannot be moved.
  explicit JointLinear(std::vector<const Linear*> parts);
  JointLinear(const JointLinear&) = delete;
  JointLinear& operator=(const JointLinear&) = delete;

  /// The layers' results one behind the other in the last dimension: x [..., in] to [..., out_0 +
  /// out_1 + ...]. Layers with forward hooks or adapters are called each by itself, and their
  /// results copied.
  Tensor forward(const Tensor& x) const;

 private:
  std::vector<Tensor> weights() const;

  std::vector<const Linear*> parts_;
};

}  // namespace lockstep::nn
