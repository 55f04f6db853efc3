#pragma once

#include "core/ops/loss/loss.h"

namespace lockstep {

// The classifier of a language model together with its loss, without the logits of all rows: they
// are computed, used and dropped in chunks of rows.

/// The cross-entropy of the logits linear(input, weight) and `target`. input [..., in], weight
/// [classes, in], target [...] of class numbers as in `cross_entropy_loss`. The loss is f32, or f64
/// for factors in f64, whatever the factors' dtype; under autocast they are cast as for a product.
///
/// With a reduction, the forward pass also computes the gradients that are wanted, in f32: the
/// logits of a chunk become their own gradient while they are there, so that training takes the
/// three products that it takes without chunks. From forward to backward [rows, in] and [classes,
/// in] of f32 are kept instead of [rows, classes] of logits. A second derivative computes the whole
/// logits, and so does a first one without a reduction.
Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);
/// Computes the same from linear and cross_entropy_loss_reference: for testing.
Tensor linear_cross_entropy_reference(const Tensor& input, const Tensor& weight,
                                      const Tensor& target, Reduction reduction = Reduction::kMean,
                                      int64_t ignore_index = -100);

/// The operator behind it, for input [rows, in] and target [rows]: the loss, and those gradients of
/// the sum of the rows' losses that `output_mask` selects, both in the loss's dtype. The gradient
/// of the weight is added up in the order of the chunks.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_by_chunks(
    const Tensor& input, const Tensor& weight, const Tensor& target, Reduction reduction,
    int64_t ignore_index, int64_t chunk_rows, BoolList output_mask);

/// Number of rows in a chunk on a device of this type; the last may be shorter. Depends on nothing
/// else, so that a micro-batch has the same bits on any number of ranks and threads.
int64_t linear_cross_entropy_chunk(int64_t rows, int64_t classes, DeviceType device);

}  // namespace lockstep
