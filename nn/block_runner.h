#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// What the forward pass of a block depends on besides its inputs, parameters and buffers, and the
/// training mode of its modules.
struct BlockOptions {
  /// Stands for the numbers of the block's options: blocks of one class for which it is equal
  /// compute the same. Made by `block_options_hash`.
  uint64_t numbers = 0;
  /// Why only a call of the block gives its result, or empty: "it attends within documents".
  std::string_view only_called = {};
};

/// A hash of `hash` and `number`.
uint64_t mixed_hash(uint64_t hash, double number);
/// A hash of the numbers that a block's options hold.
uint64_t block_options_hash(std::initializer_list<double> numbers);

/// One forward pass of a block: `body(inputs)` computes it.
struct BlockPass {
  const Module& block;
  const std::function<Tensor(TensorList inputs)>& body;
  TensorList inputs;
  BlockOptions options;
};

/// Runs the forward passes of a model's blocks in another way than by calling them, with the same
/// bits (BlockModel::set_runner).
class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  /// Returns pass.body(pass.inputs), or a tensor with the same elements and derivative.
  virtual Tensor run(const BlockPass& pass) = 0;
};

/// What a forward pass of a module, and of those below, reads of its own.
struct PassState {
  std::vector<Tensor> tensors;  ///< parameters and buffers, a shared one each time
  uint64_t modes = 0;           ///< a hash of the modules' training modes
  bool has_buffers = false;
  bool has_hooks = false;  ///< a module below has forward hooks, or had
};

}  // namespace lockstep::nn
