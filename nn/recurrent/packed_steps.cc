#include "nn/recurrent/packed_steps.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/random/random.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

namespace {

using Pieces = std::vector<PackedSteps>;

Tensor joined(const std::vector<Tensor>& parts, int64_t dim) {
  return parts.size() == 1 ? parts[0] : cat(parts, dim);
}

Tensor rows_of(const Tensor& state, int64_t first, int64_t last) {
  return slice(state, 1, first, last);
}

/// From the first step to the last: sequences that end leave their states behind.
std::vector<Tensor> run_forwards(const RunSteps& run, const Tensor& data, const Pieces& pieces,
                                 std::vector<Tensor> states, std::span<const Tensor> parameters) {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> ended(states.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::vector<Tensor> results = run(pieces[i].of(data), states, parameters);
    outputs.push_back(flatten(results[0], 0, 1));
    const int64_t next = i + 1 < pieces.size() ? pieces[i + 1].rows : 0;
    for (size_t s = 0; s < states.size(); ++s) {
      ended[s].push_back(rows_of(results[s + 1], next, pieces[i].rows));
      if (next > 0) states[s] = rows_of(results[s + 1], 0, next);
    }
  }
  std::vector<Tensor> all = {joined(outputs, 0)};
  for (std::vector<Tensor>& parts : ended) {
    std::ranges::reverse(parts);  // the longest sequences come first
    all.push_back(joined(parts, 1));
  }
  return all;
}

/// From the last step to the first: sequences join with the states that they begin with.
std::vector<Tensor> run_backwards(const RunSteps& run, const Tensor& data, const Pieces& pieces,
                                  const std::vector<Tensor>& initial,
                                  std::span<const Tensor> parameters) {
  std::vector<Tensor> outputs;
  std::vector<Tensor> states;
  for (const Tensor& state : initial) states.push_back(rows_of(state, 0, pieces.back().rows));
  for (size_t i = pieces.size(); i-- > 0;) {
    const int64_t rows = pieces[i].rows;
    for (size_t s = 0; s < states.size(); ++s) {
      const int64_t present = states[s].size(1);
      if (present < rows) states[s] = cat({states[s], rows_of(initial[s], present, rows)}, 1);
    }
    std::vector<Tensor> results = run(flip(pieces[i].of(data), {0}), states, parameters);
    outputs.push_back(flatten(flip(results[0], {0}), 0, 1));
    for (size_t s = 0; s < states.size(); ++s) states[s] = results[s + 1];
  }
  std::ranges::reverse(outputs);
  std::vector<Tensor> all = {joined(outputs, 0)};
  all.insert(all.end(), states.begin(), states.end());
  return all;
}

}  // namespace

Tensor PackedSteps::of(const Tensor& data) const {
  return unflatten(slice(data, 0, begin, begin + count * rows), 0, {count, rows});
}

std::vector<PackedSteps> packed_steps(const std::vector<int64_t>& batch_sizes) {
  std::vector<PackedSteps> pieces;
  int64_t begin = 0;
  for (size_t step = 0; step < batch_sizes.size(); ++step) {
    const int64_t rows = batch_sizes[step];
    LS_CHECK(rows > 0 && (step == 0 || rows <= batch_sizes[step - 1]), ShapeError,
             "[packed_sequence] {} sequences have step {}: expected at least one, and no more than "
             "have the step before.",
             rows, step);
    if (!pieces.empty() && pieces.back().rows == rows) {
      ++pieces.back().count;
    } else {
      pieces.push_back({static_cast<int64_t>(step), 1, rows, begin});
    }
    begin += rows;
  }
  return pieces;
}

std::vector<Tensor> run_packed(const PackedRun& how, Tensor data,
                               const std::vector<int64_t>& batch_sizes,
                               std::span<const Tensor> states, std::span<const Tensor> parameters) {
  const Pieces pieces = packed_steps(batch_sizes);
  LS_CHECK(!pieces.empty() &&
               data.size(0) == pieces.back().begin + pieces.back().count * pieces.back().rows,
           ShapeError, "[packed_sequence] data is {}: expected the steps that batch_sizes count.",
           data.shape());
  const int64_t directions = how.bidirectional ? 2 : 1;
  const size_t each = parameters.size() / static_cast<size_t>(how.num_layers * directions);
  std::vector<std::vector<Tensor>> after(states.size());
  for (int64_t layer = 0; layer < how.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t row = layer * directions + direction;
      std::vector<Tensor> initial;
      for (const Tensor& state : states) {
        LS_CHECK(state.dim() == 3 && state.size(0) == how.num_layers * directions &&
                     state.size(1) == pieces.front().rows,
                 ShapeError, "[packed_sequence] a state is {}: expected [{}, {}, ...].",
                 state.shape(), how.num_layers * directions, pieces.front().rows);
        initial.push_back(slice(state, 0, row, row + 1));
      }
      const auto own = parameters.subspan(each * static_cast<size_t>(row), each);
      std::vector<Tensor> results =
          direction == 0 ? run_forwards(how.run, data, pieces, std::move(initial), own)
                         : run_backwards(how.run, data, pieces, initial, own);
      outputs.push_back(results[0]);
      for (size_t s = 0; s < states.size(); ++s) after[s].push_back(results[s + 1]);
    }
    data = joined(outputs, -1);
    const bool last = layer + 1 == how.num_layers;
    if (how.dropout > 0 && !last) data = dropout(data, how.dropout, true);
  }
  std::vector<Tensor> all = {data};
  for (const std::vector<Tensor>& rows : after) all.push_back(joined(rows, 0));
  return all;
}

}  // namespace lockstep::nn
