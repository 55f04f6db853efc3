#include "train/optimizer/matrix_shares.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"

namespace lockstep::train {

/// x x^T, its square, and their product with x, where x has no more rows than columns.
double orthogonalizing_cost(const MatrixSize& size) {
  const auto least = static_cast<double>(std::min(size.rows, size.columns));
  const auto most = static_cast<double>(std::max(size.rows, size.columns));
  return least * least * (2 * most + least);
}

MatrixShares::MatrixShares(std::span<const MatrixSize> sizes, int ranks, Cost cost_of)
    : places_(sizes.size()) {
  LS_ASSERT(ranks > 0);
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t matrix) { return cost_of(sizes[matrix]); });
  std::vector<double> costs(static_cast<size_t>(ranks));
  std::vector<int64_t> elements(static_cast<size_t>(ranks));
  for (const size_t matrix : order) {
    // The last of those with least to do.
    const auto least = std::min_element(costs.rbegin(), costs.rend());
    const auto rank = static_cast<size_t>(costs.rend() - least) - 1;
    costs[rank] += cost_of(sizes[matrix]);
    places_[matrix] = {static_cast<int>(rank), elements[rank]};
    elements[rank] += sizes[matrix].elements();
  }
  room_ = std::ranges::max(elements);
}

}  // namespace lockstep::train
