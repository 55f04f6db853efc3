#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Looks up rows of `weight` [rows, width] at `indices` [n] and reduces them by bag: bag b holds
/// the indices from offsets[b] up to offsets[b + 1], the last bag those up to the end. `mode` is 0
/// sum, 1 mean or 2 max; an empty bag gives zeros. `per_sample_weights` [n] scale the rows of a
/// sum. With `include_last_offset` the last offset is the end of the last bag. Indices equal to
/// `padding_idx` are skipped.
///
/// Returns the bags [bags, width]; the bag of each index; the number of indices of each bag (zeros
/// for a sum); and for max the index that each element came from, else the third result again.
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets,
    bool scale_grad_by_freq = false, int64_t mode = 0, bool sparse = false,
    OptionalTensor per_sample_weights = std::nullopt, bool include_last_offset = false,
    int64_t padding_idx = -1);

}  // namespace lockstep
