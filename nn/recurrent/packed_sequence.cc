#include "nn/recurrent/packed_sequence.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/ops/factory/literal.h"
#include "core/ops/image/pad.h"
#include "core/ops/index/index.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "nn/recurrent/packed_steps.h"

namespace lockstep::nn {

namespace {

/// x with `after` elements of `value` behind those of dimension `dim`, 0 or 1.
Tensor padded_behind(const Tensor& x, int64_t dim, int64_t after, double value) {
  if (after == 0) return x;
  // Two numbers for each dimension, the last dimension first.
  std::vector<int64_t> pairs(2 * static_cast<size_t>(x.dim() - dim), 0);
  pairs.back() = after;
  return constant_pad_nd(x, pairs, value);
}

/// Places of the lengths from the longest to the shortest; equal ones keep their order.
std::vector<int64_t> longest_first(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)];
  });
  return order;
}

Tensor indices(const std::vector<int64_t>& values, Device device) {
  const Tensor made = tensor(values);
  return device == kCPU ? made : made.to(device);
}

void check_lengths(const Tensor& x, const std::vector<int64_t>& lengths, bool enforce_sorted) {
  LS_CHECK(x.dim() >= 2, ShapeError, "[pack_padded_sequence] expected steps and a batch, got {}.",
           x.shape());
  LS_CHECK(!lengths.empty() && static_cast<int64_t>(lengths.size()) == x.size(1), ShapeError,
           "[pack_padded_sequence] expected a length for each of {} sequences, got {}. Is the "
           "batch the other dimension (batch_first)?",
           x.size(1), lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    LS_CHECK(lengths[i] > 0 && lengths[i] <= x.size(0), ShapeError,
             "[pack_padded_sequence] length {} of sequence {}: expected 1 to {}.", lengths[i], i,
             x.size(0));
    LS_CHECK(!enforce_sorted || i == 0 || lengths[i] <= lengths[i - 1], ShapeError,
             "[pack_padded_sequence] sequence {} is longer than the one before: expected "
             "decreasing lengths. Pass enforce_sorted = false.",
             i);
  }
}

}  // namespace

PackedSequence pack_padded_sequence(const Tensor& x, const std::vector<int64_t>& lengths,
                                    bool batch_first, bool enforce_sorted) {
  Tensor steps = batch_first ? transpose(x, 0, 1) : x;
  check_lengths(steps, lengths, enforce_sorted);
  PackedSequence packed;
  std::vector<int64_t> sorted = lengths;
  if (!enforce_sorted) {
    const std::vector<int64_t> order = longest_first(lengths);
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      sorted[i] = lengths[static_cast<size_t>(order[i])];
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    packed.sorted_indices = indices(order, x.device());
    packed.unsorted_indices = indices(back, x.device());
    steps = index_select(steps, 1, packed.sorted_indices);
  }
  size_t rows = sorted.size();
  for (int64_t step = 0; step < sorted.front(); ++step) {
    while (sorted[rows - 1] <= step) --rows;
    packed.batch_sizes.push_back(static_cast<int64_t>(rows));
  }
  std::vector<Tensor> pieces;
  for (const PackedSteps& piece : packed_steps(packed.batch_sizes)) {
    const Tensor part =
        slice(slice(steps, 0, piece.first, piece.first + piece.count), 1, 0, piece.rows);
    pieces.push_back(flatten(part, 0, 1));
  }
  packed.data = pieces.size() == 1 ? pieces[0] : cat(pieces);
  return packed;
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  lengths.reserve(sequences.size());
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.size(0));
  return pack_padded_sequence(pad_sequence(sequences), lengths, false, enforce_sorted);
}

PaddedSequences pad_packed_sequence(const PackedSequence& packed, bool batch_first,
                                    double padding_value, std::optional<int64_t> total_length) {
  LS_CHECK(!packed.batch_sizes.empty(), ShapeError,
           "[pad_packed_sequence] the sequence is empty: expected one that was packed.");
  const int64_t batch = packed.batch_sizes.front();
  const auto longest = static_cast<int64_t>(packed.batch_sizes.size());
  LS_CHECK(!total_length || *total_length >= longest, ShapeError,
           "[pad_packed_sequence] total_length is {}: expected at least {}, the longest sequence.",
           total_length.value_or(0), longest);
  std::vector<Tensor> pieces;
  for (const PackedSteps& piece : packed_steps(packed.batch_sizes)) {
    pieces.push_back(padded_behind(piece.of(packed.data), 1, batch - piece.rows, padding_value));
  }
  PaddedSequences padded;
  padded.sequences = padded_behind(pieces.size() == 1 ? pieces[0] : cat(pieces), 0,
                                   total_length.value_or(longest) - longest, padding_value);
  padded.lengths.resize(static_cast<size_t>(batch));
  for (const int64_t rows : packed.batch_sizes) {
    for (int64_t row = 0; row < rows; ++row) ++padded.lengths[static_cast<size_t>(row)];
  }
  if (packed.unsorted_indices.defined()) {
    padded.sequences = index_select(padded.sequences, 1, packed.unsorted_indices);
    const std::vector<int64_t> sorted = padded.lengths;
    const Tensor back = packed.unsorted_indices.to(kCPU);
    for (size_t i = 0; i < sorted.size(); ++i) {
      padded.lengths[i] = sorted[static_cast<size_t>(back.data<int64_t>()[i])];
    }
  }
  if (batch_first) padded.sequences = transpose(padded.sequences, 0, 1);
  return padded;
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value) {
  LS_CHECK(!sequences.empty(), ShapeError,
           "[pad_sequence] expected at least one sequence, got none.");
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    LS_CHECK(sequence.dim() >= 1, ShapeError, "[pad_sequence] expected sequences of steps, got {}.",
             sequence.shape());
    longest = std::max(longest, sequence.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& sequence : sequences) {
    padded.push_back(padded_behind(sequence, 0, longest - sequence.size(0), padding_value));
  }
  return stack(padded, batch_first ? 0 : 1);
}

}  // namespace lockstep::nn
