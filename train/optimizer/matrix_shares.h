#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::train {

/// Rows and columns of a matrix.
struct MatrixSize {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t elements() const { return rows * columns; }
};

/// In proportion to the operations of a Newton-Schulz iteration on the matrix.
double orthogonalizing_cost(const MatrixSize& size);

/// Which rank works on each of some matrices: the dearest first, each by the rank that has
/// least to do, the last of several: plans are of the last rank, which then has the dearest. A
/// function of the sizes, so that all ranks agree. A rank's results lie one behind the other, and
/// every rank has room for as many elements as the fullest.
class MatrixShares {
 public:
  using Cost = double (*)(const MatrixSize& size);
  MatrixShares(std::span<const MatrixSize> sizes, int ranks, Cost cost_of = orthogonalizing_cost);

  int owner(size_t matrix) const { return places_[matrix].rank; }
  /// Where a matrix begins among the results of its owner.
  int64_t offset(size_t matrix) const { return places_[matrix].offset; }
  /// Elements that a rank has room for.
  int64_t room() const { return room_; }

 private:
  struct Place {
    int rank = 0;
    int64_t offset = 0;
  };
  std::vector<Place> places_;
  int64_t room_ = 0;
};

}  // namespace lockstep::train
