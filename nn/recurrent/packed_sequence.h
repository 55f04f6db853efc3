#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Sequences of several lengths without padding, as recurrent layers take them; PyTorch's
/// PackedSequence. The longest comes first, and `data` holds the first step of all sequences, then
/// the second of those that have one, and so on.
struct PackedSequence {
  Tensor data;                       ///< [steps of all sequences, ...]
  std::vector<int64_t> batch_sizes;  ///< for each step, the number of sequences that have it
  Tensor sorted_indices;    ///< i64: of each packed sequence, its place before; undefined: the same
  Tensor unsorted_indices;  ///< the inverse permutation
};

/// Sequences of one length, and their lengths.
struct PaddedSequences {
  Tensor sequences;              ///< [longest, batch, ...], or [batch, longest, ...]
  std::vector<int64_t> lengths;  ///< in the order of the batch
};

/// Packs padded sequences x [longest, batch, ...], or [batch, longest, ...] with `batch_first`, of
/// the given lengths, each at least 1. Sequences are sorted by their length, unless
/// `enforce_sorted`: then lengths must decrease. Throws ShapeError for lengths that do not fit.
PackedSequence pack_padded_sequence(const Tensor& x, const std::vector<int64_t>& lengths,
                                    bool batch_first = false, bool enforce_sorted = true);
/// The same for sequences [length, ...] of their own.
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);
/// The inverse of pack_padded_sequence: `padding_value` stands behind shorter sequences, in tensors
/// of `total_length` steps, the longest sequence's by default. Throws ShapeError if one is longer.
PaddedSequences pad_packed_sequence(const PackedSequence& packed, bool batch_first = false,
                                    double padding_value = 0,
                                    std::optional<int64_t> total_length = std::nullopt);
/// Stacks sequences [length, ...] with padding behind the shorter ones: [longest, batch, ...], or
/// [batch, longest, ...] with `batch_first`.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false,
                    double padding_value = 0);

}  // namespace lockstep::nn
