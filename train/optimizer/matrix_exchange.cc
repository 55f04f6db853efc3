#include "train/optimizer/matrix_exchange.h"

#include <algorithm>
#include <utility>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/sharded_model.h"

namespace lockstep::train {
namespace {

/// A rank gets as many small matrices in a round as have this many elements together: so many that
/// messages and threads have enough to do, in 16 MiB of f32.
constexpr int64_t kLeastOfRound = int64_t{1} << 22;

}  // namespace

MatrixSize size_of_matrix(const Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  return {rows, tensor.numel() / rows};
}

MatrixExchange::MatrixExchange(const dist::ShardedModel& model, const std::vector<size_t>& matrices,
                               MatrixShares::Cost cost_of)
    : ranks_(model.shards()) {
  std::vector<MatrixSize> sizes;
  int64_t most = kLeastOfRound;
  for (const size_t number : matrices) {
    const Tensor& whole = model.trained(number).tensor;
    Matrix& matrix = matrices_.emplace_back();
    matrix.size = size_of_matrix(whole);
    matrix.part = model.part_of(number);
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const auto slice = model.slice_of(number, rank);
      matrix.runs.push_back(slice ? Run{slice->first, slice->end} : Run());
    }
    sizes.push_back(matrix.size);
    most = std::max(most, matrix.size.elements());
    device_ = whole.device();
  }
  const MatrixShares shares(sizes, ranks_.size(), cost_of);
  struct Filled {
    size_t round = 0;
    int64_t elements = 0;
  };
  std::vector<Filled> filled(static_cast<size_t>(ranks_.size()));
  for (size_t i = 0; i < matrices_.size(); ++i) {
    matrices_[i].owner = shares.owner(i);
    const auto owner = static_cast<size_t>(shares.owner(i));
    Filled& of_owner = filled[owner];
    if (of_owner.elements > 0 && of_owner.elements + sizes[i].elements() > most) {
      of_owner = {of_owner.round + 1, 0};
    }
    of_owner.elements += sizes[i].elements();
    if (of_owner.round == rounds_.size()) rounds_.emplace_back(filled.size());
    rounds_[of_owner.round][owner].push_back(i);
  }
}

void MatrixExchange::run(const Work& work) const {
  for (const Round& round : rounds_) run(round, work);
}

template <class Copy>
void MatrixExchange::each_piece(const Round& round, const Copy& copy) const {
  const std::vector<size_t>& own = round[static_cast<size_t>(ranks_.rank())];
  int64_t at = 0;
  for (size_t rank = 0; rank < round.size(); ++rank) {
    for (size_t i = 0; i < own.size(); ++i) {
      const Run& run = matrices_[own[i]].runs[rank];
      if (run.size() > 0) copy(i, run, at);
      at += run.size();
    }
  }
}

void MatrixExchange::run(const Round& round, const Work& work) const {
  const auto self = static_cast<size_t>(ranks_.rank());
  const std::vector<size_t>& own = round[self];
  std::vector<int64_t> given(round.size()), got(round.size());  // elements, by rank
  for (size_t rank = 0; rank < round.size(); ++rank) {
    for (const size_t i : round[rank]) given[rank] += matrices_[i].runs[self].size();
    for (const size_t i : own) got[rank] += matrices_[i].runs[rank].size();
  }
  const auto buffer = [&](const std::vector<int64_t>& counts, DType dtype) {
    int64_t sum = 0;
    for (const int64_t count : counts) sum += count;
    return empty({sum}, {dtype, device_});
  };
  const auto each_given = [&](const auto& visit) {
    int64_t at = 0;
    for (const std::vector<size_t>& of_rank : round) {
      for (const size_t i : of_rank) {
        const Matrix& matrix = matrices_[i];
        const int64_t end = at + matrix.runs[self].size();
        if (matrix.part >= 0) visit(static_cast<size_t>(matrix.part), matrix.size, at, end);
        at = end;
      }
    }
  };

  std::vector<Tensor> wholes;
  {
    const Tensor sent = buffer(given, DType::kF32), received = buffer(got, DType::kF32);
    each_given([&](size_t part, const MatrixSize&, int64_t at, int64_t end) {
      slice(sent, 0, at, end).copy_(work.give(part).view({-1}));
    });
    ranks_.all_to_all(received, sent, got, given).wait();
    for (const size_t i : own) {
      const MatrixSize& size = matrices_[i].size;
      wholes.push_back(empty({size.rows, size.columns}, received.options()));
    }
    each_piece(round, [&](size_t i, const Run& run, int64_t at) {
      slice(wholes[i].view({-1}), 0, run.first, run.end)
          .copy_(slice(received, 0, at, at + run.size()));
    });
  }
  std::vector<Tensor> results = work.compute(own, wholes);
  wholes.clear();
  for (Tensor& each : results) each = each.contiguous().view({-1});
  const Tensor sent = buffer(got, work.dtype), received = buffer(given, work.dtype);
  each_piece(round, [&](size_t i, const Run& run, int64_t at) {
    slice(sent, 0, at, at + run.size()).copy_(slice(results[i], 0, run.first, run.end));
  });
  results.clear();
  ranks_.all_to_all(received, sent, given, got).wait();
  each_given([&](size_t part, const MatrixSize& whole, int64_t at, int64_t end) {
    work.take(part, slice(received, 0, at, end), whole);
  });
}

}  // namespace lockstep::train
