#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Consecutive steps of packed sequences in which the same sequences take part: a rectangle that
/// lies in the packed data without gaps.
struct PackedSteps {
  int64_t first;  ///< step
  int64_t count;  ///< of steps
  int64_t rows;   ///< sequences
  int64_t begin;  ///< row of the packed data

  /// The steps of `data` as [count, rows, ...].
  Tensor of(const Tensor& data) const;
};

/// The steps of packed sequences, as few pieces as there are different lengths. Throws ShapeError
/// unless the sizes are positive and do not grow.
std::vector<PackedSteps> packed_steps(const std::vector<int64_t>& batch_sizes);

/// Runs one direction of one layer over steps [count, rows, features] from `states`, each [1, rows,
/// width]: returns the output followed by the states after the last step.
using RunSteps = std::function<std::vector<Tensor>(
    const Tensor& steps, std::span<const Tensor> states, std::span<const Tensor> parameters)>;

/// How a recurrent layer is run on packed sequences.
struct PackedRun {
  int64_t num_layers;
  bool bidirectional;
  double dropout;  ///< of what one layer gives the next; 0 when not training
  RunSteps run;
};

/// Runs all layers over packed data. `states` are [layers * directions, batch, width] in the packed
/// order; `parameters` those of all directions, in the order of the layers. Returns the packed
/// output followed by the states after the last step of each sequence.
std::vector<Tensor> run_packed(const PackedRun& how, Tensor data,
                               const std::vector<int64_t>& batch_sizes,
                               std::span<const Tensor> states, std::span<const Tensor> parameters);

}  // namespace lockstep::nn
